"""The cross-validated alpha: every figure of the table against its plain definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pruning_oracles import leaves_after, path, rows_loss, trees_with_rows
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold
from sklearn_trees import Classifier, Regressor

from gputree import DecisionTreeClassifier
from gputree.pruning import CostComplexity, CostComplexityCV
from gputree.pruning.cost_complexity_cv import _loss_along
from gputree.tree import Tree
from gputree.tree.weakest_links import weakest_links


def _iris():
    X, y = load_iris(return_X_y=True)
    return Classifier(), X[:, :2], np.array(["a", "b", "c"])[y]


def _diabetes():
    X, y = load_diabetes(return_X_y=True)
    return Regressor(min_samples_leaf=4), X[:200], y[:200]


def _losses(fold, pruned: Tree, X, y) -> np.ndarray:
    """Loss of each row by the pruned tree of a fold's estimator."""
    leaves = leaves_after(fold.tree_, pruned)
    answers = [
        next(t for t in path(fold.tree_, int(leaf)) if t in leaves) for leaf in fold.apply(X)
    ]
    if fold.tree_.task == "regression":
        return (y - fold.tree_.statistics[answers, 0]) ** 2
    return (y != fold.classes_[fold.tree_.statistics[answers].argmax(axis=1)]).astype(float)


def _held_out(model, X, y, weight, folds, alphas, risk):
    """Weighted loss of each row (columns) at each alpha (rows), by the tree grown without it."""
    losses = np.empty((alphas.size, len(y)))
    for train, test in folds.split(X, y):
        fold = clone(model).fit(X[train], y[train], weight[train])
        for i, alpha in enumerate(alphas):
            pruned = CostComplexity(min(alpha, 1e9), risk).prune_tree(fold.tree_)
            losses[i, test] = _losses(fold, pruned, X[test], y[test]) * weight[test]
    return losses


@pytest.mark.parametrize("risk", ["impurity", "error"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("table", [_iris, _diabetes])
def test_table_is_what_it_says(table, weighted, risk):
    model, X, y = table()
    weight = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else np.ones(len(y))
    weight = weight.astype(float)
    folds = KFold(3, shuffle=True, random_state=1)
    fitted = clone(model).fit(X, y, weight)
    pruner = CostComplexityCV(cv=3, risk=risk, random_state=1)
    pruned = pruner.prune(fitted, X, y, sample_weight=weight if weighted else None)
    rows = pruner.cp_table_[::-1]  # the full tree first

    beyond = np.append(rows["alpha"][1:], np.inf)
    losses = _held_out(model, X, y, weight, folds, np.sqrt(rows["alpha"] * beyond), risk)
    root = fitted.tree_.collapse(np.arange(fitted.tree_.n_nodes) == 0)
    root_loss = (_losses(fitted, root, X, y) * weight).sum()
    np.testing.assert_allclose(rows["xerror"], losses.sum(axis=1) / root_loss, rtol=1e-10)
    spread = losses.std(axis=1) * np.sqrt(len(y)) / root_loss
    np.testing.assert_allclose(rows["xstd"], spread, rtol=1e-8)
    for row in rows:
        tree = CostComplexity(row["alpha"], risk).prune_tree(fitted.tree_)
        assert tree.n_leaves == row["n_leaves"]
    assert pruned.tree_.equals(CostComplexity(pruner.alpha_, risk).prune_tree(fitted.tree_))
    assert rows["relative_error"][-1] == pytest.approx(1)
    assert np.all(np.diff(rows["alpha"]) > 0)
    assert np.all(np.diff(rows["relative_error"]) > -1e-12)


@given(trees_with_rows(), st.lists(st.floats(0, 2), max_size=5), st.sampled_from([1, 2]))
def test_loss_along_alphas_is_that_of_each_pruned_tree(case, alphas, power):
    tree, rows = case
    at = np.append(np.sort(alphas), np.inf)
    loss = _loss_along(tree, weakest_links(tree).alpha, rows, at, power)
    for alpha, got in zip(at, loss, strict=True):
        leaves = leaves_after(tree, CostComplexity(min(alpha, 1e9)).prune_tree(tree))
        each = [
            rows_loss(tree, type(rows)(*(part[i : i + 1] for part in vars(rows).values())), leaves)
            for i in range(rows.node.size)
        ]
        assert got == pytest.approx(sum(x**power for x in each), abs=1e-9)


@pytest.mark.parametrize("table", [_iris, _diabetes])
def test_rules(table):
    model, X, y = table()
    model.fit(X, y)
    least, smallest = (CostComplexityCV(cv=5, rule=rule, random_state=0) for rule in ("min", "1se"))
    best, small = least.prune(model, X, y), smallest.prune(model, X, y)
    np.testing.assert_array_equal(least.cp_table_, smallest.cp_table_)
    rows = least.cp_table_
    chosen = {row["n_leaves"]: row for row in rows}
    assert chosen[best.tree_.n_leaves]["xerror"] == rows["xerror"].min()
    bar = rows["xerror"].min() + chosen[best.tree_.n_leaves]["xstd"]
    assert small.tree_.n_leaves == rows["n_leaves"][rows["xerror"] <= bar].min()
    assert 1 < small.tree_.n_leaves <= best.tree_.n_leaves < model.tree_.n_leaves


def test_error_risk_is_the_misclassified_share():
    # Root: 3 errors of 8; the first split leaves 1, so alpha of the root is 2/8 a leaf.
    X = np.array([[0], [0], [0], [0], [1], [1], [1], [1]])
    y = np.array([0, 0, 0, 0, 1, 1, 1, 0])
    model = Classifier().fit(X, y)
    table = CostComplexityCV(cv=KFold(2, shuffle=True, random_state=0), risk="error")
    table.prune(model, X, y)
    assert table.cp_table_["alpha"].tolist() == [2 / 8, 0]
    assert table.cp_table_["cp"].tolist() == [2 / 3, 0]
    assert table.cp_table_["relative_error"].tolist() == [1, pytest.approx(1 / 3)]


def test_folds_are_grown_without_pruning():
    model, X, y = _iris()
    pruned = Classifier(pruning=CostComplexity(0.5)).fit(X, y)
    plain = CostComplexityCV(cv=3, random_state=0)
    plain.prune(model.fit(X, y), X, y)
    again = CostComplexityCV(cv=3, random_state=0)
    again.prune(pruned, X, y)
    np.testing.assert_array_equal(again.cp_table_, plain.cp_table_)


def test_a_target_without_variation():
    X = np.arange(12.0).reshape(-1, 1)
    pruner = CostComplexityCV(cv=3, random_state=0)
    assert pruner.prune(Regressor().fit(X, np.ones(12)), X, np.ones(12)).tree_.n_leaves == 1
    assert pruner.cp_table_["xerror"].tolist() == [0]


def test_bad_calls():
    model, X, y = _iris()
    model.fit(X, y)
    with pytest.raises(ValueError, match="pass the training X and y"):
        CostComplexityCV().prune(model)
    with pytest.raises(NotFittedError):
        CostComplexityCV().prune_tree(model.tree_)
    with pytest.raises(
        ValueError, match="'rule' parameter of CostComplexityCV must be a str among"
    ):
        CostComplexityCV(rule="2se").prune(model, X, y)
    with pytest.raises(ValueError, match="'cv' parameter of CostComplexityCV must be"):
        CostComplexityCV(cv=1).prune(model, X, y)
    with pytest.raises(ValueError, match="'groups' parameter should not be None"):
        CostComplexityCV(cv=GroupKFold(3)).prune(model, X, y)


def test_a_fold_without_weight_elsewhere_is_named():
    X, y = np.arange(12.0)[:, None], np.arange(12) % 2
    weight = np.zeros(12)
    weight[4:8] = 1.0
    tree = DecisionTreeClassifier().fit(X, y, weight)
    with pytest.raises(ValueError, match=r"outside fold 2 of 3 have weight 0\. Leave rows of"):
        CostComplexityCV(cv=KFold(3)).prune(tree, X, y, weight)


def test_the_table_is_that_of_the_estimator_it_prunes():
    _, X, y = _iris()
    tree = DecisionTreeClassifier(pruning=CostComplexityCV(random_state=0), random_state=0)
    pruner = CostComplexityCV(random_state=0)
    pruner.prune(DecisionTreeClassifier(random_state=0).fit(X, y), X, y)
    assert np.array_equal(tree.fit(X, y).cp_table_, pruner.cp_table_)
    assert not hasattr(tree.set_params(pruning=None).fit(X, y), "cp_table_")
