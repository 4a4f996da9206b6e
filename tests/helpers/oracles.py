"""Naive counterparts of the kernels: plain NumPy and Python integers, one decision at a time.

Scores repeat the documented formulas in the documented order of operations, so that they
can be compared to the last bit; everything else is written the slow, obvious way.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np

from gputree.backends.base import Task
from gputree.criteria import Criterion, Entropy, Gini, Poisson, SquaredError, WideGini

LOG2_E = 1.4426950408889634
MASK_64 = 2**64 - 1


# ------------------------------------------------------------------ criteria
def log2(x):
    """The series of `gputree.criteria.log2`, on arrays, its mantissa taken by frexp."""
    m, exponent = np.frexp(np.asarray(x, np.float64))  # 0.5 <= m < 1
    small = 2.0 * m <= 1.4142135623730951
    m = np.where(small, 2.0 * m, m)
    exponent = exponent - small
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / 21.0
    for odd in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        p = p * z + 1.0 / odd
    p = p * z
    return exponent + (s + s * p) * (2.0 * LOG2_E)


def xlog2x(x):
    """``x log2 x``, and 0 at 0."""
    return np.where(x > 0, x * log2(np.where(x > 0, x, 1.0)), 0.0)


def scores(criterion: Criterion, left, total):
    """Scores of the cuts with statistics ``left[i]`` on the left, in the order of the kernels."""
    left = np.atleast_2d(np.asarray(left, np.int64))
    total = np.asarray(total, np.int64)
    if isinstance(criterion, SquaredError):
        return _squared_scores(left, total)
    if isinstance(criterion, Poisson):
        return _poisson_scores(left, total)
    right = total - left
    weight_left = left.sum(axis=1).astype(np.float64)
    weight_right = right.sum(axis=1).astype(np.float64)
    if isinstance(criterion, Gini):
        square_left = (left * left).sum(axis=1).astype(np.float64)
        square_right = (right * right).sum(axis=1).astype(np.float64)
        return square_left / weight_left + square_right / weight_right
    a, b = left.astype(np.float64), right.astype(np.float64)
    if isinstance(criterion, WideGini):
        square_left = square_right = np.zeros(len(left))
        for k in range(total.size):
            square_left = square_left + a[:, k] * a[:, k]
            square_right = square_right + b[:, k] * b[:, k]
        return square_left / weight_left + square_right / weight_right
    assert isinstance(criterion, Entropy)
    unit, value = criterion.unit, np.zeros(len(left))
    for k in range(total.size):
        value = value + (xlog2x(a[:, k] * unit) + xlog2x(b[:, k] * unit))
    return value - (xlog2x(weight_left * unit) + xlog2x(weight_right * unit))


def _squared_scores(left, total):
    weight, whole_sum = int(total[0]), int(total[1])
    centre = whole_sum // weight
    rest = float(whole_sum - centre * weight) / float(weight)
    a = left[:, 0].astype(np.float64)
    d = (left[:, 1] - centre * left[:, 0]).astype(np.float64) - a * rest
    return (d * d) / (a * (weight - left[:, 0]).astype(np.float64))


def _poisson_scores(left, total):
    """Minus infinity where a side has no events."""
    mean = np.float64(total[1]) / np.float64(total[0])
    value = np.zeros(len(left))
    for side in (left, total - left):
        events = side[:, 1].astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(events > 0, events / side[:, 0].astype(np.float64) / mean, 1.0)
        value = value + events * log2(rate)
    refused = (left[:, 1] <= 0) | (left[:, 1] >= total[1])
    return np.where(refused, -np.inf, value)


def gain(criterion: Criterion, score: float, total) -> float:
    """Decrease of impurity per unit of weight, in the order of the kernels."""
    if isinstance(criterion, SquaredError):
        return float(score * criterion.unit * criterion.unit)
    if isinstance(criterion, Poisson):
        ln_2 = 0.6931471805599453
        return float(score * (criterion.unit * criterion.scale * ln_2) / np.float64(total[0]))
    weight = inside = np.float64(0.0)
    for k in total:
        a = np.float64(k) * (criterion.unit if isinstance(criterion, Entropy) else 1.0)
        weight += a
        inside += xlog2x(a) if isinstance(criterion, Entropy) else a * a
    if isinstance(criterion, Entropy):
        return float((score - (inside - xlog2x(weight))) / weight)
    return float((score - inside / weight) / weight)


def impurity(criterion: Criterion, statistics) -> float:
    """Impurity by definition; of class weights, or of (targets, weights) by exact fractions."""
    if isinstance(criterion, SquaredError):
        targets, weights = statistics
        whole = sum(weights)
        mean = Fraction(sum(w * t for t, w in zip(targets, weights, strict=True)), whole)
        squares = (w * (t - mean) ** 2 for t, w in zip(targets, weights, strict=True))
        return float(sum(squares) / whole)
    if isinstance(criterion, Poisson):
        targets, weights = (np.array(part, np.float64) for part in statistics)
        mean = np.average(targets, weights=weights)
        terms = [w * t * np.log(t / mean) for t, w in zip(targets, weights, strict=True) if t > 0]
        return math.fsum(terms) / float(weights.sum())
    whole = sum(int(k) for k in statistics)
    shares = [int(k) / whole for k in statistics if k > 0]
    if isinstance(criterion, Entropy):
        return -float(sum(p * np.log2(p) for p in shares))
    return 1.0 - sum(p * p for p in shares)


def impurity_of_rows(criterion: str, y, weight) -> float:
    """Impurity of rows by definition: of numbers the variance, of labels gini or bits."""
    if criterion == "squared_error":
        return np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    shares = np.array([weight[y == label].sum() for label in set(y.tolist())]) / weight.sum()
    shares = shares[shares > 0]
    return 1 - (shares**2).sum() if criterion == "gini" else -(shares * np.log2(shares)).sum()


# -------------------------------------------------------------------- random
def mix(key: int) -> int:
    """SplitMix64 in Python's integers."""
    z = (key + 0x9E3779B97F4A7C15) & MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK_64
    return z ^ (z >> 31)


def child_key(key: int, ordinal: int) -> int:
    """Key of a child: a hash of the path."""
    return mix(key ^ mix(ordinal + 1))


def draw_columns(key: int, d: int) -> list[int]:
    """Fisher-Yates permutation of ``range(d)``."""
    order = list(range(d))
    for i in range(d):
        j = i + ((mix((key + i) & MASK_64) >> 32) * (d - i) >> 32)
        order[i], order[j] = order[j], order[i]
    return order


def tie_rank(random_ties: bool, key: int, f: int) -> int:
    """Rank of a column: of columns whose cuts score alike, the lowest rank is taken."""
    return mix(((key ^ 0x7469657362796861) + f) & MASK_64) if random_ties else f


# ---------------------------------------------------------------------- cuts
class Cut(NamedTuple):
    """A cut of one node."""

    score: float
    feature: int
    missing_left: bool
    threshold: float
    goes_left: np.ndarray  # (rows of the node,) bool


def row_statistics(task: Task):
    """Statistics of single rows, (n, channels): the additive part of every kernel."""
    n = task.rows.target.size
    weight = np.ones(n, np.int64) if task.rows.weight is None else task.rows.weight
    if task.n_classes:
        out = np.zeros((n, task.n_classes), np.int64)
        out[np.arange(n), task.rows.target] = weight
        return out
    return np.stack([weight, task.rows.target, task.rows.square], axis=1)


def midpoint(low: float, high: float) -> float:
    """Half-way between two values, or the lower one where that rounds up."""
    middle = 0.5 * low + 0.5 * high
    return middle if middle < high else low


def column_cuts(column, statistics, missing_left: bool):
    """List the cuts of one column: (rows on the left, their statistics, threshold) each."""
    known = np.flatnonzero(~np.isnan(column))
    absent = np.flatnonzero(np.isnan(column))
    order = known[np.argsort(column[known], kind="stable")]
    ordered = column[order].astype(np.float64)
    ends = np.flatnonzero(ordered[:-1] != ordered[1:]) + 1
    thresholds = [midpoint(ordered[i - 1], ordered[i]) for i in ends]
    if absent.size and known.size and not missing_left:
        ends = np.append(ends, known.size)
        thresholds.append(np.inf)
    sums = np.concatenate([np.zeros((1, statistics.shape[1]), np.int64), statistics[order]])
    left = np.cumsum(sums, axis=0)[ends]
    counts = ends.copy()
    if missing_left:
        left = left + statistics[absent].sum(axis=0)
        counts = counts + absent.size
    return order, ends, counts, left, thresholds


def side_means(task: Task, left, total):
    """Means of both sides of each cut: probabilities of class 1, or mean targets in units."""
    sides = np.asarray(left), np.asarray(total) - np.asarray(left)
    weights = [side.sum(axis=-1) if task.n_classes else side[..., 0] for side in sides]
    return [side[..., 1] / weight for side, weight in zip(sides, weights, strict=True)]


def in_order(task: Task, left, total):
    """True for cuts that keep the order of the column's sign, and the node's bounds."""
    held = task.limits.monotonic
    if held is None or held.sign == 0 or not len(left):
        return True
    first, second = side_means(task, left, total)
    low, high = (first, second) if held.sign > 0 else (second, first)
    return (low <= high) & (held.lower <= low) & (high <= held.upper)


def held_by(task: Task, **monotonic) -> Task:
    """The task with the sign of a column, or bounds of a node, if it has any."""
    if task.limits.monotonic is None:
        return task
    signs = task.limits.monotonic._replace(**monotonic)
    return replace(task, limits=task.limits._replace(monotonic=signs))


def bounds_below(task: Task, cut, total, left) -> list[dict]:
    """Bounds of both children of a node, cut so."""
    held = task.limits.monotonic
    if held is None or held.signs[cut.feature] == 0:
        parent = {} if held is None else {"lower": held.lower, "upper": held.upper}
        return [parent, parent]
    first, second = side_means(task, left, total)
    middle = 0.5 * first + 0.5 * second
    below = {"lower": held.lower, "upper": middle}
    above = {"lower": middle, "upper": held.upper}
    return [below, above] if held.signs[cut.feature] > 0 else [above, below]


def admissible(task: Task, left, total, counts, n: int):
    """True for cuts that leave both sides as large as the limits require, and in order."""
    limits = task.limits
    scored = scores(task.criterion, left, total) > -np.inf if len(left) else True
    weight = left[:, 0] if not task.n_classes else left.sum(axis=1)
    whole = total[0] if not task.n_classes else total.sum()
    least = max(limits.min_samples_leaf, 1)
    return (scored & in_order(task, left, total)) & (
        (counts >= least)
        & (n - counts >= least)
        & (weight >= limits.min_weight_leaf)
        & (whole - weight >= limits.min_weight_leaf)
    )


def all_cuts(values, task: Task, rows, feature: int):
    """Admissible cuts of one column of one node in the order of the tie rule."""
    statistics = row_statistics(task)[rows]
    total = statistics.sum(axis=0)
    column = values[rows, feature]
    for missing_left in (False, True):
        if missing_left and not np.isnan(column).any():
            continue
        order, ends, counts, left, thresholds = column_cuts(column, statistics, missing_left)
        allowed = admissible(task, left, total, counts, len(rows))
        for i in np.flatnonzero(allowed):
            goes_left = np.isnan(column) & missing_left
            goes_left[order[: ends[i]]] = True
            score = float(scores(task.criterion, left[i], total)[0])
            yield Cut(score, feature, missing_left, thresholds[i], goes_left)


def column_best(values, task: Task, rows, feature: int) -> Cut | None:
    """First of the best cuts of one column: the generator above, scored all at once."""
    statistics = row_statistics(task)[rows]
    total = statistics.sum(axis=0)
    column = values[rows, feature]
    best = None
    for missing_left in (False, True):
        if missing_left and not np.isnan(column).any():
            continue
        order, ends, counts, left, thresholds = column_cuts(column, statistics, missing_left)
        allowed = np.flatnonzero(admissible(task, left, total, counts, len(rows)))
        if not allowed.size:
            continue
        value = scores(task.criterion, left[allowed], total)
        first = int(np.argmax(value))
        if best is None or value[first] > best.score:
            i = allowed[first]
            goes_left = np.isnan(column) & missing_left
            goes_left[order[: ends[i]]] = True
            best = Cut(float(value[first]), feature, missing_left, thresholds[i], goes_left)
    return best


def is_leaf(task: Task, rows) -> bool:
    """Return True if one target may stand for all rows of a node, by exact fractions."""
    if task.n_classes:
        return np.unique(task.rows.target[rows]).size < 2
    weight = np.ones(len(rows), np.int64) if task.rows.weight is None else task.rows.weight[rows]
    targets, weights = task.rows.target[rows].tolist(), weight.tolist()
    values = [Fraction(t, w) for t, w in zip(targets, weights, strict=True)]
    if not task.limits.rounded:
        return len(set(values)) == 1
    errors = [Fraction(1, w) + abs(v) / 2**50 for v, w in zip(values, weights, strict=True)]
    low = max(v - e for v, e in zip(values, errors, strict=True))
    return low <= min(v + e for v, e in zip(values, errors, strict=True))


def best_cut(values, task: Task, rows, key: int = 0, columns=None) -> Cut | None:
    """The cut of a node by the tie rule: highest score, lowest rank, missing right, lowest cut.

    It is of one of `columns`, ascending, or of any.
    """
    if is_leaf(task, rows):
        return None
    columns = list(range(values.shape[1])) if columns is None else columns
    wanted = task.limits.max_features
    order = columns
    if wanted < len(columns):
        order = [columns[i] for i in draw_columns(key, len(columns))]
    best: Cut | None = None
    rank = partial(tie_rank, task.limits.random_ties, key)
    for visited, f in enumerate(order):
        if visited >= wanted and best is not None:
            break
        signs = task.limits.monotonic
        limited = task if signs is None else held_by(task, sign=int(signs.signs[f]))
        cut = column_best(values, limited, rows, f)
        if cut and (best is None or (-cut.score, rank(f)) < (-best.score, rank(best.feature))):
            best = cut
    return best


# --------------------------------------------------------------------- trees
class Grown(NamedTuple):
    """A tree in breadth-first order, with the rows of every node; -1 for no child or feature."""

    first_child: list[int]
    feature: list[int]
    threshold: list[float]
    missing_left: list[bool]
    gain: list[float]
    depth: list[int]
    rows: list[list[int]]


def exact_tree(values, task: Task, rows=None, depth: int = 0, key: int = 7, groups=None) -> Grown:
    """Reference CART over all cuts, breadth-first.

    A node without missing values in its column sends them to the larger child. All columns of a
    path are in one of `groups`, if these are given.
    """
    limits = task.limits
    tree = Grown([], [], [], [], [], [], [])
    rows = np.arange(len(values)) if rows is None else rows
    _add_leaf(tree, rows, depth)
    queue = [(0, np.asarray(rows), key, task, frozenset())]
    for node, rows, key, task, path in queue:  # the queue grows as it is read
        least = max(limits.min_samples_split, 2 * limits.min_samples_leaf, 2)
        if len(rows) < least or tree.depth[node] >= limits.max_depth:
            continue
        columns = None if groups is None else columns_allowed(path, groups)
        cut = best_cut(values, task, rows, key, columns)
        total = row_statistics(task)[rows].sum(axis=0)
        weight = total[0] if not task.n_classes else total.sum()
        if cut is None:
            continue
        decrease = gain(task.criterion, cut.score, total)
        if decrease * float(weight) < limits.min_decrease:
            continue
        left, right = rows[cut.goes_left], rows[~cut.goes_left]
        seen = np.isnan(values[rows, cut.feature]).any()
        tree.first_child[node] = len(tree.rows)
        tree.feature[node] = cut.feature
        tree.threshold[node] = cut.threshold
        tree.missing_left[node] = cut.missing_left if seen else len(left) > len(right)
        tree.gain[node] = decrease
        below = bounds_below(task, cut, total, row_statistics(task)[left].sum(axis=0))
        for side, part in enumerate((left, right)):
            limited = held_by(task, **below[side])
            path_below = path | {cut.feature}
            queue.append((len(tree.rows), part, child_key(key, side), limited, path_below))
            _add_leaf(tree, part, tree.depth[node] + 1)
    return tree


def columns_allowed(path: frozenset[int], groups) -> list[int]:
    """Columns of the groups that contain all columns of a path, ascending."""
    return sorted(set().union(*(group for group in groups if path <= set(group))))


def _add_leaf(tree: Grown, rows, depth: int) -> None:
    for field, value in zip(tree, (-1, -1, 0.0, False, 0.0, depth, rows.tolist()), strict=True):
        field.append(value)


def best_first(first_child, weighted_gain, max_leaf_nodes: int) -> list[bool]:
    """Mark the nodes that stay closed when the node of highest gain is opened, one by one."""
    closed = [True] * len(first_child)
    reachable = {0}
    for _ in range(max_leaf_nodes - 1):
        ready = [t for t in reachable if closed[t] and first_child[t] >= 0]
        if not ready:
            break
        opened = max(ready, key=lambda t: (weighted_gain[t], -t))
        closed[opened] = False
        reachable |= {first_child[opened], first_child[opened] + 1}
    return closed
