"""Forests in the formats of other programs, which predict as the forest does, bit for bit."""

import numpy as np
import pandas as pd
import pytest
from databases import in_duckdb, in_sqlite
from programs import PROGRAMS, booster_of, coded, predictions, run_onnx
from sklearn.exceptions import NotFittedError

import gputree.export
from gputree import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    export_json,
)
from gputree.export import (
    export_c,
    export_lightgbm,
    export_python,
    export_sql,
    shap_values,
    to_onnx,
    to_sklearn,
)

RANDOM = np.random.default_rng(0)
N = 90
TABLE = pd.DataFrame(
    {
        "a": np.where(RANDOM.random(N) < 0.2, np.nan, RANDOM.normal(size=N)),
        "T0_0": RANDOM.choice(["x", "y", "z", "it's", None], N),  # as a column of the SQL's own
        "c": RANDOM.integers(0, 4, N) / 4,
    }
)
TARGET = np.nan_to_num(TABLE["a"]) + (TABLE["T0_0"] == "x") + 0.3 * RANDOM.normal(size=N)
THREE = np.array(["high", "low", "mid"])[np.digitize(TARGET, [0.0, 0.7])]
ROWS = TABLE.copy()
ROWS.loc[::3, "T0_0"], ROWS.loc[::5, "a"], ROWS.loc[1::7, "c"] = "unknown", np.nan, np.nan
CASES = {
    "three classes": (RandomForestClassifier, THREE, 5),
    "two classes": (ExtraTreesClassifier, THREE == "mid", 4),
    "targets": (ExtraTreesRegressor, TARGET, 7),
    "one tree": (RandomForestClassifier, THREE, 1),
    "one class": (RandomForestClassifier, np.full(N, "only"), 2),
}


@pytest.fixture(scope="module")
def forests():
    return {
        name: kind(n_estimators=n, min_samples_leaf=3, random_state=0).fit(TABLE, target)
        for name, (kind, target, n) in CASES.items()
    }


# ---------------------------------------------------------------- formats of programs
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_answer_as_the_forest_does(program, forests, tmp_path):
    for name, forest in forests.items():
        (tmp_path / name).mkdir()
        PROGRAMS[program](forest, ROWS, tmp_path / name)


def test_lightgbm_adds_contributions_and_raw_scores_up():
    forest = RandomForestRegressor(n_estimators=3, max_depth=4, random_state=0).fit(TABLE, TARGET)
    booster = booster_of(forest)
    found = booster.predict(coded(forest, ROWS), pred_contrib=True) / 3
    expected = shap_values(forest, ROWS)
    np.testing.assert_allclose(found[:, :-1], expected.values, atol=1e-12)
    np.testing.assert_allclose(found[:, -1], expected.base_values, atol=1e-12)
    raw = booster.predict(coded(forest, ROWS), raw_score=True)
    assert np.array_equal(raw / 3, forest.predict(ROWS))


def test_onnx_adds_many_trees_in_their_order_on_any_number_of_threads():
    """One operator of more than 80 trees would add up by threads, and round otherwise."""
    X = np.random.default_rng(1).normal(size=(40, 3))
    forest = RandomForestRegressor(n_estimators=90, max_leaf_nodes=4).fit(X, X[:, 0] / 3)
    made = to_onnx(forest)
    for threads in (1, 3):
        (found,) = run_onnx(made, {"X": X}, threads)
        assert found.tolist() == forest.predict(X).tolist()


def test_onnx_within_the_limit_of_protobuf(monkeypatch):
    pytest.importorskip("onnx", reason="onnx is not installed")
    forest = RandomForestRegressor(n_estimators=3, max_depth=2).fit(TABLE, TARGET)
    size = len(to_onnx(forest).SerializeToString())
    monkeypatch.setattr(gputree.export.onnx, "_MOST_BYTES", size // 2)
    with pytest.raises(ValueError, match=r"up to number 2 of 3 take .* protobuf allows 2 GiB"):
        to_onnx(forest)


@pytest.mark.parametrize("case", CASES)
def test_sklearn(case):
    kind, target, n = CASES[case]
    X = np.nan_to_num(TABLE[["a", "c"]].to_numpy(np.float32))
    forest = kind(n_estimators=n, min_samples_leaf=3, random_state=0).fit(X, target)
    theirs = to_sklearn(forest)
    assert type(theirs).__name__ == kind.__name__
    assert theirs.predict(X).tolist() == forest.predict(X).tolist()
    assert np.array_equal(predictions(theirs, X), predictions(forest, X))


# ------------------------------------------------------------------------------- limits
@pytest.mark.parametrize("ask", [in_sqlite, pytest.param(in_duckdb, marks=pytest.mark.full)])
def test_sql_of_deep_trees(ask):
    """Parsers have a depth, of which the query around the trees takes some."""
    X, y, weight = np.arange(24.0)[:, None], np.arange(24) % 3, 4.0 ** -np.arange(24)
    for depth in (9, 10, 11, 14, 15, 16):
        forest = RandomForestClassifier(n_estimators=2, max_depth=depth, bootstrap=False)
        forest.fit(X, y, sample_weight=weight)
        assert [tree.get_depth() for tree in forest.estimators_] == [depth, depth]
        expression = export_sql(forest, dialect=ask.__name__.removeprefix("in_"))
        query = f"SELECT *, {'(' * 12}{expression}{')' * 12} AS label FROM rows"
        assert ask(query, {"x0": X[:, 0].tolist()}) == forest.predict(X).tolist()


@pytest.mark.parametrize(
    ("export", "module", "limit", "message"),
    [
        (export_python, "code", "MOST_NODES", "export_python takes forests of at most 20 nodes, "),
        (export_c, "code", "MOST_NODES", "export_c takes forests of at most 20 nodes, and this"),
        (
            export_sql,
            "sql",
            "_MOST_NODES",
            "expression of SQL takes forests of at most 6 nodes and",
        ),
        (export_sql, "sql", "_MOST_TREES", "at most 3,333 nodes and 6 trees, and this one of 9 "),
    ],
)
def test_large_forests(export, module, limit, message, monkeypatch):
    forest = RandomForestClassifier(n_estimators=9, max_depth=2, random_state=0).fit(TABLE, THREE)
    monkeypatch.setattr(f"gputree.export.{module}.{limit}", 20)
    with pytest.raises(ValueError, match=message):
        export(forest)
    assert export(forest.estimators_[0])


# ------------------------------------------------------------------- formats of one tree
OF_ONE = ["export_text", "export_html", "export_graphviz", "to_dict", "path_rules", "plot_tree"]


@pytest.mark.parametrize("name", [*OF_ONE, "explain"])
def test_formats_of_one_tree_name_the_trees(name):
    if name == "plot_tree":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    forest = RandomForestRegressor(n_estimators=3, max_depth=2).fit(TABLE, TARGET)
    function, rows = getattr(gputree.export, name), (TABLE,) if name == "explain" else ()
    message = r"takes one tree, and RandomForestRegressor has 3: pass one of them, estimators_\[i\]"
    with pytest.raises(TypeError, match=message):
        function(forest, *rows)
    if name != "plot_tree":
        assert function(forest.estimators_[2], *rows)


def test_numbers_of_nodes_in_sql_take_one_tree():
    forest = RandomForestRegressor(n_estimators=3, max_depth=2).fit(TABLE, TARGET)
    with pytest.raises(ValueError, match=r"takes one tree, .* has 3: pass one of them"):
        export_sql(forest, output="node")


@pytest.mark.parametrize(
    "export",
    [export_json, export_lightgbm, export_python, export_c, export_sql, to_sklearn, to_onnx],
)
def test_forests_that_are_not_fitted(export):
    with pytest.raises(NotFittedError):
        export(RandomForestClassifier())
