"""The table of a cost-complexity sequence: its numbers, and how it prints, as rpart's printcp."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    export_json,
    load_model,
    read_json,
    save_model,
)
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.pruning import CostComplexity, CostComplexityCV, cp_table
from gputree.pruning.cost_complexity import CP_TABLE, CPTable

# `printcp` of rpart's manual, of kyphosis.
KYPHOSIS = """
        CP nsplit rel error xerror    xstd
1 0.176471      0   1.00000 1.0000 0.21559
2 0.019608      1   0.82353 1.1176 0.22433
3 0.010000      4   0.76471 1.1176 0.22433
"""


def kyphosis() -> CPTable:
    """The same table before it is rounded: 17 of 81 rows are of the other class."""
    rows = np.zeros(3, CP_TABLE)
    rows["cp"] = [3 / 17, 1 / 51, 0.01]
    rows["nsplit"] = [0, 1, 4]
    rows["relative_error"] = [1, 14 / 17, 13 / 17]
    rows["xerror"] = [1, 19 / 17, 19 / 17]
    rows["xstd"] = [0.2155872, 0.2243268, 0.2243268]
    return CPTable(rows, "error")


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def test_a_table_prints_as_rpart_prints_it():
    assert words(str(kyphosis())) == words(KYPHOSIS)
    assert repr(kyphosis()) == str(kyphosis())


def test_columns_and_parts_of_a_table():
    table = kyphosis()
    assert type(table["cp"]) is np.ndarray
    assert words(str(table[:1]))[1:] == [["1", "0.17647", "0", "1", "1", "0.21559"]]
    assert words(str(table[["cp", "nsplit"]]))[0] == ["CP", "nsplit"]
    assert words(str(table[:0])) == words(KYPHOSIS)[:1]
    assert table.copy().risk == "error"
    assert repr(table.reshape(1, 3)) == repr(np.asarray(table).reshape(1, 3))
    assert table.reshape(1, 3)._repr_html_() is None
    table["xerror"] = table["xstd"] = np.nan
    assert words(str(table))[0] == ["CP", "nsplit", "rel", "error"]
    table["cp"] = [0.5, 3e-13, np.inf]
    assert [row[1] for row in words(str(table))[1:]] == ["0.5", "3e-13", "inf"]


def test_a_table_as_html_and_frame():
    pandas = pytest.importorskip("pandas")
    html = kyphosis()._repr_html_()
    assert html.startswith("<table><tr><th></th><th>CP</th><th>nsplit</th><th>rel error</th>")
    assert "<tr><td>2</td><td>0.019608</td><td>1</td>" in html
    frame = kyphosis().to_frame()
    assert list(frame.columns) == list(CP_TABLE.names)
    pandas.testing.assert_series_equal(frame["nsplit"], pandas.Series([0, 1, 4], name="nsplit"))


def test_a_table_is_pickled_with_its_risk():
    again = pickle.loads(pickle.dumps(kyphosis()))
    assert (type(again), again.risk) == (CPTable, "error")
    np.testing.assert_array_equal(again, kyphosis())


TREES = {
    "classes": (DecisionTreeClassifier(), load_iris(return_X_y=True)),
    "numbers": (DecisionTreeRegressor(min_samples_leaf=10), load_auto_mpg(return_X_y=True)),
    "multiway": (C45Classifier(pruning=None, min_samples_leaf=1), load_golf(return_X_y=True)),
}


@pytest.mark.parametrize("risk", ["error", "impurity"])
@pytest.mark.parametrize(("estimator", "table"), TREES.values(), ids=TREES)
def test_each_row_is_the_tree_pruned_at_its_alpha(estimator, table, risk):
    fitted = estimator.fit(*table)
    rows = cp_table(fitted, risk)
    assert rows.risk == risk
    assert np.isnan(rows["xerror"]).all()
    assert (rows["nsplit"][0], rows["n_leaves"][0], rows["relative_error"][0]) == (0, 1, 1)
    for row in rows:
        tree = CostComplexity(row["alpha"] * (1 + 1e-9), risk).prune_tree(fitted.tree_)
        assert row["n_leaves"] == tree.n_leaves
        assert row["nsplit"] == np.count_nonzero(~tree.is_leaf)
    pruned = CostComplexity(0.1).prune(fitted)  # the tree as it was grown
    assert str(cp_table(pruned, risk)) == str(cp_table(fitted.tree_, risk)) == str(rows)


def test_no_table_without_one_tree_and_a_risk():
    with pytest.raises(NotFittedError):
        cp_table(DecisionTreeClassifier())
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="pass one of its estimators_"):
        cp_table(RandomForestClassifier(n_estimators=1).fit(X, y))
    with pytest.raises(ValueError, match=r"'risk' parameter of cp_table must be .* Got 'gini'"):
        cp_table(DecisionTreeClassifier(max_depth=1).fit(X, y), "gini")


def test_a_table_is_saved_with_its_tree(tmp_path):
    X, y = load_iris(return_X_y=True)
    pruner = CostComplexityCV(cv=3, risk="error", random_state=0)
    tree = DecisionTreeClassifier(max_depth=3, pruning=pruner).fit(X, y)
    tree.cp_table_["xerror"][0] = np.inf  # of a deviance
    save_model(tree, tmp_path / "model")
    (tmp_path / "model.json").write_text(export_json(tree))
    for kept in (load_model(tmp_path / "model"), read_json(tmp_path / "model.json")):
        assert kept.cp_table_.risk == "error"
        np.testing.assert_array_equal(kept.cp_table_, tree.cp_table_)
    afterwards = pruner.prune(DecisionTreeClassifier(max_depth=3).fit(X, y), X, y)
    assert afterwards.cp_table_ is pruner.cp_table_


# ----------------------------------------------------------------------- the command
@pytest.fixture
def shown(said, gputree, tmp_path):
    """Return a function that trains a model with options and returns the output of `show --cp`."""

    def show(table, target, *options):
        path = tmp_path / "model"
        status, _, error = gputree(
            "train", table.filename, "--target", target, *options, "-o", path
        )
        assert status == 0, error
        return said("show", path, "--cp"), load_model(path)

    return show


def test_the_command_prints_what_is_relative_to_what(shown):
    text, model = shown(load_auto_mpg(), "mpg", "--max-depth", "2")
    head, about, table, hint = text.strip().split("\n\n")
    assert head.startswith("DecisionTreeRegressor (squared_error): 7 columns, 7 nodes")
    assert words(about) == [
        ["columns", "used", "displacement,", "horsepower,", "weight"],
        ["root", "node", "error", "24252.6/398", "=", "60.936"],
        ["rows", "398"],
    ]
    assert table == str(cp_table(model.tree_))
    assert "cost_complexity:cp=CP makes" in hint
    assert "--pruning cost_complexity_cv" in hint


def test_the_command_prints_cross_validated_errors(shown):
    text, model = shown(load_iris(), "species", "--pruning", "cost_complexity_cv:cv=3")
    assert "root node error  100/150 = 0.66667\nroot node gini   100/150 = 0.66667\n" in text
    assert str(model.cp_table_) in text
    assert "xerror" in text
    assert text.endswith(
        "--pruning cost_complexity:cp=CP,risk=impurity makes the tree of a line.\n"
    )


def test_the_command_wants_one_tree(misused, gputree, tmp_path):
    path = tmp_path / "model"
    iris = ["train", load_iris().filename, "--target", "species", "-o", path]
    few = ["--algorithm", "random-forest", "--n-estimators", "2", "--max-depth", "1"]
    assert gputree(*iris, *few)[0] == 0
    assert "gputree show --cp takes one tree, and this model has 2: add" in misused(
        "show", path, "--cp"
    )
    assert "CP" in gputree("show", path, "--cp", "--tree", "2")[1]
    assert "--max-depth is no option with --cp" in misused("show", path, "--cp", "--max-depth", "1")
    assert gputree(*iris, "--algorithm", "c45", "--rules")[0] == 0
    assert "--cp is for trees" in misused("show", path, "--cp")
