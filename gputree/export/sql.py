"""Trees and small forests as SQL: nested CASE expressions."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from gputree.errors import InputError
from gputree.export.model import Model, Models, Names, models_of
from gputree.export.parameters import checked
from gputree.export.sql_writer import DEEPEST, DIALECTS, Literals, SqlDialect, Writer

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
