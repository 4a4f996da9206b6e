"""A tree as a table of nodes, and an SQL expression that walks it from row to row.

Databases plan an expression anew with each query, which takes minutes for a large tree. A table is
filled once, and a step is one lookup in it::

    node | feature  threshold  at_most  above  missing | prediction
       0 |       2        1.5        1      2        2 |
       1 |                                             | 'yes'

Columns of categories are compared by their codes, -1 where a category is unknown (NULL where they
are ordered): a set of codes is intervals, and these are cuts between integers, in separate nodes
after the tree's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gputree.base.dtypes import MISSING_STOPS
from gputree.export.model import Model, Split
from gputree.export.sql_writer import Writer

_ROWS = 1000  # of one INSERT


class _Node(NamedTuple):
    """One row of the table; a leaf predicts as the node `source` of the tree."""

    feature: int = -1
    threshold: float = 0.0
    at_most: int = -1
    above: int = -1
    missing: int = -1
    source: int = -1


def table_of_nodes(writer: Writer, name: str, predicts: Callable[[int], str], kind: str) -> str:
    """The statements that make a table of this name, and fill it.

    `predicts` gives the SQL of the prediction of each node, `kind` is the type of predictions.
    """
    table, double = writer.dialect.name(name), writer.dialect.double
    made = (
        f"CREATE TABLE {table} (node INTEGER PRIMARY KEY, feature INTEGER, threshold {double}, "
        f"at_most INTEGER, above INTEGER, missing INTEGER, prediction {kind});"
    )
    lines = [_line(writer, *found, predicts) for found in enumerate(_nodes(writer.model))]
    parts = [",\n".join(lines[first : first + _ROWS]) for first in range(0, len(lines), _ROWS)]
    return "\n".join([made, *(f"INSERT INTO {table} VALUES\n{part};" for part in parts)])


def walk(writer: Writer, name: str) -> str:
    """The expression that finds the prediction of a row in that table."""
    tree, table = writer.model.tree, writer.dialect.name(name)
    tested = sorted(set(tree.feature[~tree.is_leaf].tolist()))
    if not tested:
        return f"(SELECT prediction FROM {table} WHERE node = 0)"
    found = writer.dialect.found.format(table)
    values = [f"c{feature}" for feature in tested]
    value = f"CASE feature {' '.join(f'WHEN {f} THEN c{f}' for f in tested)} END"
    kept = ", ".join(values)
    begin = ",\n    ".join(_value(writer, feature) for feature in tested)
    return (
        f"(WITH RECURSIVE walk (here, {kept}) AS (\n"
        f"  SELECT 0,\n    {begin}\n"
        "  UNION ALL\n"
        f"  SELECT CASE WHEN {value} IS NULL THEN missing\n"
        f"    WHEN {value} <= threshold THEN at_most ELSE above END, {kept}\n"
        f"  FROM walk {found} WHERE feature IS NOT NULL\n"
        f") SELECT prediction FROM walk {found} WHERE feature IS NULL)"
    )


def _value(writer: Writer, feature: int) -> str:
    """Operand of a comparison with a column: a number, or the code of a category."""
    categories, column = writer.model.categories[feature], writer.columns[feature]
    tree = writer.model.tree
    if categories is None and not (tree.tests_categories & (tree.feature == feature)).any():
        found = writer.dialect.as_double.format(column)
    else:
        codes = writer.codes(feature)
        cases = " ".join(
            f"WHEN {word} THEN {code}"
            for word, code in zip(writer.literals(feature, codes), codes.tolist(), strict=True)
        )
        unknown = "NULL" if feature in writer.model.ordered else "-1"
        found = f"CASE {column} {cases} ELSE {unknown} END" if cases else unknown
    number = f"CAST({found} AS {writer.dialect.double})"
    return f"CASE WHEN {writer.is_missing(feature)} THEN NULL ELSE {number} END"


def _line(writer: Writer, place: int, node: _Node, predicts: Callable[[int], str]) -> str:
    if node.feature < 0:
        return f"({place}, NULL, NULL, NULL, NULL, NULL, {predicts(node.source)})"
    threshold = writer.number(node.threshold)
    ways = f"{node.at_most}, {node.above}, {node.missing}"
    return f"({place}, {node.feature}, {threshold}, {ways}, NULL)"


# -------------------------------------------------------------------- nodes
def _nodes(model: Model) -> list[_Node]:
    """The nodes of a tree in which every row has one path, at their own places, and others."""
    nodes = [_Node(source=node) for node in range(model.tree.n_nodes)]
    for node in (~model.tree.is_leaf).nonzero()[0].tolist():
        split = model.split(node)
        if MISSING_STOPS in (split.missing, split.unseen):
            nodes.append(_Node(source=node))
        stop = len(nodes) - 1
        missing = _goal(split, split.missing, stop)
        if split.threshold is None:
            runs = list(_runs(split, _goal(split, split.unseen, stop)))
            _search(nodes, node, split.feature, runs, missing)
        else:
            first, second = split.children
            ways = (split.threshold, first, second)
            if math.isinf(split.threshold):  # missing values are distinguished from others
                ways = (0.0, first, first)
            nodes[node] = _Node(split.feature, *ways, missing)
    return nodes


def _goal(split: Split, ordinal: int, stop: int) -> int:
    return stop if ordinal == MISSING_STOPS else split.children[ordinal]


def _runs(split: Split, unseen: int) -> Iterator[tuple[float, int]]:
    """Intervals of codes that go to one node: the last code of each, and the node."""
    goals = {
        code: child
        for child, codes in zip(split.children, split.codes, strict=True)
        for code in codes.tolist()
    }
    goal, last = unseen, -1
    for code in sorted(goals):
        if code > last + 1 and goal != unseen:
            yield last, goal
            goal = unseen
        if goals[code] != goal:
            yield code - 1, goal
            goal = goals[code]
        last = code
    if goal != unseen:
        yield last, goal
        goal = unseen
    yield math.inf, goal


def _search(
    nodes: list[_Node], place: int, feature: int, runs: list[tuple[float, int]], missing: int
) -> None:
    """Put a search for the interval of a code at a place of `nodes`, and behind them."""
    rest = [(place, 0, len(runs))]
    while rest:
        place_of_node, begin, end = rest.pop()
        if end - begin == 1:
            goal = runs[begin][1]
            nodes[place_of_node] = _Node(feature, 0.0, goal, goal, missing)
            continue
        middle = (begin + end) // 2
        ways = []
        for first, last in ((begin, middle), (middle, end)):
            if last - first == 1:
                ways.append(runs[first][1])
            else:
                ways.append(len(nodes))
                rest.append((len(nodes), first, last))
                nodes.append(_Node())
        at_most, above = ways
        nodes[place_of_node] = _Node(feature, runs[middle - 1][0] + 0.5, at_most, above, missing)
