"""Trees and forests by absolute error and quantiles: scikit-learn's losses, laws, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import tree as sklearn_tree
from sklearn.metrics import mean_absolute_error

from gputree import (
    CodedTable,
    DecisionTreeRegressor,
    RandomForestRegressor,
    export_text,
    load_model,
    save_model,
)
from gputree.editing import TreeEditor
from gputree.pruning import CostComplexity, ReducedError, cost_complexity_path
from gputree.tree import Tree


def new_tree(criterion="absolute_error", **parameters):
    """A tree on the CPU."""
    return DecisionTreeRegressor(criterion=criterion, device="cpu", n_jobs=1, **parameters)


def table(seed, n=60, d=3):
    """Columns with few values, and a target of the first two."""
    r = np.random.default_rng(seed)
    X = np.round(r.normal(size=(n, d)), 1)
    return X, X[:, 0] ** 2 + np.abs(X[:, 1]) + r.normal(size=n)


def pinball(y, weight, level):
    """Minimum pinball loss of some rows, over predictions at their targets."""
    losses = [
        (weight * np.where(y > m, level * (y - m), (1 - level) * (m - y))).sum()
        for m in np.unique(y)
    ]
    return min(losses) / weight.sum()


def fields_of(tree: Tree):
    """The arrays of a tree by name."""
    return {name: value for name, value in vars(tree).items() if isinstance(value, np.ndarray)}


def assert_same(a: Tree, b: Tree, but=()):
    for name, value in fields_of(a).items():
        if name not in but:
            np.testing.assert_array_equal(value, getattr(b, name), err_msg=name)


@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("limits", [{}, {"min_samples_leaf": 4}, {"min_impurity_decrease": 0.02}])
def test_losses_are_those_of_scikit_learn(limits, n_targets):
    """Targets are continuous: their best cuts are seldom tied above the last levels."""
    X, y = table(0, 120)
    if n_targets > 1:
        y = np.stack([y, X[:, 1] + np.roll(y, 7), 3.0 + np.roll(y, 3) ** 2], axis=1)
    for depth in (1, 2, 3):
        theirs = sklearn_tree.DecisionTreeRegressor(
            criterion="absolute_error", max_depth=depth, **limits
        )
        ours = new_tree(max_depth=depth, **limits).fit(X, y)
        expected = mean_absolute_error(y, theirs.fit(X, y).predict(X))
        assert mean_absolute_error(y, ours.predict(X)) == pytest.approx(expected, rel=1e-12)


@given(
    st.integers(0, 10**6),
    st.sampled_from([{}, {"min_samples_leaf": 3}, {"max_leaf_nodes": 5}, {"max_features": 2}]),
    st.sampled_from([None, 0.5, 0.9]),
)
def test_a_target_given_twice_or_four_times_grows_the_tree_of_one(seed, limits, quantile):
    """Targets of few bits: of each, as many are exact as weights and other targets leave."""
    X, y = table(seed, 40)
    y, r = np.round(8.0 * y) / 8.0, np.random.default_rng(seed)
    X[r.random(X.shape) < 0.1] = np.nan
    X[:, 2] = r.integers(0, 6, 40)
    weight = r.choice([np.ones(40), r.integers(1, 4, 40) + 0.0, np.exp(r.normal(size=40))])
    given = {"categorical_features": [2], "max_depth": 4, "random_state": 1, **limits}
    if quantile is not None:
        given |= {"criterion": "quantile", "quantile": quantile}
    one = new_tree(**given).fit(X, y, weight).tree_
    for k in (2, 4):
        several = new_tree(**given).fit(X, np.stack([y] * k, axis=1), weight).tree_
        assert_same(one, several, but=("statistics",))
        np.testing.assert_array_equal(several.statistics, one.statistics.repeat(k, axis=1))


def test_impurities_of_several_targets_are_means_of_theirs():
    """Each in its units, and also where one of them has a quantile between two rows."""
    X, y = table(6, 60)
    Y = np.stack([y, 100.0 * np.roll(y, 5) - 7.0, np.round(y)], axis=1)
    tree, weight = new_tree(max_depth=3).fit(X, Y).tree_, np.ones(60)
    at_leaf = new_tree(max_depth=3).fit(X, Y).apply(X)
    for leaf in np.flatnonzero(tree.is_leaf):
        rows = at_leaf == leaf
        losses = [2.0 * pinball(part, weight[rows], 0.5) for part in Y[rows].T]
        np.testing.assert_allclose(tree.impurity[leaf], np.mean(losses))
        np.testing.assert_allclose(tree.statistics[leaf], np.median(Y[rows], axis=0))


def test_medians_of_an_even_number_of_rows_are_means_as_in_scikit_learn():
    X, y = np.zeros((4, 1)), np.array([1.0, 7.0, 3.0, 4.0])
    for weight in (None, [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 1.0, 1.0], [0.5, 0.0, 0.25, 0.25]):
        theirs = sklearn_tree.DecisionTreeRegressor(criterion="absolute_error")
        expected = theirs.fit(X, y, weight).predict(X[:1])
        assert new_tree().fit(X, y, weight).predict(X[:1]) == expected


def test_the_case_of_scikit_learn():
    """A root whose loss, and those of both children, are computed by hand: its own test's table."""
    X, y = np.array([[3], [5], [3], [8], [5]]), np.array([6.0, 7.0, 3.0, 4.0, 3.0])
    tree = new_tree(max_leaf_nodes=2).fit(X, y).tree_
    np.testing.assert_allclose(tree.impurity, [1.4, 1.5, 4 / 3])
    assert tree.statistics[:, 0].tolist() == [4.0, 4.5, 4.0]
    weight = [0.6, 0.3, 0.1, 1.0, 0.3]
    tree = new_tree(max_leaf_nodes=2).fit(X, y, weight).tree_
    np.testing.assert_allclose(tree.impurity[0], 2.5 / 2.3, rtol=1e-6)
    assert tree.statistics[0, 0] == 4.0


@given(st.integers(0, 10**6), st.sampled_from([None, 0.1, 0.5, 0.975]))
def test_impurities_gains_and_weights_are_those_of_the_rows_of_each_node(seed, quantile):
    X, y = table(seed, 40)
    X[np.random.default_rng(seed).random(X.shape) < 0.1] = np.nan
    weight = np.random.default_rng(seed).integers(0, 4, 40) + 0.0
    weight[:2] = 1.0
    parameters = {} if quantile is None else {"criterion": "quantile", "quantile": quantile}
    model = new_tree(**parameters, max_depth=4).fit(X, y, weight)
    tree, at_leaf = model.tree_, model.apply(X)
    scale, level = (2.0, 0.5) if quantile is None else (1.0, quantile)
    reach = np.zeros((tree.n_nodes, 40), np.bool_)
    reach[at_leaf, np.arange(40)] = weight > 0
    for node in range(tree.n_nodes - 1, 0, -1):
        reach[tree.parent[node]] |= reach[node]
    for node in range(tree.n_nodes):
        rows = reach[node]
        assert tree.n_rows[node] == rows.sum()
        assert tree.weight[node] == weight[rows].sum()
        loss = scale * pinball(y[rows], weight[rows], level)
        np.testing.assert_allclose(tree.impurity[node], loss, atol=1e-9)
        if not tree.is_leaf[node]:
            below = list(tree.children(node))
            left = (tree.weight[below] * tree.impurity[below]).sum() / tree.weight[node]
            np.testing.assert_allclose(tree.gain[node], tree.impurity[node] - left, atol=1e-9)


@pytest.mark.parametrize(("extra", "loss"), [(0, 24.0), (3, 24.0), (4, 30.0)])
def test_every_subset_of_few_categories_is_tried(extra, loss):
    """The best of four is no prefix of an order; of more than seven only prefixes are compared."""
    groups = [[0.0] * 10, [4.0, 4, 10], [0.0, 6, 6], [10.0] * 10, *[[0.0]] * extra]
    code = np.repeat(np.arange(len(groups)), list(map(len, groups))).astype(float)[:, None]
    y = np.concatenate(groups)
    tree = new_tree(max_depth=1, categorical_features=[0]).fit(code, y).tree_
    below = tree.children(0)
    assert (tree.weight[below] * tree.impurity[below]).sum() == pytest.approx(loss)


def test_best_first_growth_takes_the_largest_decreases():
    X, y = table(3, 100)
    full = new_tree().fit(X, y).tree_
    few = new_tree(max_leaf_nodes=6).fit(X, y).tree_
    assert few.n_leaves == 6
    decreases = np.sort((full.gain * full.weight)[~full.is_leaf])[::-1]
    assert (few.gain * few.weight).max() == decreases[0]


def test_files_texts_and_pruning(tmp_path):
    X, y = table(4)
    two = new_tree("quantile", quantile=0.9, max_depth=3).fit(X, np.stack([y, -y], axis=1))
    save_model(two, tmp_path / "two.gputree")
    assert_same(load_model(tmp_path / "two.gputree").tree_, two.tree_)
    model = new_tree("quantile", quantile=0.9).fit(X, y)
    save_model(model, tmp_path / "tree.gputree")
    again = load_model(tmp_path / "tree.gputree")
    assert again.get_params() == model.get_params()
    assert_same(again.tree_, model.tree_)
    assert "pinball" in export_text(model)
    assert "mae" in export_text(new_tree(max_depth=1).fit(X, y))
    path = cost_complexity_path(model.tree_)
    assert (np.diff(path.impurities) >= 0).all()
    assert CostComplexity(path.ccp_alphas[-1]).prune_tree(model.tree_).n_leaves == 1
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
    pruned = new_tree(pruning=ReducedError(0.3), random_state=0).fit(X, y)
    assert 1 <= pruned.get_n_leaves() < new_tree().fit(X, y).get_n_leaves()
    with pytest.raises(ValueError, match="criterion='quantile' is not pruned by rows"):
        new_tree("quantile", pruning=ReducedError(0.3)).fit(X, y)


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("criterion", ["absolute_error", "quantile"])
def test_forests_are_the_means_of_their_trees_for_any_number_of_threads(criterion, n_targets):
    X, y = table(5, 40)
    y = y if n_targets == 1 else np.stack([y, 2.0 * y + 1.0], axis=1)
    given = {
        "n_estimators": 3, "criterion": criterion, "random_state": 3, "device": "cpu",
        "max_depth": 3,
    }  # fmt: skip
    forest = RandomForestRegressor(n_jobs=1, max_features=2, **given).fit(X, y)
    other = RandomForestRegressor(n_jobs=2, max_features=2, **given).fit(X, y)
    np.testing.assert_array_equal(forest.predict(X), other.predict(X))
    of_trees = np.mean([tree.predict(X) for tree in forest], axis=0)
    np.testing.assert_allclose(forest.predict(X), of_trees)
    assert forest.score(X, y) > 0.5
    plain = RandomForestRegressor(bootstrap=False, **given | {"n_estimators": 1}).fit(X, y)
    assert_same(plain[0].tree_, new_tree(criterion, max_depth=3).fit(X, y).tree_)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (new_tree().set_params(device="cuda"), "not take device='cuda' .* on the CPU"),
        (new_tree(splitter="binned"), "splitter='binned' .* not binned"),
        (new_tree(categorical_split="one_vs_rest"), "Write categorical_split='ordered'"),
        (new_tree(monotonic_cst=[1, 0, 0]), "not take monotonic_cst .* Leave monotonic_cst out"),
        (new_tree("squared_error", quantile=0.9), "'quantile' parameter .* that of criterion="),
        (new_tree("quantile", quantile=1.0), r"'quantile' parameter .* range \[0.001, 0.999\]"),
        (
            RandomForestRegressor(criterion="absolute_error", device="cuda"),
            "RandomForestRegressor does not take device='cuda'",
        ),
    ],
)
def test_parameters_that_are_not_taken_say_why(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*table(0))


def test_tables_in_batches_and_the_editor_are_refused(tmp_path):
    X, y = table(0)
    batches = CodedTable.from_batches(lambda: iter([(X, y)]), folder=tmp_path)
    with pytest.raises(ValueError, match="from a table in memory, on the CPU"):
        new_tree().fit(batches, y)
    with pytest.raises(ValueError, match="criterion='absolute_error' is not edited"):
        TreeEditor(new_tree().fit(X, y), X, y)
