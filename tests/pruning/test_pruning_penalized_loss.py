"""Li Hang's penalised loss: the entropy identity and brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pruning_oracles import leaves_after, prunings, tree_of_shape, trees
from sklearn import datasets
from sklearn.tree import DecisionTreeClassifier
from sklearn_trees import from_sklearn

from gputree.pruning import PenalizedLoss
from gputree.pruning.bottom_up import training_loss


def _tables():
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield pytest.param(*getattr(datasets, f"load_{name}")(return_X_y=True), id=name)
    for seed in range(8):
        made = datasets.make_classification(
            300 + 50 * seed,
            n_informative=4,
            n_redundant=0,
            n_classes=2 + seed % 4,
            flip_y=0.2,
            random_state=seed,
        )
        yield pytest.param(*made, id=f"made{seed}")


@pytest.mark.parametrize("alpha", [0.5, 2.0, 5.0, 12.5, 60.0])
@pytest.mark.parametrize(("X", "y"), list(_tables()))
def test_equals_cost_complexity_by_entropy(X, y, alpha):
    grown = DecisionTreeClassifier(criterion="entropy", random_state=0)
    pruned = DecisionTreeClassifier(criterion="entropy", random_state=0, ccp_alpha=alpha / len(y))
    ours = PenalizedLoss(alpha).prune_tree(from_sklearn(grown.fit(X, y)))
    assert ours.equals(from_sklearn(pruned.fit(X, y)))


@given(trees(), st.floats(0, 20))
def test_tree_is_the_smallest_with_the_least_loss(tree, alpha):
    kept = leaves_after(tree, PenalizedLoss(alpha).prune_tree(tree))
    loss = training_loss(tree)
    cost = {leaves: sum(loss[t] + alpha for t in leaves) for leaves in prunings(tree)}
    least = min(cost.values())
    assert cost[kept] == pytest.approx(least, abs=1e-9)
    clearly_smaller = [c for leaves, c in cost.items() if len(leaves) < len(kept)]
    assert all(c > least - 1e-9 for c in clearly_smaller)


def test_loss_is_in_bits_whatever_the_criterion():
    counts = np.array([[4, 4], [4, 0], [0, 4]])
    tree = tree_of_shape([2, 0, 0], counts, [0.5, 0, 0], [8, 4, 4])
    assert tree.criterion == "gini"
    assert training_loss(tree).tolist() == [8, 0, 0]
    # C_alpha: 8 + alpha as a leaf, 2 alpha as a split; equal at 8, where it is pruned.
    assert PenalizedLoss(7.9).prune_tree(tree).n_leaves == 2
    assert PenalizedLoss(8).prune_tree(tree).n_leaves == 1


def test_regression_loss_is_the_sum_of_squared_errors():
    tree = tree_of_shape([2, 0, 0], [[2.0], [0.0], [4.0]], [4.0, 0, 0], [8, 4, 4], "regression")
    assert training_loss(tree).tolist() == [32, 0, 0]
    assert PenalizedLoss(31.9).prune_tree(tree).n_leaves == 2
    assert PenalizedLoss(32).prune_tree(tree).n_leaves == 1


def test_an_empty_node_loses_nothing():
    tree = tree_of_shape([2, 0, 0], [[1, 1], [1, 1], [0, 0]], [0.5, 0.5, 0], [2, 2, 0])
    assert training_loss(tree).tolist() == [2, 2, 0]
    assert PenalizedLoss(0).prune_tree(tree).n_leaves == 1
