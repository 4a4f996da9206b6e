"""Trees and small forests as SQL: nested CASE expressions."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from gputree.base.dtypes import Int32s
from gputree.errors import InputError
from gputree.export.model import Model, Models, Names, Split, models_of
from gputree.export.parameters import checked

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


# Of a forest's expression, where labels need every tree once a class. Databases plan it again with
# each query: 10,000 nodes of 100 trees take 6 s in DuckDB and SQLite. They read 1,000 terms.
_MOST_NODES, _MOST_TREES = 10_000, 800


@checked
def export_sql(
    estimator_or_tree: Any,
    *,
    dialect: Literal["duckdb", "postgres", "sqlite"] = "duckdb",
    output: Literal["prediction", "probability", "node"] = "prediction",
    probability_of: Any = None,
    table: str | None = None,
    missing: Literal["error", "largest"] = "error",
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[Any] | None = None,
) -> str:
    """Write a fitted tree or a small forest as an SQL expression.

    NULL is missing, and so is NaN. Numbers are compared as float64, as in `predict`, so that
    predictions equal the estimator's to the last bit.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of a tree or a forest, or Tree
        Categories of a bare Tree are codes.
    dialect : "duckdb", "postgres" or "sqlite", default="duckdb"
    output : "prediction", "probability" or "node", default="prediction"
        The label or mean target; the probability of the class `probability_of`; or the index of
        the node that predicts, as `apply` gives it.
    probability_of : label, default=None
        One of `classes_`; for ``output="probability"``.
    table : str or None, default=None
        Write a query that adds the prediction to the rows of this table, instead of the
        expression alone.
    {missing}
    {labels}

    Returns
    -------
    str

    {raises}
    ValueError
        The tree sends rows down every branch and `missing` is "error"; it is too deep or, for
        SQLite, too large for one expression; a forest has more than 800 trees or 10,000 nodes (for
        labels divided by the number of classes), or ``output="node"`` is for a forest; a name or
        category cannot be written in SQL; or a parameter is none of those above.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_golf
    >>> from gputree.export import export_sql
    >>> golf = load_golf()
    >>> tree = DecisionTreeClassifier(max_depth=1).fit(golf.data, golf.target)
    >>> print(export_sql(tree, feature_names=golf.feature_names), end="")
    CASE
      WHEN "outlook" IN ('overcast') THEN 'yes'
      ELSE 'no'
    END
    """
    models = models_of(
        estimator_or_tree, feature_names, class_names,
        by_costs=True, missing=missing, format_name="SQL",
    )  # fmt: skip
    model, several = models.first, len(models) > 1
    if several and output == "node":
        raise InputError(
            f"output='node' takes one tree, and {type(estimator_or_tree).__name__} has "
            f"{len(models)}: pass one of them, estimators_[i]."
        )
    forbid_twins(model)
    writer = Writer(model, DIALECTS[dialect])
    predicts, type_name = _answers(model, writer, output, probability_of)
    if several:
        expression = _of_forest(models, writer.dialect, output, probability_of)
    else:
        expression = _expression(writer, predicts)
        if type_name is not None:
            expression = f"CAST(\n{expression}\nAS {type_name})"
    if table is None:
        return f"{expression}\n"
    name = writer.dialect.name
    return f"SELECT *,\n{expression} AS {name(output)}\nFROM {name(table)};\n"


def _expression(writer: Writer, predicts: Callable[[int], str]) -> str:
    """CASE inside CASE, or one after the other; ValueError where it is too large."""
    _forbid_large(writer.model, writer.dialect)
    nested = writer.model.tree.max_depth <= writer.dialect.deepest
    return writer.nested(predicts) if nested else writer.flat(predicts)


def _of_forest(models: Models, dialect: SqlDialect, output: str, probability_of: Any) -> str:
    """Mean over trees, added in their order; of labels, the first of the highest mean.

    A tree is a column of a subquery, since databases take long for a sum of long terms.
    """
    first, labels = models.first, []
    outputs = [0]
    if output == "probability":
        outputs = [_place_of(first, probability_of)]
    elif first.classes is not None:
        labels = [Literals(first, dialect).literal(label) for label in first.classes.tolist()]
        outputs = list(range(len(labels)))
    trees = models.at_most(
        _MOST_NODES // len(outputs), "One expression of SQL", _MOST_TREES // len(outputs)
    )
    taken = {name.lower() for name in first.feature_names}
    prefix = "t"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    columns, means = [], []
    for k in outputs:
        names = [f"{prefix}{t}_{k}" for t in range(len(trees))]
        terms = (_value(model, dialect, k) for model in trees)
        columns += [f"{term} AS {name}" for term, name in zip(terms, names, strict=True)]
        means.append(f"({' + '.join(names)}) / CAST({len(trees)} AS {dialect.double})")
    table = ",\n".join(columns)
    if not labels:
        return f"(SELECT {means[0]}\nFROM (SELECT\n{table}\n) AS trees)"
    means = [f"{mean} AS {prefix}{k}" for k, mean in enumerate(means)]
    others = [
        " AND ".join(f"{prefix}{k} >= {prefix}{j}" for j in outputs[k + 1 :]) for k in outputs[:-1]
    ]
    cases = "".join(
        f"WHEN {test} THEN {label} " for test, label in zip(others, labels, strict=False)
    )
    chosen = f"CASE {cases}ELSE {labels[-1]} END" if cases else labels[-1]
    means_of = ",\n".join(means)
    return (
        f"(SELECT {chosen}\nFROM (SELECT {means_of}\nFROM (SELECT\n{table}\n) AS trees) AS means)"
    )


def _value(model: Model, dialect: SqlDialect, output: int) -> str:
    """Prediction of a tree of a forest; the query around it takes some of a parser's depth."""
    writer = Writer(model, dialect._replace(deepest=dialect.deepest * 2 // 3))
    value = model.tree.predictions[:, output]
    expression = _expression(writer, lambda node: writer.number(value[node]))
    return f"CAST(\n{expression}\nAS {dialect.double})"


def _forbid_large(model: Model, dialect: SqlDialect) -> None:
    """Raise ValueError where a database would not read the expression, or for minutes."""
    depth, n_nodes = model.tree.max_depth, model.tree.n_nodes
    advice = "Prune it, or use export_python, export_c or to_onnx."
    if depth > DEEPEST:
        raise InputError(
            f"One expression of SQL cannot represent this tree: its depth is {depth}, and "
            f"databases read expressions of about {DEEPEST} levels. {advice}"
        )
    if n_nodes > dialect.most_nodes:
        raise InputError(
            f"One expression of SQL cannot represent this tree: it has {n_nodes:,} nodes, and "
            f"SQLite takes minutes to plan more than {dialect.most_nodes:,} with each query. "
            f"{advice}"
        )


def _answers(
    model: Model, writer: Writer, output: Any, probability_of: Any
) -> tuple[Callable[[int], str], str | None]:
    """The SQL of the prediction of each node, and the type they need to be given."""
    value = model.tree.predictions
    double = writer.dialect.double
    if probability_of is not None and output != "probability":
        raise InputError(f"probability_of needs output='probability', got output={output!r}.")
    if output == "node":
        return str, None
    if output == "probability":
        place = _place_of(model, probability_of)
        return (lambda node: writer.number(value[node, place])), double
    if model.classes is None:
        return (lambda node: writer.number(value[node, 0])), double
    labels = [writer.literal(label) for label in model.classes.tolist()]
    best = model.labels
    return (lambda node: labels[best[node]]), None


def forbid_twins(names: Names) -> None:
    """Raise ValueError where databases take two columns for one."""
    seen: dict[str, str] = {}
    for name in names.feature_names:
        if (twin := seen.get(name.lower())) is not None:
            raise InputError(
                f"SQL cannot represent this tree: it does not distinguish the columns {twin!r} and "
                f"{name!r} apart. Pass feature_names that differ in more than case."
            )
        seen[name.lower()] = name


def _place_of(model: Model, label: Any) -> int:
    if model.classes is None:
        raise InputError(
            "probability_of needs the tree of a classifier: a regression tree has no classes. "
            "Leave it out, and output at 'prediction'."
        )
    labels = model.classes.tolist()
    if label not in labels:
        raise InputError(f"probability_of must be one of the classes {labels}, got {label!r}.")
    return labels.index(label)
