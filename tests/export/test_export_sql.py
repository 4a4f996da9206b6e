"""Trees as SQL: databases predict as the tree does, bit for bit."""

import sqlite3
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import postgres_server
import pytest
from databases import in_duckdb, in_sqlite
from hand_made_trees import chain
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import N_CODES, heaviest, heaviest_answers, multiway_cases
from saved_models import FRAME, fitted

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_golf
from gputree.export import export_sql
from gputree.export.model import model_of, single_paths
from gputree.export.sql import DIALECTS, Writer

GOLF = load_golf()


in_each_database = pytest.mark.parametrize(
    "dialect", ["sqlite", "duckdb", pytest.param("postgres", marks=pytest.mark.process)]
)


DATABASES = {"sqlite": in_sqlite, "duckdb": in_duckdb, "postgres": None}


@pytest.fixture(scope="module", autouse=True)
def _servers():
    """A Postgres server, started when it is first queried."""
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
    """Columns with None where missing; codes are integers."""
    out = {}
    for j, (column, n_codes) in enumerate(zip(values.T, N_CODES, strict=True)):
        kind = float if n_codes == 0 else int
        out[f"x{j}"] = [None if x != x else kind(x) for x in column.tolist()]
    return out


@in_each_database
@given(multiway_cases(min_rows=1), st.randoms())
def test_databases_answer_as_the_tree_does(dialect, case, random):
    tree, values = case
    columns, ask = columns_of(values), DATABASES[dialect]
    asked = {"dialect": dialect, "table": "rows", "missing": "largest"}
    node = export_sql(tree, output="node", **asked)
    assert ask(node, columns) == [heaviest(tree, row) for row in values]
    k = random.randrange(tree.n_classes)
    share = export_sql(tree, output="probability", probability_of=k, **asked)
    assert ask(share, columns) == heaviest_answers(tree, values)[:, k].tolist()


@in_each_database
@pytest.mark.parametrize("case", ["forest", "drawn cuts, targets"])
def test_databases_answer_as_the_forest_does(dialect, case):
    model, ask = fitted(case), DATABASES[dialect]
    rows = FRAME.assign(text=np.where(FRAME["noise"] == 1, "unseen", FRAME["text"]))
    columns = {
        name: [None if x is None or x != x else x for x in rows[name].tolist()] for name in rows
    }
    asked = {"dialect": dialect, "table": "rows"}
    assert ask(export_sql(model, **asked), columns) == model.predict(rows).tolist()
    if case == "forest":
        asked |= {"output": "probability", "probability_of": "perhaps"}
        assert ask(export_sql(model, **asked), columns) == model.predict_proba(rows)[:, 1].tolist()


def numbers_that_are_hard_to_read():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=300), 10.0 ** rng.uniform(-300, 300, 100)])
    y = rng.normal(size=x.size) * 10.0 ** rng.uniform(-2, 2, x.size)
    model = DecisionTreeRegressor().fit(x[:, None], y)
    asked = np.concatenate([x, model.tree_.threshold[~model.tree_.is_leaf]])
    return model, {'a "name"': asked.tolist()}, model.predict(asked[:, None])


def whole_numbers_are_rounded_as_in_predict():
    """2^53 + 1 is 2^53 in float64; Postgres and SQLite compare it as it is."""
    known = 2.0**53 + 2 * np.arange(4)
    model = DecisionTreeRegressor().fit(known[:, None], np.arange(4.0))
    asked = [2**53 + i for i in range(-2, 9)]
    return model, {"x0": asked}, model.predict(np.array(asked, float)[:, None])


def words_that_are_hard_to_quote():
    words = ["it's", "a\\b", 'a"b', "\n", "\t", "é", "", "  ", "E'x'", "%s", "NULL", "$1", ";--"]
    table = np.array([*words, None, "unseen"], object)[:, None]
    model = ID3Classifier().fit(table[:13], ["don't", "\\", "x;"] * 4 + ["y"])
    return model, {'a "name"': table[:, 0].tolist()}, model.predict(table)


def nan_is_missing():
    values = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = DecisionTreeClassifier().fit(values, ["a", "b", "c", "c"])
    return model, {"x0": [1.0, 2.0, float("nan"), None]}, np.array(list("abcc"))


def categories_and_labels_by_their_names(kind):
    data = GOLF.data.copy()
    data[data == "sunny"] = "sun's"
    model = kind().fit(data, np.where(GOLF.target == "no", "don't", "do"))
    rows = [*data.tolist(), ["fog", "mild", "high", "weak"], [None, "mild", "high", "weak"]]
    columns = zip(GOLF.feature_names, map(list, zip(*rows, strict=True)), strict=True)
    return model, dict(columns), model.predict(np.array(rows, object))


def truth_values():
    values = np.array([True, False, True, False], object)[:, None]
    model = DecisionTreeClassifier().fit(values, [True, False, True, False])
    return model, {"x0": [True, False]}, np.array([True, False])


def one_node():
    model = DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    return model, {"x0": [5.0, None]}, np.array(["a", "a"])


HARD_TABLES = [
    numbers_that_are_hard_to_read,
    whole_numbers_are_rounded_as_in_predict,
    words_that_are_hard_to_quote,
    nan_is_missing,
    partial(categories_and_labels_by_their_names, ID3Classifier),
    partial(categories_and_labels_by_their_names, DecisionTreeClassifier),
    truth_values,
    one_node,
]


@in_each_database
@pytest.mark.parametrize("case", HARD_TABLES)
def test_hard_tables(dialect, case):
    model, columns, expected = case()
    options = {"dialect": dialect, "feature_names": list(columns), "table": "rows"}
    query = export_sql(model, **options)
    assert DATABASES[dialect](query, columns) == expected.tolist()


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_decimals_are_rounded_as_in_predict(dialect):
    model = DecisionTreeClassifier().fit([[0.1], [0.3]], [0, 1])
    threshold = Decimal(float(model.tree_.threshold[0]))
    asked = [Decimal(f"{threshold + Decimal(step):.30f}") for step in ("-1e-9", "1e-25", "1e-9")]
    query = export_sql(model, dialect=dialect, table="rows")
    assert DATABASES[dialect](query, {"x0": asked}) == [0, 0, 1]


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
def test_a_deep_tree_in_sqlite():
    rng = np.random.default_rng(1)
    values = rng.integers(0, 50, (4000, 2)).astype(float)
    values[rng.random(values.shape) < 0.05] = np.nan
    words = np.array(["a", "b", "c", None], object)[rng.integers(0, 4, 4000)]
    table = np.column_stack([values.astype(object), words])
    table[np.isnan(values[:, 0]), 0] = None
    table[np.isnan(values[:, 1]), 1] = None
    model = DecisionTreeRegressor().fit(table, rng.exponential(size=4000) ** 3)
    assert model.get_depth() > 20
    query = export_sql(model, dialect="sqlite", table="rows")
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
    with pytest.raises(ValueError, match=r"its depth is 400.* Prune it"):
        export_sql(deep)


def test_an_expression_alone():
    model = DecisionTreeRegressor(max_depth=1).fit(GOLF.data, range(14))
    assert export_sql(model).startswith("CAST(\nCASE\n  WHEN")


@in_each_database
def test_trees_that_no_expression_holds(dialect):
    tree = chain(600)
    with pytest.raises(ValueError, match=r"represent this tree: its depth .* Prune it"):
        export_sql(tree, dialect=dialect, table="rows")


@pytest.mark.full
def test_trees_that_sqlite_plans_for_minutes():
    x = np.random.default_rng(0).normal(size=(25_000, 2))
    model = DecisionTreeRegressor(max_leaf_nodes=10_002).fit(x, x[:, 0] * x[:, 1])
    error = "it has 20,003 nodes, and SQLite takes minutes to plan more than 20,000"
    with pytest.raises(ValueError, match=error):
        export_sql(model, dialect="sqlite")
