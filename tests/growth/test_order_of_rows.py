"""What is summed over rows is the same to the last bit in any order of the rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import random_multiway_tree, random_rows
from pruning_oracles import as_poisson, random_tree

from benchmarks.row_order import differing, grown, random_table
from gputree.fixed_point import in_units
from gputree.pruning import Pessimistic, ReducedError, RoutedRows, TrainingRows
from gputree.pruning.node_loss import node_loss


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
