"""Trees as SQL: nested CASE expressions, or of one tree a table of its nodes.

Databases plan an expression anew with each query, which takes minutes for a large tree. A table is
filled once, and a step is one lookup in it::

    node | feature  threshold  at_most  above  missing | prediction
       0 |       2        1.5        1      2        2 |
       1 |                                             | 'yes'

Columns of categories are compared by their codes, -1 where a category is unknown (NULL where they
are ordered): a set of codes is intervals, and these are cuts between integers, in separate nodes
after the tree's.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from gputree.base.dtypes import MISSING_STOPS
from gputree.errors import InputError
from gputree.export.model import Model, Models, Names, Split, models_of
from gputree.export.parameters import checked
from gputree.export.sql_writer import DEEPEST, DIALECTS, Literals, SqlDialect, Writer

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
    begin = ",\n    ".join(_operand(writer, feature) for feature in tested)
    return (
        f"(WITH RECURSIVE walk (here, {kept}) AS (\n"
        f"  SELECT 0,\n    {begin}\n"
        "  UNION ALL\n"
        f"  SELECT CASE WHEN {value} IS NULL THEN missing\n"
        f"    WHEN {value} <= threshold THEN at_most ELSE above END, {kept}\n"
        f"  FROM walk {found} WHERE feature IS NOT NULL\n"
        f") SELECT prediction FROM walk {found} WHERE feature IS NULL)"
    )


def _operand(writer: Writer, feature: int) -> str:
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


_BIGINT = 1 << 63
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
    nodes: str | None = None,
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
    nodes : str or None, default=None
        Name of a table for the nodes of the tree: write the statements that create and fill it, and
        a query of `table` that joins it. Databases plan an expression again for each query, for
        seconds if a tree has ten thousand nodes; a table of nodes has any size and depth. To
        predict again, use the last statement alone.
    {missing}
    {labels}

    Returns
    -------
    str

    {raises}
    ValueError
        The tree sends rows down every branch and `missing` is "error"; it is too deep or, for
        SQLite, too large for one expression; a forest has more than 800 trees or 10,000 nodes (for
        labels divided by the number of classes), or `nodes` or ``output="node"`` is for a forest; a
        name or category cannot be written in SQL; or a parameter is none of those above.

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
    if nodes is not None and table is None:
        raise InputError("nodes needs table: the name of the table whose rows are to be predicted.")
    if several and (nodes is not None or output == "node"):
        raise InputError(
            f"nodes and output='node' take one tree, and {type(estimator_or_tree).__name__} has "
            f"{len(models)}: pass one of them, estimators_[i]."
        )
    forbid_twins(model)
    writer = Writer(model, DIALECTS[dialect])
    predicts, type_name = _answers(model, writer, output, probability_of)
    name = writer.dialect.name
    if nodes is not None and table is not None:
        kind = type_name or _kind_of_answers(model, writer, output)
        before = table_of_nodes(writer, nodes, predicts, kind) + "\n\n"
        return f"{before}SELECT *,\n{walk(writer, nodes)} AS {name(output)}\nFROM {name(table)};\n"
    if several:
        expression = _of_forest(models, writer.dialect, output, probability_of)
    else:
        expression = _expression(writer, predicts)
        if type_name is not None:
            expression = f"CAST(\n{expression}\nAS {type_name})"
    if table is None:
        return f"{expression}\n"
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
    advice = "Pass nodes='NAME' to write a table of nodes, which may have any size, or prune it."
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


def _kind_of_answers(model: Model, writer: Writer, output: str) -> str:
    """The type of a column of nodes or labels."""
    if output == "node" or model.classes is None:
        return "BIGINT"
    kinds = {type(label) for label in model.classes.tolist()}
    names = {bool: "BOOLEAN", int: "BIGINT", float: writer.dialect.double, str: "TEXT"}
    if len(kinds) > 1 or not kinds <= names.keys():
        listed = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise InputError(
            f"A table of nodes cannot represent labels of type {listed}: a column of a database "
            "has one type. Pass class_names of text."
        )
    if kinds == {int} and not -_BIGINT <= min(model.classes) <= max(model.classes) < _BIGINT:
        raise InputError(
            f"A table of nodes cannot represent the label {max(model.classes, key=abs)}: it has "
            "more bits than BIGINT. Pass class_names of text."
        )
    return names[kinds.pop()]


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
