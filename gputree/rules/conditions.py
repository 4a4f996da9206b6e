"""Conditions of rules, paths of a tree as lists of conditions, and rules as one CASE of SQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gputree.base.dtypes import THRESHOLD_SPLIT, Floats, Int64s
from gputree.export.model import Names
from gputree.export.sql import DIALECTS, Literals, forbid_twins
from gputree.tree import Tree

Kind = Literal["<=", ">", "in", "present", "missing"]


class Condition(NamedTuple):
    """A test of one column. A missing value satisfies none but ``missing``.

    Attributes
    ----------
    feature : int
        The column.
    kind : "<=", ">", "in", "present" or "missing"
    threshold : float
        Of "<=" and ">"; else 0.
    codes : tuple of int
        Of "in": the categories, ascending; else empty.
    """

    feature: int
    kind: Kind
    threshold: float = 0.0
    codes: tuple[int, ...] = ()

    def as_set(self, names: Names) -> Condition:
        """Express a condition by categories if its column is ordered.

        "missing" then has all of them: it holds for any other value, too.
        """
        if self.feature not in names.ordered:
            return self
        is_finite = self.kind in ("<=", ">")
        below, above = names.sides(self.feature, self.threshold if is_finite else np.inf)
        codes = tuple((above if self.kind == ">" else below).tolist())
        kind: Kind = "missing" if self.kind == "missing" else "in"
        return Condition(self.feature, kind, codes=codes)


class Rules(NamedTuple):
    """Many rules as arrays, over one list of conditions."""

    conditions: list[Condition]  # all different
    begin: Int64s  # (R + 1,): rule r has ``condition[begin[r] : begin[r + 1]]``
    condition: Int64s  # indices of `conditions`, in the order of a path
    label: Int64s  # (R,): code of the class that each rule predicts

    @property
    def sizes(self) -> Int64s:
        """Number of conditions of each rule."""
        return np.diff(self.begin)

    def of(self, rule: int) -> Int64s:
        """Indices of the conditions of one rule."""
        return self.condition[self.begin[rule] : self.begin[rule + 1]]

    def take(self, rules: Int64s) -> Rules:
        """Return the given rules, in their order; conditions that no rule has are dropped."""
        sizes = self.sizes[rules]
        begin = np.append(0, np.cumsum(sizes))
        places = np.arange(begin[-1]) + np.repeat(self.begin[rules] - begin[:-1], sizes)
        used, first, condition = np.unique(
            self.condition[places], return_index=True, return_inverse=True
        )
        order = np.argsort(first)  # in the order of first use
        number = np.empty(used.size, np.int64)
        number[order] = np.arange(used.size)
        conditions = [self.conditions[i] for i in used[order].tolist()]
        return Rules(conditions, begin, number[condition], self.label[rules])


def rules_of(rules: Iterator[tuple[Sequence[Condition], int]]) -> Rules:
    """Make rules from lists of conditions, each with the code of its class."""
    places: dict[Condition, int] = {}
    condition: list[int] = []
    ends, labels = [0], []
    for conditions, label in rules:
        condition += [places.setdefault(one, len(places)) for one in conditions]
        ends.append(len(condition))
        labels.append(label)
    return Rules(
        list(places),
        np.array(ends, np.int64),
        np.array(condition, np.int64),
        np.array(labels, np.int64),
    )


def rules_of_leaves(tree: Tree) -> Rules:
    """Make one rule per leaf that training rows reached, from left to right.

    Every test of the path is a condition, even if one further down implies it: simplification may
    drop the narrower one.
    """
    label = tree.answers.argmax(axis=1)
    return rules_of((path, int(label[leaf])) for leaf, path in _paths(tree))


def _paths(tree: Tree) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """Leaves with weight, from left to right, and the conditions of their paths."""
    rest: list[tuple[int, tuple[Condition, ...]]] = [(0, ())]
    while rest:
        node, path = rest.pop()
        if tree.weight[node] == 0.0:
            continue
        if tree.is_leaf[node]:
            yield node, path
            continue
        for child in reversed(tree.children(node)):
            rest.append((child, (*path, condition_of(tree, child))))


def condition_of(tree: Tree, node: int) -> Condition:
    """Condition between a parent and a node, on known values or on missing ones only."""
    parent = int(tree.parent[node])
    feature, first = int(tree.feature[parent]), node == tree.first_child[parent]
    if tree.split_kind[parent] == THRESHOLD_SPLIT:
        threshold = float(tree.threshold[parent])
        if np.isposinf(threshold):
            return Condition(feature, "present" if first else "missing")
        return Condition(feature, "<=" if first else ">", threshold)
    codes = tree.categories(node)
    if codes.size == 0 and tree.missing_child[parent] == node - tree.first_child[parent]:
        return Condition(feature, "missing")
    return Condition(feature, "in", codes=tuple(np.sort(codes).tolist()))


@dataclass(frozen=True, eq=False)
class ClassRule:
    """One rule of a `RuleSet`.

    Attributes
    ----------
    conditions : tuple of Condition
        They are joined by AND. `gputree.rules.Condition` has columns by place, categories by code.
    label : class label
    coverage : float
        Weight of the training rows that it covers, those that an earlier rule decides included.
    errors : float
        Weight of those of other classes.
    confidence : float
        One minus the pessimistic error rate.
    class_weights : float64 array of shape (n_classes,)
        `coverage` by class.
    text : str
        The rule in words.
    """

    conditions: tuple[Condition, ...]
    label: Any
    coverage: float
    errors: float
    confidence: float
    class_weights: Floats
    text: str

    def __str__(self) -> str:
        return self.text


Output = Literal["prediction", "confidence", "rule"]


def write_sql(
    names: Names,
    rules: Rules,
    default: int,
    confidence: Floats,
    dialect: str,
    output: Output,
    table: str | None,
) -> str:
    """Write the expression, or the query of a table; see `gputree.rules.RuleSet.to_sql`."""
    forbid_twins(names)
    writer = Literals(names, DIALECTS[dialect])
    predictions = _answers(writer, rules, default, confidence, output)
    tests = [_test(writer, condition) for condition in rules.conditions]
    lines = [
        f"  WHEN {' AND '.join(tests[i] for i in rules.of(rule))} THEN {prediction}"
        for rule, prediction in enumerate(predictions[:-1])
    ]
    expression = "\n".join(["CASE", *lines, f"  ELSE {predictions[-1]}", "END"])
    if not lines:
        expression = predictions[-1]
    if table is None:
        return f"{expression}\n"
    name = writer.dialect.name
    return f"SELECT *,\n{expression} AS {name(output)}\nFROM {name(table)};\n"


def _answers(
    writer: Literals, rules: Rules, default: int, confidence: Floats, output: Output
) -> list[str]:
    """Literals of the output of each rule, and last of no rule."""
    if output == "rule":
        return [*map(str, range(1, rules.label.size + 1)), "0"]
    if output == "confidence":
        return [*map(writer.number, confidence.tolist()), "NULL"]
    assert writer.names.classes is not None
    labels = writer.names.classes.tolist()
    return [writer.literal(labels[c]) for c in [*rules.label.tolist(), default]]


def _test(writer: Literals, condition: Condition) -> str:
    """Write a condition that is true for the rows that satisfy it; false or NULL for others."""
    condition = condition.as_set(writer.names)
    column, is_missing = writer.columns[condition.feature], writer.is_missing(condition.feature)
    if condition.kind == "missing" and condition.codes:
        levels = ", ".join(_words(writer, condition))
        return f"({is_missing} OR {column} NOT IN ({levels}))"
    if condition.kind == "missing":
        return f"({is_missing})"
    if condition.kind == "present":
        return f"NOT ({is_missing})"
    if condition.kind == "in":
        return f"{column} IN ({', '.join(_words(writer, condition))})"
    number = writer.dialect.as_double.format(column)
    test = f"{number} {condition.kind} {writer.number(condition.threshold)}"
    # in databases NaN is greater than all numbers
    return test if condition.kind == "<=" else f"{test} AND NOT ({is_missing})"


def _words(writer: Literals, condition: Condition) -> list[str]:
    """Write the categories of a condition."""
    return writer.literals(condition.feature, np.array(condition.codes, np.int32))
