"""Pessimistic pruning and collapsing, as C4.5 and J48 do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import multiway_cases
from pruning_oracles import leaves_after, tree_of_shape, trees
from scipy.stats import norm

from gputree.pruning import Pessimistic, add_errors, collapse_splits


@pytest.mark.parametrize(
    ("n", "errors", "quantile", "added"),
    [
        (6, 0, "release8", 1.2378),
        (16, 1, "release8", 1.5069),
        (14, 5, "release8", 1.7950),
        (100, 10, "release8", 2.8147),
        (6, 0, "exact", 1.2378),
        (14, 5, "exact", 1.7611),
        (100, 10, "exact", 2.7496),
    ],
)
def test_figures_of_the_reference_programs(n, errors, quantile, added):
    assert add_errors(n, errors, 0.25, quantile) == pytest.approx(added, abs=5e-5)


def test_is_linear_up_to_one_error():
    zero, half, one = add_errors(20, [0, 0.5, 1])
    assert half == pytest.approx((zero + one) / 2)


@pytest.mark.parametrize(("quantile", "added"), [("exact", 0.3), ("release8", 0.67 * 0.3)])
def test_with_hardly_a_correct_row_the_rest_is_added(quantile, added):
    assert add_errors(5, 4.7, 0.25, quantile) == pytest.approx(added)


def test_empty_leaves_and_high_confidence_add_nothing():
    assert add_errors([0, 0], [0, 0]).tolist() == [0, 0]
    assert add_errors(10, 3, confidence=0.6) == 0


@given(st.floats(1.1, 1e4), st.floats(0, 1), st.floats(0.01, 0.5))
def test_exact_limit_solves_the_binomial_equation(n, share, confidence):
    errors = max(1.0, share * n)
    if errors + 0.5 >= n:
        return
    limit = (errors + add_errors(n, errors, confidence)) / n  # an error rate
    z = norm.isf(confidence)
    # At the limit the observed rate lies z standard errors below it.
    observed = (errors + 0.5) / n
    assert limit - observed == pytest.approx(z * np.sqrt(limit * (1 - limit) / n), abs=1e-7)


def _rule(tree, pruner, node=0):
    """Estimated errors and leaves of the pruned subtree at `node`, by the published rule."""
    counts = tree.statistics[node]
    errors = counts.sum() - counts.max()
    as_leaf = errors + float(add_errors(counts.sum(), errors, pruner.confidence, pruner.quantile))
    below = [_rule(tree, pruner, child) for child in tree.children(node)]
    subtree = sum(estimate for estimate, _ in below)
    if not below or as_leaf <= subtree + 0.1:
        return as_leaf, frozenset([node])
    return subtree, frozenset().union(*(leaves for _, leaves in below))


@given(
    trees(classes=(2, 3), max_inner=15),
    st.floats(0.01, 0.5),
    st.sampled_from(["exact", "release8"]),
)
def test_pruned_tree_follows_the_rule(tree, confidence, quantile):
    pruner = Pessimistic(confidence, subtree_raising=False, quantile=quantile)
    pruned = pruner.prune_tree(tree)
    pruned.check()
    assert leaves_after(tree, pruned) == _rule(tree, pruner)[1]
    assert pruner.prune_tree(pruned).equals(pruned)


def test_quinlans_example():
    # Congressional votes (Quinlan 1993, figure 4.3): at CF = 25% three pure leaves of
    # 6, 9 and 1 rows are estimated at 3.27 errors in all, one leaf of 16 rows with
    # one error at 2.51: the split is pruned.
    counts = [[15, 1], [6, 0], [9, 0], [0, 1]]
    tree = tree_of_shape([3, 0, 0, 0], counts, np.ones(4), np.sum(counts, axis=1))
    leaves = add_errors([6, 9, 1], 0, 0.25, "release8")
    assert leaves.sum() == pytest.approx(3.273, abs=1e-3)
    assert 1 + add_errors(16, 1, 0.25, "release8") == pytest.approx(2.507, abs=1e-3)
    assert Pessimistic(subtree_raising=False, quantile="release8").prune_tree(tree).n_leaves == 1
    assert Pessimistic(0.6, subtree_raising=False).prune_tree(tree).n_leaves == 3


def test_raising_needs_the_training_rows():
    tree = tree_of_shape([0], [[1, 1]], [0.5], [2])
    with pytest.raises(
        ValueError, match="pass X and y as used for growing, or set subtree_raising"
    ):
        Pessimistic().prune_tree(tree)


def test_regression_trees_are_refused():
    tree = tree_of_shape([0], [[1.0]], [0.0], [3], "regression")
    with pytest.raises(ValueError, match=r"needs a classification tree\. Got a regression tree"):
        Pessimistic().prune_tree(tree)
    with pytest.raises(ValueError, match=r"needs a classification tree\. Got a regression tree"):
        collapse_splits(tree)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"confidence": 0}, "'confidence' parameter of Pessimistic must be a float in the range"),
        ({"confidence": 1.5}, "'confidence' parameter of Pessimistic must be a float in the range"),
        ({"subtree_raising": 2}, "'subtree_raising' parameter of Pessimistic must be an instance"),
        ({"quantile": "weka"}, "'quantile' parameter of Pessimistic must be a str among"),
    ],
)
def test_bad_parameters(params, message):
    tree = tree_of_shape([0], [[1, 1]], [0.5], [2])
    with pytest.raises(ValueError, match=message):
        Pessimistic(**params).prune_tree(tree)


def test_the_least_confidence_has_a_limit():
    assert np.isfinite(add_errors(100, [0, 5, 99], confidence=5e-324)).all()


# ------------------------------------------------------------ collapse: J48's rule, node by node
def _errors(tree, node):
    return tree.weight[node] - tree.statistics[node].max()


def _training_errors(tree, node):
    """Errors of the leaves as grown below `node`."""
    children = tree.children(node)
    return sum(_training_errors(tree, t) for t in children) if children else _errors(tree, node)


def _collapsed_leaves(tree, node=0):
    """Leaves left below `node`, top-down."""
    if tree.is_leaf[node] or _training_errors(tree, node) >= _errors(tree, node) - 1e-3:
        return frozenset([node])
    return frozenset().union(*(_collapsed_leaves(tree, child) for child in tree.children(node)))


@given(multiway_cases())
def test_trees_of_every_kind(case):
    tree, _ = case
    collapsed = collapse_splits(tree)
    collapsed.check()
    assert leaves_after(tree, collapsed) == _collapsed_leaves(tree)
    assert collapse_splits(collapsed).equals(collapsed)


@pytest.mark.parametrize(("saved", "n_leaves"), [(0.0009, 1), (0.0011, 2)])
def test_a_thousandth_of_an_error_is_nothing(saved, n_leaves):
    counts = [[6.0, 4.0], [6.0 - saved, 4.0 - 2 * saved], [saved, 2 * saved]]
    tree = tree_of_shape([2, 0, 0], counts, np.ones(3), np.sum(counts, axis=1))
    assert collapse_splits(tree).n_leaves == n_leaves


def test_a_subtree_is_judged_as_grown():
    """Splits that save too little one by one stay where they save enough together."""
    saved = 0.0006  # by each of the two lower splits
    pure, mixed = [0.0, saved], [10.0, 5.0 - saved]
    whole = np.add(pure, mixed)
    counts = [2 * whole, whole, whole, pure, mixed, pure, mixed]
    tree = tree_of_shape([2, 2, 2, 0, 0, 0, 0], counts, np.ones(7), np.sum(counts, axis=1))
    assert leaves_after(tree, collapse_splits(tree)) == {1, 2}
    assert collapse_splits(collapse_splits(tree)).n_leaves == 1


@pytest.mark.parametrize("quantile", ["exact", "release8"])
@pytest.mark.parametrize("n", [2.0, 3.0, 10.0])
def test_limits_where_nearly_all_rows_are_errors(n, quantile):
    """From half an error before the weight on, what Release 8 adds for each correct row."""
    errors = n - 0.5
    added = add_errors(n, errors, quantile=quantile)
    assert added == pytest.approx(0.5 * (0.67 if quantile == "release8" else 1.0), rel=1e-15)
    assert add_errors(n, n, quantile=quantile) == 0.0
