"""Models as scikit-learn's: rows of float64 numbers, and the programs that read the result."""

import json

import numpy as np
import pytest
from sklearn import tree as sklearn_tree
from sklearn.datasets import load_iris

from gputree import (
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.export import shap_values, to_sklearn

X, Y = load_iris(return_X_y=True)


def forest_of(X, seed=0, **others):
    """A forest on drawn rows, and its targets."""
    y = np.floor(np.abs(np.nan_to_num(X)).sum(axis=1) * 7) % 3
    kind = RandomForestRegressor(6, random_state=seed, n_jobs=1, **others)
    return kind.fit(X, y), y


# ------------------------------------------------------------------------- float64 rows
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_given_are_predicted_alike(seed):
    """Decimals lie at thresholds: 4.9 is midway between 4.8 and 5.0."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(120, 3)).round(1)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    forest, _ = forest_of(rows, seed)
    theirs = to_sklearn(forest, rows)
    assert (theirs.predict(rows) == forest.predict(rows)).all()
    moved = [
        (ours.tree_.threshold != other.tree_.threshold).any()
        for ours, other in zip(forest, theirs.estimators_, strict=True)
    ]
    assert any(moved)  # else the rows show nothing


def test_thresholds_are_placed_for_values_beside_them():
    """Above, at and below a threshold, as near as float64 has them."""
    rows = np.array([[4.8], [5.0]] * 3)
    model = DecisionTreeClassifier().fit(rows, rows[:, 0] > 4.9)
    (threshold,) = model.tree_.threshold[~model.tree_.is_leaf]
    ends = np.float64([np.nextafter(np.float32(4.9), np.float32(e)) for e in (4, 6)])
    for beside in ([threshold], [np.nextafter(threshold, 5.0)], ends):
        given = np.append(rows[:, 0], beside)[:, None]
        theirs = to_sklearn(model, given)
        assert (theirs.predict(given) == model.predict(given)).all()
        bare = to_sklearn(model.tree_, given)
        assert (bare.apply(given) == model.apply(given)).all()


def test_numbers_that_are_one_float32_number_are_an_error():
    rows = np.array([[4.9], [np.nextafter(4.9, 5.0)], [5.0]] * 3)
    model = DecisionTreeClassifier().fit(rows, rows[:, 0] > 4.9)
    with pytest.raises(ValueError, match=r"node 0 divides numbers at 4\.9.* one float32 number"):
        to_sklearn(model, rows)
    with pytest.raises(ValueError, match=r"X must have 1 columns, .* got shape \(9, 2\)"):
        to_sklearn(model.tree_, np.zeros((9, 2)))


def test_a_forest_of_float64_numbers_needs_its_rows():
    forest, _ = forest_of(X[::5])
    with pytest.raises(ValueError, match=r"numbers that float32 does not have.*\(forest, X\)"):
        to_sklearn(forest)
    table = CodedTable(X[::5])
    assert (to_sklearn(forest, table).predict(X[::5]) == forest.predict(table)).all()


@pytest.mark.parametrize("rows", [X[::5].astype(np.float32), np.round(10 * X[::5])])
def test_forests_of_float32_numbers_and_whole_ones_need_none(rows):
    forest, _ = forest_of(rows)
    assert (to_sklearn(forest).predict(rows) == forest.predict(rows)).all()


def test_drawn_thresholds_are_the_number_of_no_row():
    drawn = ExtraTreesClassifier(3, random_state=0).fit(X[::5], Y[::5])
    assert (to_sklearn(drawn).predict_proba(X) == drawn.predict_proba(X)).all()


@pytest.mark.full
@pytest.mark.parametrize("digits", [1, 3, 5])
def test_all_rows_of_larger_forests(digits):
    rows = np.random.default_rng(digits).normal(size=(2_000, 4)).round(digits)
    forest, _ = forest_of(rows)
    assert (to_sklearn(forest, rows).predict(rows) == forest.predict(rows)).all()


# ------------------------------------------------------------------------- programs
@pytest.fixture(scope="module")
def trees():
    """A tree and a forest of gputree, and both converted."""
    tree = DecisionTreeClassifier(max_depth=3).fit(X, Y)
    forest = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, Y)
    return tree, forest, to_sklearn(tree), to_sklearn(forest, X)


def test_functions_of_scikit_learn_take_it(trees):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    tree, forest, *converted = trees
    for ours, theirs in ((tree, converted[0]), (forest[1], converted[1].estimators_[1])):
        leaves = ours.tree_.n_leaves
        assert sklearn_tree.export_text(theirs).count("class:") == leaves
        dot = sklearn_tree.export_graphviz(theirs, filled=True)
        assert dot.count("->") == ours.tree_.n_nodes - 1
        assert len(sklearn_tree.plot_tree(theirs)) >= ours.tree_.n_nodes
        path = theirs.decision_path(X)
        assert (path.toarray() == ours.decision_path(X).toarray()).all()


def test_shap_takes_it(trees):
    shap = pytest.importorskip("shap", reason="shap is not installed")
    for ours, theirs in (trees[::2], trees[1::2]):
        found = shap_values(ours, X)
        expected = shap.TreeExplainer(theirs).shap_values(X)
        np.testing.assert_allclose(found.values, expected, atol=1e-12)
        base = np.tile(found.base_values, (len(X), 1))
        assert shap.Explanation(found.values, base, X)[:, :, 0].shape == X.shape


def test_dtreeviz_takes_it(trees):
    dtreeviz = pytest.importorskip("dtreeviz", reason="dtreeviz is not installed")
    given = {"X_train": X, "y_train": Y, "feature_names": list("abcd"), "target_name": "kind"}
    shown = dtreeviz.model(trees[2], **given, class_names=["u", "v", "w"])
    assert shown.explain_prediction_path(X[0])


def test_supertree_takes_it(trees, tmp_path):
    supertree = pytest.importorskip("supertree", reason="supertree is not installed")
    y = X[:, 0]
    regression = to_sklearn(DecisionTreeRegressor(max_depth=2).fit(X, y))
    for model, target in ((trees[2], Y), (trees[3], Y), (regression, y)):
        shown = supertree.SuperTree(model, X, target, list("abcd"), ["u", "v", "w"])
        shown.save_json_tree(str(tmp_path / "tree"), which_tree=0)
        assert json.loads((tmp_path / "tree.json").read_text())


def test_skops_reads_it_and_names_what_to_trust_of_ours(trees):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    for model in trees:
        data = skops.dumps(model)
        asked = skops.get_untrusted_types(data=data)
        assert all(name.startswith(("gputree.", "sklearn.tree.")) for name in asked)
        again = skops.loads(data, trusted=asked)
        assert (again.predict_proba(X) == model.predict_proba(X)).all()
