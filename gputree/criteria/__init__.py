"""Split criteria: scores of cuts, and bounds on the scores of cuts inside a bin.

A criterion is a named tuple whose type selects the formulas at compile time. All
kernels see the same channels of fixed-point int64 statistics:

    classification   channel k: weight of class k   (K channels)
    regression       channel 0: weight, 1: sum of targets, 2: sum of squares, or of another
                     statistic of the deviation in a bin
    weighted tables  one channel more, last: number of rows

Integer sums have no order, so the float64 scores below, computed from them by one fixed sequence of
IEEE operations, are equal on every device and for every division of the rows.

The *score* of a cut is a quantity that grows with the decrease of impurity within a
node: sums of squares over weights (gini), negative weighted entropy in bits
(entropy), squared difference of means (squared error), decrease of deviance (Poisson).
`gain` turns it into the decrease of impurity per unit of weight. The *bound* of a bin is
at least the score of every cut inside it: scores are convex in the statistics of the left
side, being sums of perspectives of convex functions (Boyd and Vandenberghe, Convex
Optimization, section 3.2.6), so the corners of a polytope around the possible left
sides bound them.
"""

from gputree.criteria import gini, poisson, shared, squared_error  # noqa: F401  register formulas
from gputree.criteria.dispatch import (
    Criterion,
    Entropy,
    Gini,
    ManyClassEntropy,
    Poisson,
    SquaredError,
    TwoClassGini,
    WideGini,
    add_row,
    begin,
    bound,
    gain,
    is_pure,
    left_weight,
    margin,
    may_exceed,
    means,
    move,
    move_cell,
    refused_score,
    restrict,
    row_by_row,
    score,
    target_impurity,
    tighten,
)
from gputree.criteria.entropy import ENTROPY_BITS, entropy_scale, node_entropies
from gputree.criteria.shared import decrease, decreases, log2

__all__ = [
    "ENTROPY_BITS",
    "Criterion",
    "Entropy",
    "Gini",
    "ManyClassEntropy",
    "Poisson",
    "SquaredError",
    "TwoClassGini",
    "WideGini",
    "add_row",
    "begin",
    "bound",
    "decrease",
    "decreases",
    "entropy_scale",
    "gain",
    "is_pure",
    "left_weight",
    "log2",
    "margin",
    "may_exceed",
    "means",
    "move",
    "move_cell",
    "node_entropies",
    "refused_score",
    "restrict",
    "row_by_row",
    "score",
    "target_impurity",
    "tighten",
]
