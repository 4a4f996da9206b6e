"""Properties of the grower: work that must not change a tree; and the host code around it."""

import numpy as np
import oracles
import pytest
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from oracles import best_first, exact_tree
from strategies import Sample, is_regression, make_task, random_problems, random_sample

from gputree import DecisionTreeClassifier
from gputree.arithmetic.bits import child_key, mix
from gputree.backends.base import Finishing
from gputree.backends.cpu import cut
from gputree.growth.assembly import GrownNodes, over_leaves, renumber
from gputree.growth.frontier import BestFirst, best_first_leaves, child_keys, finish_rows

COARSE = {"finish_rows": 1, "max_bins": 5}  # many bins to refine, no finishing
ALL_ROWS = 10**9


# ----------------------------------------------------------- how the work is done
@pytest.mark.full
@given(random_problems(400), st.sampled_from([2, 5, 16, 256]), st.integers(1, 400))
def test_the_way_of_working_does_not_change_the_tree(grow_tree, problem, max_bins, finish_rows):
    """Threads, bins, the size up to which nodes are small, histograms kept at a time."""
    criterion, sample = problem
    task = make_task(criterion, sample)
    whole = grow_tree(sample, task, finish_rows=ALL_ROWS)
    for n_threads in (1, 2, 3):
        for histograms in (1, 3, 1000):
            options = {"n_threads": n_threads, "histograms": histograms, "max_bins": max_bins}
            assert grow_tree(sample, task, finish_rows=finish_rows, **options) == whole


@pytest.mark.full
@pytest.mark.parametrize("max_depth", [1, 3, None])
@pytest.mark.parametrize("cells", [2_000, 40_000, 10**6])
def test_levels_of_little_are_finished_whole(monkeypatch, max_depth, cells):
    X = np.random.default_rng(0).normal(size=(5_000, 4))
    y = X[:, 0] * X[:, 1] > X[:, 2]
    model = DecisionTreeClassifier(max_depth=max_depth, max_bins=4, device="cpu")
    expected = model.fit(X, y).tree_
    scanned = model.growth_report_["scanned_pairs"]
    tune(monkeypatch, "cpu", level_cells=cells)
    assert model.fit(X, y).tree_.equals(expected)
    whole = X.size <= cells * min(max_depth or 4, 4)
    assert (model.growth_report_["scanned_pairs"] == 0) == whole
    assert model.growth_report_["scanned_pairs"] <= scanned


def test_which_nodes_are_small():
    """Small nodes depend on costs of histograms, the remaining depth, the threads, the level."""
    cost, root = Finishing(6.0, 10.0, 10**6), np.array([10**6])
    assert finish_rows(cost, root, 10, 5_000, 100, 0) == 3_000
    assert finish_rows(cost, root, 10, 5_000, 1, 0) == 750
    assert finish_rows(cost, root, 10, 5_000, 0, 0) == 256
    assert finish_rows(cost._replace(columns=5.0), root, 10, 5_000, 100, 0) == 6_000
    assert finish_rows(cost._replace(most_rows=1_000), root, 10, 5_000, 100, 0) == 1_000
    assert finish_rows(cost, root, 10, 10**9, 100, 0) == 2**19 // 10
    level, few = cost._replace(level_cells=1_000), np.array([150, 250])
    assert finish_rows(level, few, 10, 1, 4, 0) == finish_rows(level, few, 10, 1, 9, 0) == 400
    assert finish_rows(level, few, 10, 1, 3, 0) == finish_rows(level, few + 1, 10, 1, 9, 0) == 256


def test_no_node_is_small_where_levels_are_split_to_the_depth_limit():
    """One node is large, and the deepest level, of 2 or 64 nodes here, may be split whole."""
    whole = Finishing(6.0, 10.0, 10**6, whole_statistics=10 * 5_000)
    sizes = np.array([10**6, 100])
    assert finish_rows(whole, sizes, 10, 5_000, 1, 0) == 0
    assert finish_rows(whole, sizes, 10, 5_000, 6, 0) == 3_000
    assert finish_rows(whole, sizes, 10, 5_000, 100, 0) == 3_000
    assert finish_rows(whole, sizes[1:], 10, 5_000, 1, 0) == 750


@pytest.mark.parametrize("heaviest", [2.0**20, 2.0**33, 2.0**40 / 3.0])
@pytest.mark.parametrize("options", [{}, COARSE])
def test_light_rows_beside_a_heavy_one_keep_their_targets(grow_tree, heaviest, options):
    """Unequal targets stay distinct whatever other weights there are; equal ones stay equal."""
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.1, 0.1, 0.1, 0.5])
    weight = np.array([1.0] * 4 + [1.0, 3.0, 2.0, heaviest])
    sample = Sample(np.array([[0.0, 1, 2, 3, 4, 5, 6, 7]]).T, y, weight)
    tree = grow_tree(sample, make_task("squared_error", sample), **options)
    leaves = [r for r, child in zip(tree.rows, tree.first_child, strict=True) if child < 0]
    assert sorted(leaves) == [[0], [1], [2], [3], [4, 5, 6], [7]]


@pytest.mark.parametrize("rows_at_a_time", [16, 50])
@pytest.mark.parametrize(("criterion", "weighted"), [("gini", False), ("squared_error", True)])
def test_chunks_do_not_change_the_tree(grow_tree, chunk_rows, criterion, weighted, rows_at_a_time):
    sample = random_sample(17, 300, 4, 0 if is_regression(criterion) else 5, weighted)
    task = make_task(criterion, sample)
    whole = grow_tree(sample, task, finish_rows=ALL_ROWS)
    chunk_rows(rows_at_a_time)
    assert grow_tree(sample, task, n_threads=3, **COARSE) == whole


def test_one_histogram_over_the_budget_finishes_from_the_root(grow_tree):
    sample = random_sample(4, 500, 3, 3)
    task = make_task("gini", sample)
    assert grow_tree(sample, task, histograms=0) == exact_tree(sample.values, task)


# -------------------------------------------------------------------- best first
@given(random_problems(120), st.integers(2, 30))
def test_best_first_growth(grow_tree, problem, max_leaf_nodes):
    """The level loop opens enough: closing nodes gives the tree of opening one by one."""
    criterion, sample = problem
    task = make_task(criterion, sample)
    full = exact_tree(sample.values, task)
    grown = grow_tree(sample, task, max_leaf_nodes=max_leaf_nodes, **COARSE)
    assert closed_paths(grown, task, max_leaf_nodes, best_first_leaves) == closed_paths(
        full, task, max_leaf_nodes, best_first
    )


def closed_paths(tree, task, max_leaf_nodes, method):
    """Leaves of the tree after best-first growth, each as (rows, depth)."""
    weight = np.ones(task.rows.target.size) if task.rows.weight is None else task.rows.weight
    gain = [g * float(weight[rows].sum()) for g, rows in zip(tree.gain, tree.rows, strict=True)]
    closed = method(np.array(tree.first_child), np.array(gain), max_leaf_nodes)
    leaves, open_nodes = [], [0]
    for t in open_nodes:
        if closed[t]:
            leaves.append((sorted(tree.rows[t]), tree.depth[t]))
        else:
            open_nodes += [tree.first_child[t], tree.first_child[t] + 1]
    return sorted(leaves)


@given(random_problems(80), st.integers(2, 40), st.data())
def test_best_first_leaves(problem, max_leaf_nodes, data):
    """Against opening the best node one by one, with many equal gains."""
    criterion, sample = problem
    tree = exact_tree(sample.values, make_task(criterion, sample))
    inner = np.array(tree.first_child) >= 0
    gains = st.lists(
        st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=inner.size, max_size=inner.size
    )
    gain = np.where(inner, data.draw(gains), 0.0)
    closed = best_first_leaves(np.array(tree.first_child), gain, max_leaf_nodes)
    assert closed.tolist() == best_first(tree.first_child, gain, max_leaf_nodes)


def test_only_nodes_that_best_first_growth_may_open_are_worth_opening():
    """Three leaves take two splits: a path gain below the two highest known is hopeless."""
    best_first = BestFirst(3, np.array([20, 10]))
    first = np.array([0, 20])
    assert best_first.levels(first, 9) == 1  # a second one may have a split too many
    found = best_first.worth(first, np.full(2, np.inf), np.array([True, False]), np.array([8, 9.0]))
    assert found.tolist() == [True, False]

    def worth(begin, path_gain, weighted_gain):
        found = np.ones(len(path_gain), np.bool_)
        given = np.array(begin), np.array(path_gain), found, np.array(weighted_gain)
        return best_first.worth(*given).tolist()

    assert best_first.levels(np.array([0, 19]), 9) == 0
    assert best_first.levels(np.array([19, 20]), 9) == 1
    # the second highest gain is 4 from here on; a gain that equals it may come first
    assert worth([0, 5, 10], [8.0] * 3, [4.0, 3.0, 4.0]) == [True, False, True]
    # and 2 in the second tree, whose first split is one of these
    gains = [3.0, 1.0, 4.0, 2.0, 8.0], [9.0, 1.0, 9.0, 2.0, 2.0]
    assert worth([0, 20, 9, 25, 19], *gains) == [False, True, True, True, False]
    assert worth([21, 29], [1.0, 2.0], [5.0, 3.0]) == [False, True]


# ---------------------------------------------------------------------- numbering
def test_renumber_is_breadth_first():
    """Nodes made depth-first, in pairs; node 7 and 8 are left over from a replaced root.

            0                       0
          3   4                   1   2
             5  6        ->          3  4
           1  2                    5  6
    """  # fmt: skip
    first_child = np.array([3, -1, -1, -1, 5, 1, -1, -1, -1])
    at = np.arange(9)
    begin = np.array([0, 20, 30, 0, 5, 20, 90, 0, 0])
    end = np.array([99, 30, 90, 5, 99, 90, 99, 0, 0])
    nodes = GrownNodes(
        first_child, at.astype(np.int32), at * 0.5, at % 2 == 0, at * 0.1, begin, end
    )
    taken, parent, depth = renumber(nodes)
    assert taken.begin.tolist() == [0, 0, 5, 20, 90, 20, 30]
    assert taken.first_child.tolist() == [1, -1, 3, 5, -1, -1, -1]
    assert parent.tolist() == [-1, 0, 0, 2, 2, 3, 3]
    assert depth.tolist() == [0, 1, 1, 2, 2, 3, 3]
    assert taken.feature.tolist() == [0, -2, 4, 5, -2, -2, -2]
    assert taken.threshold.tolist() == [0.0, -2.0, 2.0, 2.5, -2.0, -2.0, -2.0]
    sums = over_leaves(taken.first_child, np.array([[2, 1], [16, 0], [32, 3], [64, 5]]))
    assert sums[:, 0].tolist() == [114, 2, 112, 96, 16, 32, 64]
    assert sums[:, 1].tolist() == [9, 1, 8, 8, 0, 3, 5]


# ----------------------------------------------------------------------- drawing
@njit
def draw_on_device(key, order):
    cut.draw_columns(key, None, order, 0, order.size // 2)
    cut.draw_columns(key, None, order, order.size // 2, order.size)
    return mix(key), child_key(key, 0), child_key(key, 1)


@given(st.integers(0, 2**64 - 1), st.integers(1, 40))
def test_hashes_agree_on_both_sides_of_the_seam(key, d):
    order = np.empty(d, np.int64)
    mixed, left, right = draw_on_device(np.uint64(key), order)
    keys = np.array([key], np.uint64)
    assert mixed == mix(keys)[0] == oracles.mix(key)
    children = [oracles.child_key(key, 0), oracles.child_key(key, 1)]
    assert [left, right] == child_keys(keys).tolist() == children
    assert order.tolist() == oracles.draw_columns(key, d)


def test_draws_are_even():
    """Every column comes first about as often as any other: chi-squared far in the tail."""
    first = [oracles.draw_columns(oracles.mix(key), 8)[0] for key in range(4000)]
    count = np.bincount(first, minlength=8)
    assert ((count - 500) ** 2 / 500).sum() < 35
