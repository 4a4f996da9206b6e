"""Dialects of SQL, and one nested CASE expression in them."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from gputree.base.dtypes import Int32s
from gputree.errors import InputError
from gputree.export.model import Model, Names, Split

_INDENT = "  "
_MOST_INDENTS = 30  # deeper lines are indented no further: else text grows with its square
DEEPEST = 300  # the parsers recurse: of DuckDB to 1,000 levels, three a CASE
_EXACT_DIGITS = 15  # decimals of this length with small exponents are read exactly everywhere
_EXACT_EXPONENT = 22

_TEST = re.compile("WHEN (.*) THEN ", re.S)


class SqlDialect(NamedTuple):
    """Syntax of one database, where databases differ."""

    double: str  # the type of float64 numbers
    truth: tuple[str, str]  # false, true
    missing_number: str  # condition that a number is missing; NULL, or NaN where there is one
    as_double: str  # a column as float64; literals are, or become so in an expression with it
    reads_exactly: bool  # whether every decimal is read as the nearest float64
    quote: str = '"'  # around names
    most_nodes: int = 1 << 31  # of one expression; planning takes the square in SQLite
    beyond: int = 1 << 127  # of integers; others are read as floats
    deepest: int = DEEPEST  # CASE inside CASE; deeper trees are one CASE, a condition a leaf

    def name(self, name: str) -> str:
        """An identifier."""
        if "\0" in name or not name:
            raise InputError(f"SQL cannot represent the name {name!r}.")
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote


DIALECTS = {
    "duckdb": SqlDialect("DOUBLE", ("FALSE", "TRUE"), "({0} IS NULL OR isnan({0}))", "{0}", True),
    "postgres": SqlDialect(
        "DOUBLE PRECISION",
        ("FALSE", "TRUE"),
        "({0} IS NULL OR {0}::float8 = 'NaN')",
        "{0}::float8",
        True,
    ),
    # NaN is stored as NULL, and an unknown name in double quotes is read as text.
    # Its parser holds a hundred things at once, five for a CASE.
    "sqlite": SqlDialect(
        "REAL",
        ("0", "1"),
        "{0} IS NULL",
        "CAST({0} AS REAL)",
        False,
        "`",
        most_nodes=20_000,
        beyond=1 << 63,
        deepest=15,
    ),
}


class Literals:
    """Names, values and tests for missing values, as one dialect writes them."""

    def __init__(self, names: Names, dialect: SqlDialect) -> None:
        self.names, self.dialect = names, dialect
        self.columns = list(map(dialect.name, names.feature_names))

    def is_missing(self, feature: int) -> str:
        """The condition that a column has no value."""
        categories = self.names.categories[feature]
        numeric = categories is None or categories.dtype.kind == "f"
        pattern = self.dialect.missing_number if numeric else "{0} IS NULL"
        return pattern.format(self.columns[feature])

    def literals(self, feature: int, codes: Int32s) -> list[str]:
        """The categories of some codes."""
        categories = self.names.categories[feature]
        if categories is not None and categories.dtype.kind == "O":
            texts = sum(isinstance(word, str) for word in categories)
            if 0 < texts < categories.size:
                raise InputError(
                    f"SQL cannot represent this tree: column {self.names.feature_names[feature]!r} "
                    "has both numbers and text as categories, which no column of a database has."
                )
        return list(map(self.literal, self.names.words(feature, codes)))

    def literal(self, value: Any) -> str:
        """A label or category."""
        if isinstance(value, bool):
            return self.dialect.truth[value]
        if isinstance(value, int):
            if not -self.dialect.beyond <= value < self.dialect.beyond:
                raise InputError(
                    f"This dialect of SQL cannot represent the integer {value}: it has more bits "
                    "than its integers, and is another as a float."
                )
            return str(value)
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, str) and "\0" not in value:
            return "'" + value.replace("'", "''") + "'"
        raise InputError(f"SQL cannot represent {value!r} of type {type(value).__name__}.")

    def number(self, value: float) -> str:
        """A float64, so that it is read as the same."""
        value = float(value)
        digits, _, exponent = f"{value!r}".partition("e")
        mantissa = digits.lstrip("-").replace(".", "").strip("0")
        plain = (
            len(mantissa) <= _EXACT_DIGITS
            and abs(int(exponent or 0)) + len(digits) <= _EXACT_EXPONENT
        )
        if self.dialect.reads_exactly or plain or not math.isfinite(value):
            return f"{digits}e{int(exponent or 0)}"
        return _as_fraction(value)


class Writer(Literals):
    """The parts of the expression for one model and dialect."""

    def __init__(self, model: Model, dialect: SqlDialect) -> None:
        super().__init__(model, dialect)
        self.model = model

    def flat(self, predicts: Callable[[int], str]) -> str:
        """One CASE with a condition a leaf: rows that come to one have failed those before it."""
        lines = ["CASE"]
        rest: list[tuple[list[str], int | None, int]] = [([], 0, 0)]  # tests, node, source
        while rest:
            tests, node, above = rest.pop()
            stops = node is None or not self.model.tree.n_children[node]
            branches = [] if stops else self.branches(self.model.split(node or 0))
            if not branches:
                head = f"WHEN {' AND '.join(tests)} THEN" if tests else "ELSE"
                lines.append(f"{_INDENT}{head} {predicts(above if node is None else node)}")
            for text, child in reversed(branches):
                test = [f"({found[1]})"] if (found := _TEST.fullmatch(text)) else []
                rest.append((tests + test, None if child == node else child, node or 0))
        return "\n".join([*lines, "END"]) if len(lines) > 2 else lines[1].split(" ", 3)[-1]

    def nested(self, predicts: Callable[[int], str]) -> str:
        """CASE inside CASE: a stack of what is still to be written, last first."""
        lines: list[str] = []
        rest: list[tuple[str, int | None, int]] = [("", 0, 0)]  # words before a node, node, depth
        while rest:
            words, node, depth = rest.pop()
            indent = _INDENT * min(depth, _MOST_INDENTS)
            if node is None:
                lines.append(indent + words)
                continue
            is_leaf = not self.model.tree.n_children[node]
            branches = [] if is_leaf else self.branches(self.model.split(node))
            if not branches:
                lines.append(f"{indent}{words}{predicts(node)}")
            elif len(branches) == 1:  # a CASE needs more
                rest.append((words, branches[0][1], depth))
            else:
                lines.append(f"{indent}{words}CASE")
                rest.append(("END", None, depth))
                for text, child in reversed(branches):
                    if child == node:  # rows stop here
                        rest.append((text + predicts(node), None, depth + 1))
                    else:
                        rest.append((text, child, depth + 1))
        return "\n".join(lines)

    def branches(self, split: Split) -> list[tuple[str, int]]:
        """WHEN and ELSE of one node, each with the node that follows; itself where rows stop.

        None where all rows stop.
        """
        split = self.model.as_sets(split)
        column = self.columns[split.feature]
        nodes = [*split.children, split.node, split.node]  # MISSING_TO_ALL is no longer there
        missing, unseen = nodes[split.missing], nodes[split.unseen]
        is_missing = self.is_missing(split.feature)
        if split.threshold is None:
            parts = [(f"WHEN {is_missing} THEN ", missing)] if missing != unseen else []
            for child, codes in zip(split.children, split.codes, strict=True):
                if child != unseen and codes.size:
                    words = ", ".join(self.literals(split.feature, codes))
                    parts.append((f"WHEN {column} IN ({words}) THEN ", child))
            return [*parts, ("ELSE ", unseen)] if parts or unseen != split.node else []
        first, second = split.children
        if math.isinf(split.threshold):
            return [(f"WHEN {is_missing} THEN ", missing), ("ELSE ", first)]
        test = f"{self.dialect.as_double.format(column)} <= {self.number(split.threshold)}"
        if missing == second:  # NULL and NaN fail the test
            return [(f"WHEN {test} THEN ", first), ("ELSE ", second)]
        if missing == first:
            return [(f"WHEN {test} OR {is_missing} THEN ", first), ("ELSE ", second)]
        return [
            (f"WHEN {is_missing} THEN ", missing),
            (f"WHEN {test} THEN ", first),
            ("ELSE ", second),
        ]


def _as_fraction(value: float) -> str:
    """A float64 as an integer times a power of two: exact where decimals are read inexactly."""
    fraction, exponent = math.frexp(value)
    whole, exponent = int(math.ldexp(fraction, 53)), exponent - 53
    words = f"{whole} * 1e0"
    while exponent:
        step = min(abs(exponent), 62)
        words += f" {'*/'[exponent < 0]} {1 << step}"
        exponent += step if exponent < 0 else -step
    return f"({words})"
