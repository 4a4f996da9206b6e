"""Trees over ranked lists equal those of a search that scores every cut by its definition."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gputree.arithmetic.bits import child_key
from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends.base import Limits
from gputree.backends.cpu.cut import drawn_columns
from gputree.backends.cpu.ranked import grower
from gputree.backends.cpu.ranked.class_sums import project
from gputree.backends.cpu.ranked.grower import RankedGrower
from gputree.backends.cpu.ranked.lists import partition_list, presort
from gputree.backends.cpu.ranked.subsets import FEWEST, MOST
from gputree.backends.cpu.table import CpuTable
from gputree.backends.lists import NodeRows
from gputree.compilation.tiers import forced
from gputree.criteria.pinball import MOST_BITS, absolute_errors, fix_ranked, fraction_of

QUANTILES = (None, 0.5, 0.1, 0.975, 1 / 3)


def loss_of(criterion, target, weight):
    """Minimum loss of some rows: at one of their targets."""
    return min(
        sum(
            int(w) * (criterion.up * max(int(y - m), 0) + criterion.down * max(int(m - y), 0))
            for y, w in zip(target, weight, strict=True)
        )
        for m in set(target.tolist())
    )


class Problem:
    """A random table with ties, missing values, categories, weights, limits and drawn columns."""

    def __init__(self, seed):
        r = np.random.default_rng(seed)
        n, d = int(r.integers(2, 24)), int(r.integers(1, 4))
        self.X = np.round(r.normal(size=(n, d)) * r.choice([1, 3, 100]))
        self.nominal = r.random(d) < 0.3
        self.X[:, self.nominal] = r.integers(0, 5, (n, int(self.nominal.sum())))
        self.X[r.random((n, d)) < r.choice([0.0, 0.2, 0.6])] = np.nan
        missing, categories = np.isnan(self.X).any(axis=0), 5 * self.nominal.astype(np.int64)
        self.table = CpuTable(self.X, missing, categories).bare
        kinds = [r.normal(size=n), r.integers(0, 3, n) + 0.0, np.exp(2 * r.normal(size=n))]
        self.y = r.permuted(r.permutation(kinds)[: int(r.integers(1, 4))], axis=1)
        weight = r.choice([np.ones(n), r.integers(1, 4, n) + 0.0, np.exp(r.normal(size=n))])
        self.quantile = QUANTILES[int(r.integers(len(QUANTILES)))]
        self.fixed = fix_ranked(self.y, fix_weights(weight, n), self.quantile)
        self.target, self.n_targets = self.fixed.target, len(self.y)
        units = self.fixed.weights.weight
        self.weight = np.ones(n, np.int64) if units is None else units
        self.order = np.argsort(self.y[0], kind="stable").astype(np.int32)
        self.limits = Limits(
            max_depth=int(r.integers(1, 5)),
            min_samples_split=int(r.integers(2, 5)),
            min_samples_leaf=int(r.integers(1, 3)),
            min_weight_leaf=int(self.weight.sum()) // 10 * int(r.integers(0, 2)),
            min_decrease=float(r.choice([-np.inf, 0.05 * np.abs(self.y).mean() * n])),
            max_features=int(r.integers(1, d + 1)),
            rounded=False,
        )

    def grow(self, n_threads=1):
        """Nodes, and rows in the order of the leaves."""
        units, order = self.fixed.weights.weight, self.order
        places = np.argsort(self.y[:, order], axis=1, kind="stable").astype(np.int32)
        target = np.take_along_axis(self.target[:, order], places, axis=1)
        units = None if units is None else units[order][places]
        rows = NodeRows(order.copy(), target, units, places if self.n_targets > 1 else None)
        growth = RankedGrower(self.table, self.fixed.criterion, self.limits, rows, n_threads)
        return growth.grow(7), rows.row

    def loss(self, rows):
        """Loss of some rows at their quantiles."""
        weight = self.weight[rows]
        return sum(loss_of(self.fixed.criterion, of[rows], weight) for of in self.target)

    def category_order(self, rows, f):
        """Rows of one column with the place of each row's category, by quantiles and mean."""
        criterion, found, codes = self.fixed.criterion, [], np.unique(self.X[rows, f])
        quantiles, wholes = np.empty((codes.size, self.n_targets)), np.empty(codes.size)
        for (c, code), (j, target) in product(enumerate(codes), enumerate(self.target)):
            group = rows[self.X[rows, f] == code]
            group = group[np.argsort(target[group], kind="stable")]
            sums = (criterion.up + criterion.down) * np.cumsum(self.weight[group])
            wholes[c] = whole = int(self.weight[group].sum())
            quantiles[c, j] = target[group][np.searchsorted(sums, criterion.up * whole)]
        key = quantiles[:, 0] if self.n_targets == 1 else project(quantiles, wholes)
        for c, code in enumerate(codes):
            group = rows[self.X[rows, f] == code]
            total = int((self.weight[group] * self.target[0][group]).sum())
            found.append((key[c], total / wholes[c], code))
        places = {code: place for place, (_, _, code) in enumerate(sorted(found))}
        return np.array([places[code] for code in self.X[rows, f]])

    def best_subset_first(self, known, missing, x):
        """Places of categories in an order that begins with the best of all subsets of 4 to 8."""
        k = int(x.max()) + 1
        if not FEWEST <= k <= MOST:
            return x
        found = []
        for mask in range(1, 2**k - 1, 2):
            inside = np.isin(x, np.flatnonzero(mask >> np.arange(k) & 1))
            for with_missing in range(1 + (missing.size > 0)):
                sides = [known[inside], known[~inside]]
                sides[with_missing] = np.concatenate([sides[with_missing], missing])
                weights = min(self.weight[side].sum() for side in sides)
                small = min(map(len, sides)) < max(self.limits.min_samples_leaf, 1)
                if not small and weights >= self.limits.min_weight_leaf:
                    loss = sum(map(self.loss, sides))
                    found.append((loss, -weights, mask & (mask + 1) != 0, mask))
        if not found:
            return x
        first = [g for g in range(k) if min(found)[-1] >> g & 1]
        order = first + [g for g in range(k) if g not in first]
        return np.argsort(order)[x]

    def cuts(self, rows, f):
        """Admissible cuts of a column: the terms that decide between them, and their left rows."""
        x = self.X[rows, f]
        known, missing = rows[~np.isnan(x)], rows[np.isnan(x)]
        if known.size == 0:
            return
        x = self.X[known, f]
        if self.nominal[f]:
            x = self.best_subset_first(known, missing, self.category_order(known, f))
        for missing_left in range(1 + (missing.size > 0)):
            for value in np.unique(x):
                left = known[x <= value]
                left = np.concatenate([missing, left]) if missing_left else left
                right = np.setdiff1d(rows, left)
                sizes = min(left.size, right.size)
                weights = min(self.weight[left].sum(), self.weight[right].sum())
                if sizes < max(self.limits.min_samples_leaf, 1):
                    continue
                if weights < self.limits.min_weight_leaf:
                    continue
                loss = self.loss(left) + self.loss(right)
                yield (loss, -weights, f, missing_left, value), np.sort(left)

    def naive(self, rows, depth, key):
        """The tree below a node as nested tuples: see `nested`."""
        own, limits = self.loss(rows), self.limits
        leaf = (own, tuple(np.sort(rows)))
        if rows.size < max(limits.min_samples_split, 2 * limits.min_samples_leaf) or own == 0:
            return leaf
        if depth >= limits.max_depth:
            return leaf
        every = np.ones(self.X.shape[1], np.bool_)
        order = drawn_columns(limits.max_features, key, every)
        first = [cut for f in order[: limits.max_features] for cut in self.cuts(rows, f)]
        for f in order[limits.max_features :]:
            first = first or list(self.cuts(rows, f))
        if not first:
            return leaf
        (loss, _, f, missing_left, _), left = min(first, key=lambda cut: cut[0])
        if (own - loss) * self.fixed.criterion.unit < limits.min_decrease:
            return leaf
        keys = child_key(np.array([key]), np.arange(2))
        sides = left, np.setdiff1d(rows, left)
        if not np.isnan(self.X[rows, f]).any():
            missing_left = left.size > sides[1].size
        below = [self.naive(side, depth + 1, key) for side, key in zip(sides, keys, strict=True)]
        return (*leaf, f, bool(missing_left), *below)

    def nested(self, nodes, row, node=0):
        """Nested tuples of nodes: loss, rows and, where they split, column, direction, children."""
        s, t, child = nodes.begin[node], nodes.end[node], nodes.first_child[node]
        found = nodes.loss[node], tuple(np.sort(row[s:t]))
        if child < 0:
            return found
        split = nodes.feature[node], bool(nodes.missing_left[node])
        return (*found, *split, *(self.nested(nodes, row, child + side) for side in range(2)))


@given(st.integers(0, 10**6))
def test_trees_are_those_of_all_cuts_by_definition(seed):
    problem = Problem(seed)
    expected = problem.naive(np.arange(len(problem.X)), 0, np.uint64(7))
    assert problem.nested(*problem.grow()) == expected


@given(st.integers(0, 10**6))
def test_large_nodes_are_split_as_small_ones(seed):
    problem = Problem(seed)
    expected = problem.nested(*problem.grow())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grower, "FEWEST_SHARED", 1)
        patch.setattr(grower, "MOST_WHOLE", 1)
        patch.setattr(grower, "MOST_SECONDS", 0.0)
        for n_threads in (1, 2):
            assert problem.nested(*problem.grow(n_threads)) == expected


@pytest.mark.parametrize("seed", [3, 7])
def test_compiled_sweeps_give_the_interpreted_trees(seed):
    problem = Problem(seed)
    expected = problem.nested(*problem.grow())
    with forced("always"):
        assert problem.nested(*problem.grow()) == expected


@given(st.integers(0, 10**6))
@example(1)  # a sum that is 0 at a quantile that is no median
@example(5)  # a cut behind the last value, before missing ones
def test_nodes_predict_the_quantile_and_their_cuts_lie_between_rows(seed):
    problem = Problem(seed)
    nodes, row = problem.grow()
    for node in range(nodes.begin.size):
        rows = np.sort(row[nodes.begin[node] : nodes.end[node]])
        level = 0.5 if problem.quantile is None else float(fraction_of(problem.quantile))
        whole = problem.weight[rows].sum()
        for y, ends in zip(problem.y, nodes.quantile[node], strict=True):
            low, high = y[ends]
            assert problem.weight[rows[y[rows] < low]].sum() < level * whole + 1e-9
            assert problem.weight[rows[y[rows] <= low]].sum() >= level * whole - 1e-9
            if low < high:
                assert level == 0.5
                assert 2 * problem.weight[rows[y[rows] <= low]].sum() == whole
        f, child = nodes.feature[node], nodes.first_child[node]
        if child >= 0 and not problem.nominal[f]:
            left = row[nodes.begin[child] : nodes.end[child]]
            below, above = problem.X[nodes.cut[node], f]
            known = problem.X[left, f]
            assert np.nanmax(known) == below
            behind = problem.X[rows, f][problem.X[rows, f] > below]
            assert above == (behind.min() if behind.size else below)


@given(st.integers(0, 10**6))
def test_partitioned_lists_are_those_sorted_anew(seed):
    """Ranks, ties and missing values of both children, where sides are drawn."""
    r = np.random.default_rng(seed)
    n = int(r.integers(1, 30))
    x = r.integers(0, 6, n) + 0.0
    x[r.random(n) < 0.2] = np.nan
    elements, is_left = presort(x), r.random(n) < 0.5
    number = np.where(is_left, np.cumsum(is_left) - 1, ~(np.cumsum(~is_left) - 1)).astype(np.int32)
    partition_list(elements, number, np.empty(n, np.int32))
    left = int(is_left.sum())
    for side, mask in ((elements[:left], is_left), (elements[left:], ~is_left)):
        assert side.tolist() == (presort(x[mask]).tolist() if mask.any() else [])


@pytest.mark.parametrize("quantile", QUANTILES)
def test_no_sum_of_a_loss_overflows(quantile):
    """Targets at both ends of the range, and weights of every size."""
    r = np.random.default_rng(0)
    n = 100_000
    for weight in (None, r.integers(0, 1000, n) + 1.0, np.exp(5 * r.normal(size=n))):
        fixed = fix_ranked(np.where(r.random(n) < 0.5, -1e9, 1e9), fix_weights(weight, n), quantile)
        units = n if fixed.weights.weight is None else int(fixed.weights.weight.sum())
        assert units == fixed.weights.total
        parts = fixed.criterion.up + fixed.criterion.down
        assert parts * units * 2 * int(np.abs(fixed.target).max()) < 2 ** (MOST_BITS + 1)
        assert (
            np.ptp(fixed.target) * fixed.criterion.unit * (1 if quantile is None else parts) == 2e9
        )


def test_weights_are_rounded_to_a_part_of_their_mean_and_no_row_is_lost():
    weight = np.exp(5 * np.random.default_rng(0).normal(size=1000))
    found = fix_ranked(np.arange(1000.0), fix_weights(weight, 1000), None).weights
    assert found.weight.min() >= 1
    np.testing.assert_allclose(found.weight * found.unit, weight, atol=weight.mean() * 2**-13)


@pytest.mark.parametrize("power", [1, 2])
def test_losses_of_nodes_are_sums_over_the_rows_below(power):
    parent = np.array([-1, 0, 0, 1, 1], np.int32)
    predictions = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    stop = np.array([3, 4, 2, 3, 1], np.int32)
    target, weight = np.array([1.0, 9.0, 2.0, 4.5, 0.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    below, stopped = absolute_errors(parent, predictions, stop, target, weight, power)
    reach = [[0, 1, 2, 3, 4], [0, 1, 3, 4], [2], [0, 3], [1]]
    for node, rows in enumerate(reach):
        loss = weight * np.abs(target - predictions[node]) ** power
        assert below[node] == pytest.approx(loss[rows].sum())
        assert stopped[node] == pytest.approx(loss[stop == node].sum())
