"""Half Poisson deviance of regression targets that are 0 or positive, in nats.

A group of weight W and sum S deviates by ``sum y ln(y / (S / W))``: the decrease by a cut is
``P(S_l, W_l) + P(S_r, W_r) - P(S, W)`` with ``P(S, W) = S ln(S / W)``. Scores are this
difference in bits, and in units of targets: around the node's mean, nothing large cancels.

    channel 0   weight
    channel 1   sum of targets
    channel 2   sum of ``-z log2 z``, z the target as a fraction of `Poisson.scale`: bounds
                the deviation in a bin

`P` is the perspective of the convex ``x ln x``, so convex in (S, W); the corners of a polygon
around the parts that a bin can lose bound every cut inside it, as for the other criteria.
"""

import numpy as np

from gputree.compilation import jitable, kernel
from gputree.criteria import dispatch
from gputree.criteria.dispatch import BOUND_MARGIN, Poisson, formula
from gputree.criteria.shared import log2, target_means, xlog2x
from gputree.errors import InputError

LN_2 = 0.6931471805599453

# Relative error of sums of float64 terms, with much to spare.
ROUNDING = 1e-12

NEGATIVE_COUNTS = "Some value(s) of y are negative which is not allowed for Poisson regression."


def check_counts(low: float, high: float) -> None:
    """Raise for targets from `low` to `high` that are no counts or rates, or all zero."""
    if low < 0.0:
        raise InputError(NEGATIVE_COUNTS)
    if high <= 0.0:
        raise InputError("Sum of y is not positive which is necessary for Poisson regression.")


@formula(dispatch.begin, Poisson)
def _poisson_begin(criterion, left, total):
    weight = np.int64(total[0])
    whole = np.int64(total[1])
    mean = np.float64(whole) / np.float64(weight)
    return np.int64(left[0]), weight, np.int64(left[1]), whole, mean


@formula(dispatch.move, Poisson)
def _poisson_move(criterion, state, left, total, target, weight):
    weight_left, all_weight, sum_left, whole, mean = state
    return weight_left + weight, all_weight, sum_left + target, whole, mean


@formula(dispatch.means, Poisson)
def _poisson_means(criterion, state, left, total):
    weight_left, all_weight, sum_left, whole, _ = state
    return target_means(weight_left, sum_left, all_weight, whole)


@jitable
def excess(total, weight, mean):
    """Return ``S log2(S / W / mean)``, and 0 where S is 0."""
    return total * log2(total / weight / mean) if total > 0.0 else 0.0


@jitable
def splits_events(state):
    """True where both sides of a cut have events."""
    return 0 < state[2] < state[3]


@jitable
def both_excesses(state):
    """`excess` of both sides of a cut, summed."""
    weight_left, all_weight, sum_left, whole, mean = state
    side = excess(np.float64(sum_left), np.float64(weight_left), mean)
    other = excess(np.float64(whole - sum_left), np.float64(all_weight - weight_left), mean)
    return side + other


@formula(dispatch.score, Poisson)
def _poisson_score(criterion, state, left, total):
    """No cut leaves a side without events: its rate would have no logarithm."""
    return both_excesses(state) if splits_events(state) else -np.inf


@formula(dispatch.refused_score, Poisson)
def _poisson_refused_score(criterion, state, left, total):
    return -np.inf if splits_events(state) else both_excesses(state)


@formula(dispatch.gain, Poisson)
def _poisson_gain(criterion, value, total):
    return value * (criterion.unit * criterion.scale * LN_2) / np.float64(total[0])


@formula(dispatch.margin, Poisson)
def _poisson_margin(criterion, value, total):
    """Margin for small scores, which are differences of terms that grow with the sum of targets."""
    return BOUND_MARGIN * value + ROUNDING * np.float64(total[1])


@formula(dispatch.bound, Poisson)
def _poisson_bound(criterion, left, cells, offset, total):
    """The lower of two bounds, from the bin's weight b, sum s and term ``Q = sum y log2 y``.

    Every part of the bin has ``P(part) <= Q(part)`` (the log sum inequality), and P of two parts
    together is at most the sum of both: so no cut is worth more than the single rows of the bin,
    the rows left of it and the rows right of it, all separate. This bound is the only one where
    there are no rows on one side.

    A part with fraction p of the weight and q of the sum has ``s KL(q, p) <= Q - P(s, b)``, so by
    Pinsker's inequality |p - q| is at most some d: a hexagon in the square of p and q. The
    score is convex, so the corners of the hexagon bound it.
    """
    whole = np.float64(total[1])
    if whole <= 0.0:
        return -np.inf
    mean = whole / np.float64(total[0])
    a = np.float64(left[0])
    before = np.float64(left[1])
    b = np.float64(cells[offset])
    s = np.float64(cells[offset + 1])
    r = np.float64(np.int64(total[0]) - left[0] - np.int64(cells[offset]))
    after = np.float64(np.int64(total[1]) - left[1] - np.int64(cells[offset + 1]))
    single = -np.float64(cells[offset + 2]) - s * log2(mean * criterion.unit)
    apart = excess(before, a, mean) + single + excess(after, r, mean)
    if a == 0.0 or r == 0.0:
        return apart
    d = 0.0
    if s > 0.0:
        spread = max(single - excess(s, b, mean), 0.0) + ROUNDING * s
        d = min(np.sqrt(0.5 * LN_2 * spread / s), 1.0)
    most = 0.0
    for i in range(6):
        p = 1.0 if i == 1 or i == 5 else d if i == 3 else 1.0 - d if i == 4 else 0.0
        q = 1.0 if i == 1 or i == 4 else d if i == 2 else 1.0 - d if i == 5 else 0.0
        side = excess(before + q * s, a + p * b, mean)
        other = excess(after + (1.0 - q) * s, r + (1.0 - p) * b, mean)
        most = max(most, side + other)
    return min(most, apart)


@kernel
def deviance_terms(target, weight, unit, bits, whole, rest):
    """Return ``-z log2 z`` of each row times its weight, for channel 2, and its rest.

    `target` is weight x z, in `unit`; the rest is in ``2**-bits``.
    """
    for i in range(target.size):
        w = np.float64(weight[i])
        term = -xlog2x(np.float64(target[i]) * unit / w) * w / unit
        below = np.floor(term)
        whole[i] = np.int64(below)
        rest[i] = np.int64(np.rint((term - below) * 2.0**bits))


@kernel
def node_deviances(weight, sums, terms, unit, scale):
    """Half Poisson deviance per unit of weight, from sums of m nodes in units; 0 for no event."""
    out = np.zeros(sums.size)
    for j in range(sums.size):
        out[j] = node_deviance(weight[j], sums[j], terms[j], unit, scale)
    return out


@jitable
def node_deviance(weight, total, terms, unit, scale):
    """Half Poisson deviance per unit of weight of one node: see `node_deviances`."""
    s = np.float64(total)
    if s > 0.0:
        w = np.float64(weight)
        value = -terms - s * log2(s * unit / w)
        if value > 16.0 * 2.0**-52 * terms:  # a difference below rounding is 0
            return value * (unit * scale * LN_2) / w
    return 0.0


@formula(dispatch.target_impurity, Poisson)
def _poisson_impurity(criterion, weight, total, squares, units):
    return node_deviance(weight, total, squares, criterion.unit, criterion.scale)
