"""The best cut of rows that are fractions, of which few are scored exactly: that of all cuts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends.cpu.layout import NodeList
from gputree.backends.cpu.lists import score, sieve
from gputree.backends.cpu.lists.backend import CpuLists
from gputree.backends.lists import BranchLimits, ColumnCodes, ListTask
from gputree.compilation import kernel
from gputree.criteria.entropy import in_steps, new_information, term

LEAST = (0, 1, 3)  # rows on either side of a cut


def new_level(code, y, weight, least):
    """The root of a table of one sorted column."""
    weights = fix_weights(weight, y.size, fractions=True)
    task = ListTask(
        information=new_information(weights.total, weights.unit),
        n_classes=int(y.max()) + 1,
        target=y.astype(np.uint8),
        weight=weights.weight,
        nominal=np.zeros(1, np.bool_),
        missing_is_category=False,
        limits=BranchLimits(float(least / weights.unit), 0.0, 0.0, 0.0, weights.unit),
    )
    codes = ColumnCodes(np.arange(y.size, dtype=np.int32)[None], code.astype(np.uint32)[None])
    return CpuLists(codes, task, 1).root(), task


def all_cuts(code, task):
    """Gain, tries and place of the best cut, all cuts scored exactly, those the rule leaves out."""
    information, weight, y = task.information, task.weight.tolist(), task.target
    total = sum(weight)
    least = max(int(np.ceil(task.limits.least)), 1)
    starts = [0, *(np.flatnonzero(np.diff(code)) + 1).tolist(), code.size]
    runs = list(zip(starts, starts[1:], strict=False))
    admitted = [a for a, _ in runs[1:] if least <= sum(weight[:a]) <= total - least]
    if total < 2 * least or code.size < 2 * task.limits.least * task.limits.unit:
        return -1, 0, -1
    best, place = 0, -1
    classes = {a: set(y[a:b]) for a, b in runs}
    before = {b: classes[a] for a, b in runs}
    for a in admitted:
        pure = len(before[a] | classes[a]) == 1
        if pure and a not in (admitted[0], admitted[-1]):
            continue
        gain = term(information, total) - term(information, sum(weight[:a]))
        gain -= term(information, sum(weight[a:]))
        for k in range(task.n_classes):
            left = sum(w for w, c in zip(weight[:a], y[:a], strict=True) if c == k)
            right = sum(w for w, c in zip(weight[a:], y[a:], strict=True) if c == k)
            gain += term(information, left) + term(information, right)
            gain -= term(information, left + right)
        gain = in_steps(information, gain)
        if gain > best:
            best, place = gain, a - 1
    return (best, len(admitted), place) if place >= 0 else (-1, 0, -1)


def assert_best(code, y, weight, least=0):
    level, task = new_level(code, y, weight, least)
    found = level.score()
    gain, tries, place = all_cuts(code, task)
    assert (found.gain[0, 0], found.tries[0, 0]) == (gain, tries)
    if place >= 0:
        assert (found.cut[0, 0], found.after[0, 0]) == (code[place], code[place + 1])
    return gain


@given(st.integers(2, 4), st.integers(2, 60), st.sampled_from(LEAST), st.data())
def test_few_rows_of_any_weight(n_classes, n, least, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    step = data.draw(st.sampled_from([0.05, 0.5, 1.0]))
    code = np.cumsum(rng.random(n) < step)
    y = rng.integers(n_classes, size=n)
    weight = rng.choice([1.0, 0.5, 1 / 3, rng.random() + 1e-3], size=n)
    assert_best(code, y, weight, least)


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_outermost_cut_may_lie_within_one_class(mirrored):
    y = np.repeat([0, 1], [2, 10])[:: -1 if mirrored else 1]
    weight = np.full(12, 0.5)
    assert assert_best(np.arange(12), y, weight, 1.5) > 0
    weight[5] = 0.25
    assert assert_best(np.arange(12), y, weight, 1.25) > 0


@pytest.mark.parametrize("size", [1.0, 1 / 3])
def test_more_cuts_tie_than_can_wait(size):
    """Classes that alternate: from either end, cuts gain the same, and the first wins."""
    n = 40 * sieve.WAITING
    y = np.arange(n) % 2
    assert assert_best(np.arange(n), y, np.full(n, size)) >= 0
    y = np.r_[np.zeros(n // 4, int), np.arange(n // 2) % 2, np.zeros(n // 4, int)]
    assert assert_best(np.arange(n), y, np.full(n, size)) > 0


@kernel
def _compare(information, column, scan, room, total, found):
    """Both scans of one list: gain, tries, place, weight up to it."""
    found[0] = score.best_cut(information, column, scan, total, 1)
    found[1] = sieve.best_cut_of_fractions(information, column, scan.known, room, total, 1)


def compare(code, y, weight):
    """The cut by the scan that scores all cuts exactly, and by the other."""
    level, task = new_level(code, y, weight, 0)
    k, (item, code) = task.n_classes, (array[0] for array in level.lists)
    scan = score.ClassScan(level.weights[0], *(np.zeros(k, np.int64) for _ in range(3)))
    room = sieve.Sieve(
        np.empty(k, np.int64),
        np.empty(k),
        *(np.empty(sieve.WAITING, np.int64) for _ in range(2)),
        np.empty((sieve.WAITING, k), np.int64),
    )
    found = np.zeros((2, 4), np.int64)
    column = NodeList(item, code, task.target, task.weight, 0, item.size)
    _compare(task.information, column, scan, room, int(level.weights.sum()), found)
    return found.tolist()


@pytest.mark.full
def test_many_rows_whose_best_cuts_are_near_each_other():
    rng = np.random.default_rng(0)
    for _ in range(400):
        n, k = rng.integers(2, 3000), rng.integers(2, 5)
        y = rng.integers(k, size=n)
        code = np.cumsum(rng.random(n) < rng.random())
        exact, sieved = compare(code, y, rng.choice([1.0, rng.random()], size=n))
        assert exact == sieved


def test_many_more_cuts_than_can_wait_are_within_the_window():
    rng = np.random.default_rng(0)
    for light in (1e-3, 1e-4, 1e-5, 1e-6):
        n = 3000
        y = (rng.random(n) < np.linspace(0.2, 0.8, n)).astype(int)
        exact, sieved = compare(np.arange(n), y, rng.choice([1.0, light], size=n, p=[0.05, 0.95]))
        assert exact == sieved


@kernel
def _about(weights, out):
    for i in range(weights.size):
        out[i] = sieve.about_term(weights[i])


def test_close_terms_are_as_close_as_the_window_takes_them_for():
    rng = np.random.default_rng(0)
    weights = np.unique(np.r_[0, 1, 2, 3, (2.0 ** rng.uniform(0, 60, 100_000)).astype(np.int64)])
    found = np.empty(weights.size)
    _about(weights, found)
    exact = weights * np.log2(np.maximum(weights, 1))
    assert np.all(np.abs(found - exact) <= weights * sieve._OFF_BY_TABLE / 4)
    assert np.abs(found - exact).max() > 0  # what is tested is not the logarithm itself
