"""Sums over rows are the same to the last bit in any order of the rows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import random_multiway_tree, random_rows
from pruning_oracles import as_poisson, random_tree

from benchmarks.row_order import differing, grown, random_table
from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.arithmetic.fixed_point import in_units
from gputree.prediction.losses import node_loss
from gputree.pruning import Pessimistic, ReducedError, RoutedRows, TrainingRows


@pytest.mark.full
@pytest.mark.parametrize("seed", range(12))
def test_c45_with_weights_and_holes_pruned_by_default(seed):
    table = random_table(seed)
    tree, rng = grown(table), np.random.default_rng(seed)
    for _ in range(2):
        assert differing(tree, grown(table, rng.permutation(table.y.size))) == []


@given(st.integers(0, 2**32 - 1), st.sampled_from(["all", "stops", "child", "mixed"]))
def test_raised_branches(seed, policy):
    rng = np.random.default_rng(seed)
    tree = random_multiway_tree(rng, int(rng.integers(1, 15)), policy, 2)
    X, n = random_rows(rng, 60), 60
    weight = rng.random(n)
    weight *= tree.weight[0] / weight.sum()
    target, order = rng.integers(0, 2, n), rng.permutation(n)
    rows, others = (TrainingRows(X[o], target[o], weight[o]) for o in (slice(None), order))
    pruner = Pessimistic(0.5)
    assert differing(pruner.prune_tree(tree, rows), pruner.prune_tree(tree, others)) == []


@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.sampled_from([1, 2]))
def test_losses_on_validation_rows(seed, n_classes, power):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(0, 12)), 3, max(n_classes, 1))
    n, order = 80, rng.permutation(80)
    if n_classes == 0:
        tree, target = as_poisson(tree), rng.gamma(1.0, size=n)
    else:
        target = rng.normal(size=n) if n_classes == 1 else rng.integers(-1, n_classes, n)
    node, weight = rng.integers(0, tree.n_nodes, n), rng.choice([0.1, 0.3, 1.7, 0.0], n)
    rows = RoutedRows(node, target, weight)
    others = RoutedRows(node[order], target[order], weight[order])
    one, two = node_loss(tree, rows, power), node_loss(tree, others, power)
    assert one.as_leaf.tobytes() == two.as_leaf.tobytes()
    assert one.stopped.tobytes() == two.stopped.tobytes()
    pruned = [ReducedError().prune_tree(tree, r) for r in (rows, others)]
    assert pruned[0].equals(pruned[1])


@given(
    st.lists(st.floats(0, 1e300, allow_subnormal=False), max_size=30),
    st.lists(st.integers(0, 2**47), max_size=60),
)
def test_sums_in_units(values, whole):
    units, unit = in_units(np.array(values, dtype=float))
    assert units.size == len(values)
    assert abs(int(units.sum())) < 2**62
    exact, most = sum(map(Fraction, values)), max(values, default=0.0)
    assert abs(int(units.sum()) * Fraction(unit) - exact) <= len(values) * Fraction(most) * 2**-50
    units, unit = in_units(np.array(whole, dtype=float))
    assert int(units.sum()) * Fraction(unit) == sum(whole)


# --------------------------------------------------------------------------------- the sign of zero
VALUES = np.array([-2.0, -1.0, -5e-324, -0.0, -0.0, 0.0, 0.0, 5e-324, 1.0, 2.0, np.nan])

KINDS = {
    "cart": lambda: DecisionTreeClassifier(),
    "regression": lambda: DecisionTreeRegressor(),
    "data": lambda: C45Classifier(pruning=None, threshold_placement="data"),
    "soft": lambda: C45Classifier(pruning=None, threshold_placement="data", soft_thresholds=True),
    "pruned": lambda: C45Classifier(threshold_placement="data"),
    "id3": lambda: ID3Classifier(),
}


def test_by_hand():
    """Between the zeros, which are one value, and 1 the data hold 0."""
    X, y = np.array([[-0.0], [0.0], [1.0], [2.0], [-1.0], [-2.0]]), np.array([0, 0, 1, 1, 0, 0])
    for order in (slice(None), slice(None, None, -1)):
        tree = KINDS["data"]().fit(X[order], y[order]).tree_
        assert tree.threshold[0] == 0.0
        assert not np.signbit(tree.threshold[0])


@pytest.mark.parametrize("name", KINDS)
def test_any_order_of_rows(name):
    for seed in (2, 6, 29, *range(30, 40)):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 14))
        X, y = VALUES[rng.integers(0, VALUES.size, (n, 2))], rng.integers(0, 2, n)
        if name == "regression":
            y = VALUES[:-1][rng.integers(0, VALUES.size - 1, n)]
            y[0] = 7.0  # targets span enough
        model, order = KINDS[name](), rng.permutation(n)
        tree = model.fit(X, y).tree_
        assert differing(tree, model.fit(X[order], y[order]).tree_) == []
        signs = np.signbit(tree.threshold) & (tree.threshold == 0)
        assert not signs.any()


def test_labels():
    for y in ([-0.0, 0.0, 1.0], [0.0, -0.0, 1.0]):
        classes = DecisionTreeClassifier().fit(np.zeros((3, 1)), np.array(y)).classes_
        assert np.signbit(classes).tolist() == [False, False]
