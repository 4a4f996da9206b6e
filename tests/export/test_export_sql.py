"""Trees as SQL: databases answer as the tree does, to the bit."""

import sqlite3
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal

import numpy as np
import postgres_server
import pytest
from databases import in_duckdb, in_sqlite
from hand_made_trees import chain
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import N_CODES, heaviest, heaviest_answers, multiway_cases

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_golf
from gputree.export import export_sql
from gputree.export.model import model_of, single_paths
from gputree.export.sql import DIALECTS, Writer
from gputree.prediction import apply

GOLF = load_golf()


# One expression, or a table of nodes that is walked.
FORMS = {"expression": {}, "nodes": {"nodes": "the tree's"}}
in_each_form = pytest.mark.parametrize("form", FORMS)
in_each_database = pytest.mark.parametrize(
    "dialect", ["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.process)]
)


DATABASES = {"sqlite": in_sqlite, "duckdb": in_duckdb, "postgres": None}


@pytest.fixture(scope="module", autouse=True)
def _servers():
    """A Postgres server, started when it is first asked."""
    with ExitStack() as stack:
        folder = []

        def in_postgres(query: str, columns: dict) -> list:
            if absent := postgres_server.missing_program():
                pytest.skip(f"{absent} of Postgres is not installed")
            if not folder:
                folder.append(stack.enter_context(postgres_server.server()))
            return postgres_server.ask(folder[0], query, columns)

        DATABASES["postgres"] = in_postgres
        yield


def columns_of(values: np.ndarray) -> dict:
    """Columns with None where missing; codes are whole numbers."""
    out = {}
    for j, (column, n_codes) in enumerate(zip(values.T, N_CODES, strict=True)):
        kind = float if n_codes == 0 else int
        out[f"x{j}"] = [None if x != x else kind(x) for x in column.tolist()]
    return out


@in_each_form
@in_each_database
@given(multiway_cases(min_rows=1), st.randoms())
def test_databases_answer_as_the_tree_does(dialect, form, case, random):
    tree, values = case
    columns, ask = columns_of(values), DATABASES[dialect]
    asked = {"dialect": dialect, "table": "rows", "missing": "largest", **FORMS[form]}
    node = export_sql(tree, output="node", **asked)
    assert ask(node, columns) == [heaviest(tree, row) for row in values]
    k = random.randrange(tree.n_classes)
    share = export_sql(tree, output="probability", probability_of=k, **asked)
    assert ask(share, columns) == heaviest_answers(tree, values)[:, k].tolist()


@in_each_form
@in_each_database
def test_regression_on_numbers_that_are_hard_to_read(dialect, form):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=300), 10.0 ** rng.uniform(-300, 300, 100)])
    y = rng.normal(size=x.size) * 10.0 ** rng.uniform(-2, 2, x.size)
    model = DecisionTreeRegressor().fit(x[:, None], y)
    query = export_sql(
        model, dialect=dialect, feature_names=['a "name"'], table="rows", **FORMS[form]
    )
    asked = np.concatenate([x, model.tree_.threshold[~model.tree_.is_leaf]])
    found = DATABASES[dialect](query, {'a "name"': asked.tolist()})
    assert found == model.predict(asked[:, None]).tolist()


@in_each_form
@in_each_database
def test_whole_numbers_are_rounded_as_in_predict(dialect, form):
    """2^53 + 1 is 2^53 in float64; Postgres and SQLite compare it as it is."""
    known = 2.0**53 + 2 * np.arange(4)
    model = DecisionTreeRegressor().fit(known[:, None], np.arange(4.0))
    asked = [2**53 + i for i in range(-2, 9)]
    query = export_sql(model, dialect=dialect, table="rows", **FORMS[form])
    found = DATABASES[dialect](query, {"x0": asked})
    assert found == model.predict(np.array(asked, float)[:, None]).tolist()


@in_each_form
@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_decimals_are_rounded_as_in_predict(dialect, form):
    model = DecisionTreeClassifier().fit([[0.1], [0.3]], [0, 1])
    threshold = Decimal(float(model.tree_.threshold[0]))
    asked = [Decimal(f"{threshold + Decimal(step):.30f}") for step in ("-1e-9", "1e-25", "1e-9")]
    query = export_sql(model, dialect=dialect, table="rows", **FORMS[form])
    assert DATABASES[dialect](query, {"x0": asked}) == [0, 0, 1]


@in_each_form
@in_each_database
def test_words_that_are_hard_to_quote(dialect, form):
    words = ["it's", "a\\b", 'a"b', "\n", "\t", "é", "", "  ", "E'x'", "%s", "NULL", "$1", ";--"]
    words = np.array(words, object)
    model = ID3Classifier().fit(words[:, None], ["don't", "\\", "x;"] * 4 + ["y"])
    query = export_sql(
        model, dialect=dialect, feature_names=['a "name"'], table="rows", **FORMS[form]
    )
    asked = [*words, None, "unseen"]
    found = DATABASES[dialect](query, {'a "name"': asked})
    assert found == model.predict(np.array(asked, object)[:, None]).tolist()


@in_each_form
@in_each_database
def test_nan_is_missing(dialect, form):
    values = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = DecisionTreeClassifier().fit(values, ["a", "b", "c", "c"])
    query = export_sql(model, dialect=dialect, table="rows", **FORMS[form])
    assert DATABASES[dialect](query, {"x0": [1.0, 2.0, float("nan"), None]}) == list("abcc")


@in_each_form
@in_each_database
@pytest.mark.parametrize("kind", [ID3Classifier, DecisionTreeClassifier])
def test_categories_and_labels_by_their_names(dialect, form, kind):
    data = GOLF.data.copy()
    data[data == "sunny"] = "sun's"
    model = kind().fit(data, np.where(GOLF.target == "no", "don't", "do"))
    rows = [*data.tolist(), ["fog", "mild", "high", "weak"], [None, "mild", "high", "weak"]]
    query = export_sql(
        model, dialect=dialect, feature_names=GOLF.feature_names, table="rows", **FORMS[form]
    )
    columns = dict(zip(GOLF.feature_names, map(list, zip(*rows, strict=True)), strict=True))
    assert DATABASES[dialect](query, columns) == model.predict(np.array(rows, object)).tolist()


@in_each_form
@in_each_database
def test_truth_values(dialect, form):
    values = np.array([True, False, True, False], object)[:, None]
    model = DecisionTreeClassifier().fit(values, [True, False, True, False])
    query = export_sql(model, dialect=dialect, table="rows", **FORMS[form])
    assert DATABASES[dialect](query, {"x0": [True, False, None]})[:2] == [True, False]


def test_rows_in_shares_are_refused_or_sent_to_the_largest():
    model = C45Classifier(pruning=None).fit(GOLF.data, GOLF.target)
    with pytest.raises(ValueError, match=r"SQL cannot represent this tree.*missing='largest'"):
        export_sql(model)
    whole = dict(zip([f"x{j}" for j in range(4)], GOLF.data.T.tolist(), strict=True))
    query = export_sql(model, dialect="sqlite", missing="largest", table="rows")
    assert in_sqlite(query, whole) == model.predict(GOLF.data).tolist()
    weights = model.tree_.weight[model.tree_.children(0)]
    node = export_sql(model, dialect="sqlite", missing="largest", output="node", table="rows")
    nowhere = {name: [None] for name in whole}
    found = in_sqlite(node, nowhere)[0]
    while model.tree_.parent[found] > 0:
        found = model.tree_.parent[found]
    assert found == 1 + weights.argmax()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "oracle"}, "'dialect' parameter of export_sql must be a str among"),
        ({"output": "leaf"}, "'output' parameter of export_sql must be a str among"),
        ({"table": 5}, "'table' parameter of export_sql must be an instance of 'str' or None"),
        ({"output": "probability", "probability_of": "maybe"}, "probability_of must be one of"),
        ({"missing": "left"}, "'missing' parameter of export_sql must be a str among"),
        ({"feature_names": ["a"]}, "feature_names must contain 4 elements"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        export_sql(DecisionTreeClassifier().fit(GOLF.data, GOLF.target), **options)


def test_a_regression_tree_has_no_shares():
    model = DecisionTreeRegressor().fit([[1.0], [2.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"a regression tree has no classes. Leave it out"):
        export_sql(model, output="probability", probability_of="yes")


@pytest.mark.full
@in_each_form
def test_a_deep_tree_in_sqlite(form):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 50, (4000, 2)).astype(float)
    values[rng.random(values.shape) < 0.05] = np.nan
    words = np.array(["a", "b", "c", None], object)[rng.integers(0, 4, 4000)]
    table = np.column_stack([values.astype(object), words])
    table[np.isnan(values[:, 0]), 0] = None
    table[np.isnan(values[:, 1]), 1] = None
    model = DecisionTreeRegressor().fit(table, rng.exponential(size=4000) ** 3)
    assert model.get_depth() > 20
    query = export_sql(model, dialect="sqlite", table="rows", **FORMS[form])
    columns = {f"x{j}": table[:, j].tolist() for j in range(3)}
    assert in_sqlite(query, columns) == model.predict(table).tolist()


@given(multiway_cases(min_rows=1))
def test_one_case_answers_as_the_tree_does(case):
    tree, values = case
    model = single_paths(model_of(tree), "largest", "SQL")
    expression = Writer(model, DIALECTS["sqlite"]).flat(str)
    found = in_sqlite(f"SELECT {expression} FROM rows", columns_of(values))
    assert found == [heaviest(tree, row) for row in values]


def test_columns_that_databases_take_for_one():
    model = DecisionTreeClassifier().fit(GOLF.data, GOLF.target)
    with pytest.raises(ValueError, match=r"does not distinguish the columns 'A' and 'a'"):
        export_sql(model, feature_names=["A", "b", "a", "c"])


def test_sqlite_misses_a_column():
    query = export_sql(DecisionTreeClassifier().fit(GOLF.data, GOLF.target), dialect="sqlite")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        in_sqlite(f"SELECT {query} FROM rows", {"outlook": ["sunny"]})


def test_what_sql_has_not():
    model = DecisionTreeClassifier().fit(GOLF.data, GOLF.target)
    with pytest.raises(ValueError, match="cannot represent the name"):
        export_sql(model, feature_names=["a", "b\0", "c", ""])
    mixed = np.array([1, "a", 1, "b"], object)[:, None]
    with pytest.raises(ValueError, match="both numbers and text"):
        export_sql(DecisionTreeClassifier().fit(mixed, [0, 1, 0, 0]))
    deep = replace(model.tree_, depth=np.where(model.tree_.is_leaf, 400, 0).astype(np.int32))
    with pytest.raises(ValueError, match=r"its depth is 400.* Pass nodes='NAME'"):
        export_sql(deep)


def test_an_expression_alone():
    model = DecisionTreeRegressor(max_depth=1).fit(GOLF.data, range(14))
    assert export_sql(model).startswith("CAST(\nCASE\n  WHEN")


@in_each_database
def test_trees_that_no_expression_holds(dialect):
    tree = chain(2000)
    with pytest.raises(ValueError, match=r"represent this tree: its depth .* Pass nodes='NAME'"):
        export_sql(tree, dialect=dialect, table="rows")
    query = export_sql(tree, dialect=dialect, output="node", table="rows", nodes="tree")
    asked = np.append(np.arange(0.0, 2010.0, 67), np.nan)
    columns = {"x0": [None if x != x else x for x in asked.tolist()]}
    assert DATABASES[dialect](query, columns) == apply(tree, asked[:, None]).tolist()


@pytest.mark.full
def test_trees_that_sqlite_plans_for_minutes():
    x = np.random.default_rng(0).normal(size=(25_000, 2))
    model = DecisionTreeRegressor(max_leaf_nodes=10_002).fit(x, x[:, 0] * x[:, 1])
    error = "it has 20,003 nodes, and SQLite takes minutes to plan more than 20,000"
    with pytest.raises(ValueError, match=error):
        export_sql(model, dialect="sqlite")
    query = export_sql(model, dialect="sqlite", table="rows", nodes="tree")
    columns = {"x0": x[:500, 0].tolist(), "x1": x[:500, 1].tolist()}
    assert in_sqlite(query, columns) == model.predict(x[:500]).tolist()


@in_each_database
def test_names_of_columns_that_a_table_of_nodes_has(dialect):
    """They are those of the rows, where the tree is meant."""
    names = ["node", "here", "c0", "threshold", "answer"]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 5))
    model = DecisionTreeRegressor().fit(x, (x[:, 0] > 0) * x[:, 1] + x[:, 2] * x[:, 3] + x[:, 4])
    query = export_sql(model, dialect=dialect, feature_names=names, table="rows", nodes="tree")
    columns = {name: column.tolist() for name, column in zip(names, x.T, strict=True)}
    assert DATABASES[dialect](query, columns) == model.predict(x).tolist()


@in_each_database
def test_one_node_as_a_table(dialect):
    model = DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    query = export_sql(model, dialect=dialect, table="rows", nodes="tree")
    assert DATABASES[dialect](query, {"x0": [5.0, None]}) == ["a", "a"]


def test_what_a_table_of_nodes_needs():
    model = DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(ValueError, match="nodes needs table"):
        export_sql(model, nodes="tree")
    model.classes_ = np.array(["a", 1], object)
    with pytest.raises(ValueError, match=r"represent labels of type int, str: .* class_names"):
        export_sql(model, nodes="tree", table="rows")
    export_sql(model, nodes="tree", table="rows", class_names=["a", "1"])
