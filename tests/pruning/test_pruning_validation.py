"""Reduced-error pruning and validation pre-pruning, against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import multiway_cases, random_multiway_tree, random_rows, visit
from pruning_oracles import leaves_after, prunings, rows_loss, tree_of_shape, trees_with_rows

from gputree.prediction.losses import majority_class, node_loss, route
from gputree.pruning import (
    CostComplexity,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    RoutedRows,
    ValidationPrePruning,
    cost_complexity_path,
)

BOTH = pytest.mark.parametrize("pruner", [ReducedError(), ValidationPrePruning()])


def _rows(node, target, weight=None):
    weight = np.ones(len(node)) if weight is None else weight
    return RoutedRows(np.array(node), np.array(target), np.asarray(weight, dtype=float))


def _stump(counts):
    weight = np.sum(counts, axis=1)
    return tree_of_shape([2, 0, 0], counts, np.ones(3), weight)


@given(trees_with_rows())
def test_reduced_error_tree_loses_least_of_all_prunings(case):
    tree, rows = case
    kept = leaves_after(tree, ReducedError().prune_tree(tree, rows))
    loss = {leaves: rows_loss(tree, rows, leaves) for leaves in prunings(tree)}
    least = min(loss.values())
    assert loss[kept] == pytest.approx(least, abs=1e-9)
    assert all(loss[leaves] > least - 1e-9 for leaves in loss if len(leaves) < len(kept))


def _grow_while_improving(tree, rows, node=0):
    """Leaves of the tree grown node by node, each split checked on the rows in it."""
    children = frozenset(tree.children(node))
    if not children:
        return frozenset([node])
    here = [t for t in range(tree.n_nodes) if _is_below(tree, t, node)]
    inside = np.isin(rows.node, here)
    mine = RoutedRows(rows.node[inside], rows.target[inside], rows.weight[inside])
    if rows_loss(tree, mine, children) >= rows_loss(tree, mine, frozenset([node])):
        return frozenset([node])
    return frozenset().union(*(_grow_while_improving(tree, rows, child) for child in children))


def _is_below(tree, node, above):
    while node > above:
        node = tree.parent[node]
    return node == above


@given(trees_with_rows(classes=(2, 3)))
def test_pre_pruning_equals_growing_with_the_check(case):
    tree, rows = case
    kept = leaves_after(tree, ValidationPrePruning().prune_tree(tree, rows))
    assert kept == _grow_while_improving(tree, rows)


@given(trees_with_rows())
def test_node_loss_counts_each_row_on_its_path(case):
    tree, rows = case
    loss = node_loss(tree, rows)
    for node in range(tree.n_nodes):
        here = np.array([_is_below(tree, t, node) for t in rows.node], dtype=bool)
        for got, inside in ((loss.as_leaf, here), (loss.stopped, rows.node == node)):
            mine = RoutedRows(rows.node[inside], rows.target[inside], rows.weight[inside])
            expected = rows_loss(tree, mine, frozenset([node]))
            assert got[node] == pytest.approx(expected, abs=1e-9)


def test_an_empty_node_answers_with_its_parents_class():
    tree = _stump([[1, 3], [1, 3], [0, 0]])
    assert majority_class(tree).tolist() == [1, 1, 1]


@BOTH
def test_rows_are_required(pruner):
    with pytest.raises(ValueError, match=f"{type(pruner).__name__} prunes by rows .* Got none"):
        pruner.prune_tree(_stump([[1, 1], [1, 0], [0, 1]]))


@given(st.integers(2, 200), st.floats(0.01, 0.99), st.integers(0, 5))
def test_held_out_rows_are_a_random_part(n_rows, fraction, seed):
    pruner = ReducedError(validation_fraction=fraction, random_state=seed)
    growing, validation = pruner.hold_out(n_rows)
    assert sorted([*growing, *validation]) == list(range(n_rows))
    assert abs(validation.size - fraction * n_rows) <= 1
    assert growing.size > 0
    assert validation.size > 0
    assert np.array_equal(pruner.hold_out(n_rows)[0], growing)


def test_one_row_cannot_be_held_out():
    with pytest.raises(ValueError, match=r"at least 2 rows\. Got 1"):
        ReducedError().hold_out(1)


@pytest.mark.parametrize("fraction", [0, 1, 1.5, "half"])
def test_fraction_must_be_a_fraction(fraction):
    with pytest.raises(ValueError, match="'validation_fraction' parameter of ReducedError"):
        ReducedError(fraction).hold_out(10)


def test_rows_at_unknown_nodes_are_refused():
    with pytest.raises(ValueError, match="must stop at nodes 0 to 2 of the tree"):
        ReducedError().prune_tree(_stump([[1, 1], [1, 0], [0, 1]]), _rows([3], [0]))


# ------------------------------------------------- rows in parts, as C4.5 sends them
class _Fitted:
    """The part of an estimator that pruners need to route rows: its tree, classes and table."""

    def __init__(self, tree):
        self.tree_ = tree
        self.classes_ = np.arange(tree.n_classes)

    def _loss_weights(self, weight, target):
        return weight

    def _values(self, X):
        return X


@st.composite
def trees_with_tables(draw, **kwargs):
    tree, X = draw(multiway_cases(min_rows=1, **kwargs))
    rng = np.random.default_rng(len(X))
    y = rng.integers(0, tree.n_classes, len(X))
    return tree, X, y, rng.integers(1, 4, len(X)).astype(float)


def _loss_by_descent(tree, X, y, weight):
    """Weight of the parts of rows that end where another class is the majority."""
    label = majority_class(tree)
    stops = [(row, visit(tree, values)) for row, values in enumerate(X)]
    return sum(
        weight[row] * share
        for row, parts in stops
        for node, share in parts.items()
        if label[node] != y[row]
    )


@given(trees_with_tables())
def test_rows_are_routed_in_parts(case):
    tree, X, y, weight = case
    rows = route(_Fitted(tree), X, y, weight)
    expected = [
        (node, y[row], weight[row] * share)
        for row, values in enumerate(X)
        for node, share in sorted(visit(tree, values).items())
        if share > 0
    ]
    assert list(zip(rows.node, rows.target, rows.weight, strict=True)) == expected


@given(trees_with_tables(max_splits=4, max_rows=12))
def test_reduced_error_loses_least_of_rows_in_parts(case):
    tree, X, y, weight = case
    pruned = ReducedError().prune_tree(tree, route(_Fitted(tree), X, y, weight))
    pruned.check()
    losses = [
        _loss_by_descent(tree.collapse(np.isin(np.arange(tree.n_nodes), [*leaves])), X, y, weight)
        for leaves in prunings(tree)
    ]
    assert _loss_by_descent(pruned, X, y, weight) == pytest.approx(min(losses), abs=1e-9)


@given(trees_with_tables(max_splits=8, max_rows=12))
def test_pre_pruning_keeps_what_improves_on_rows_in_parts(case):
    tree, X, y, weight = case
    pruned = ValidationPrePruning().prune_tree(tree, route(_Fitted(tree), X, y, weight))
    pruned.check()
    for node in np.flatnonzero(~pruned.is_leaf):
        above = pruned.collapse(np.arange(pruned.n_nodes) == node)
        below = pruned.collapse(np.isin(pruned.parent, [node]))
        less = _loss_by_descent(above, X, y, weight) - _loss_by_descent(below, X, y, weight)
        assert less > -1e-9


@BOTH
@given(seed=st.integers(0, 10**6))
def test_splits_that_change_no_answer_are_pruned(pruner, seed):
    """Parts of rows add up to whole ones except for rounding, which keeps no split."""
    rng = np.random.default_rng(seed)
    tree, X = random_multiway_tree(rng, 12, "all", n_classes=1), random_rows(rng, 20)
    y = rng.integers(0, 2, 20)  # 1 is unknown to the tree
    assert pruner.prune_tree(tree, route(_Fitted(tree), X, y, None)).n_leaves == 1


@given(multiway_cases(min_rows=1))
@pytest.mark.filterwarnings("error")
def test_every_method_takes_trees_with_empty_nodes(case):
    tree, X = case
    y = np.zeros(len(X), int)
    data = route(_Fitted(tree), X, y, None)
    methods = [
        (CostComplexity(0.01), None),
        (CostComplexity(0.01, risk="error"), None),
        (PenalizedLoss(1.0), None),
        (Pessimistic(subtree_raising=False), None),
        (ReducedError(), data),
        (ValidationPrePruning(), data),
    ]
    for pruner, rows in methods:
        pruned = pruner.prune_tree(tree, rows)
        pruned.check()
        assert pruned.n_leaves <= tree.n_leaves
        assert np.isfinite(pruned.value).all()
    path = cost_complexity_path(tree)
    assert np.isfinite(path.ccp_alphas).all()
