"""The criteria by name: their targets, and the impurities of whole nodes.

A criterion is a file of formulas here, one for CUDA, and an entry in `OF_CLASSES` or `OF_TARGETS`;
or one of losses over ranks, in `RANKED`, whose trees `gputree.backends.cpu.ranked` grows. Other
code that needs a criterion (parameters, options and help of the command, files and their schema,
pruners, CUDA kernels, the check of a device) uses these entries.

Losses of a regression criterion are sums at each node over two sets of rows, as float64 arrays of
shape (N,): over all rows that reach the node, as if it predicted them, and over the rows that stop
in it. The tree is given by the parents of its nodes (int32) and their predictions (float64), of
shape (N,). Row i has the target ``y[i]`` and stops in node ``stop[i]``; its loss is raised to
`power`, 1 or 2, as its weight has been by the caller.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import (
    REST_BITS,
    Ends,
    Targets,
    Weights,
    fix_drawn_rates,
    fix_drawn_targets,
    fix_rates,
    fix_targets,
)
from gputree.base.dtypes import Floats, Int32s, Int64s, record
from gputree.compilation import borrowing, kernel
from gputree.criteria.dispatch import (
    INTEGER_GINI_LIMIT,
    MANY_CLASSES,
    Criterion,
    Entropy,
    Gini,
    ManyClassEntropy,
    Poisson,
    SquaredError,
    WideGini,
)
from gputree.criteria.entropy import entropy_scale, node_entropies
from gputree.criteria.gini import node_ginis
from gputree.criteria.pinball import absolute_errors
from gputree.criteria.poisson import NEGATIVE_COUNTS, check_counts, node_deviances
from gputree.criteria.squared_error import variance
from gputree.errors import InputError
from gputree.tree.branches import add_up

Nodes = Int32s
Loss = tuple[Floats, Floats]

# Weight, mean, and sums of weight x deviation from the mean to the power 2, 3 and 4, of the
# targets that stop in a node and below. They are merged without a difference of large sums
# (Pebay, Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
# statistical moments, 2008, section 3). NumPy's records have a method `mean`.
MOMENTS = record([(name, np.float64) for name in ("weight", "center", "second", "third", "fourth")])


def squared_errors(
    parent: Nodes, predictions: Floats, stop: Nodes, target: Floats, weight: Floats, power: int
) -> Loss:
    """Weight x squared error, or its square, by moments about means that are merged upward."""
    order = np.lexsort((weight, target, stop))  # float sums in a canonical order
    loss = np.zeros(parent.size), np.zeros(parent.size)
    moments = np.zeros(parent.size, MOMENTS)
    _merge_up(parent, predictions, stop[order], target[order], weight[order], power, moments, *loss)
    return loss


def deviances(
    parent: Nodes, predictions: Floats, stop: Nodes, target: Floats, weight: Floats, power: int
) -> Loss:
    """Weight x half the Poisson deviance, or its square, by sums over the rows in each node.

    For target y and prediction m, in terms of the root's prediction u: y = u (1 + e), m = u q,

        y ln(y / m) - y + m = u (own - e ln q + gap),    own = (y / u) ln(y / u) - e,
                                                         gap = q - 1 - ln q,

    so that terms are small where targets and predictions are close.
    """
    from scipy.special import xlogy  # here, for trees name their criteria, and few are pruned

    if target.size and target.min() < 0.0:
        raise InputError(NEGATIVE_COUNTS)
    order = np.lexsort((weight, target, stop))  # float sums in a canonical order
    tiny = float(np.finfo(np.float64).tiny)
    unit = max(float(predictions[0]), tiny)
    share = target[order] / unit
    excess = share - 1.0
    deviance = xlogy(share, share) - excess
    # of a node without events: their loss is large, not infinite
    quotient = np.maximum(predictions / unit, tiny)
    logarithm = np.log(quotient)
    gap = quotient - 1.0 - logarithm
    ones = np.ones_like(gap)
    if power == 1:
        of_rows = [deviance, excess, np.ones_like(deviance)]
        of_nodes = [ones, -logarithm, gap]
    else:
        of_rows = [
            deviance**2,
            excess**2,
            np.ones_like(deviance),
            deviance * excess,
            deviance,
            excess,
        ]
        of_nodes = [ones, logarithm**2, gap**2, -2 * logarithm, 2 * gap, -2 * gap * logarithm]
    here = np.column_stack(
        [np.bincount(stop[order], weight[order] * of, parent.size) for of in of_rows]
    )
    factors = unit**power * np.column_stack(of_nodes)
    below, own_rows = (
        np.maximum((sums * factors).sum(axis=1), 0.0) for sums in (add_up(parent, here), here)
    )
    return below, own_rows


@kernel
def _merge_up(parent, predictions, stop, target, weight, power, moments, as_leaf, stopped):
    """Losses at the prediction of each node, from moments of the rows that stop there and below."""
    for entry in range(stop.size):
        _merge(moments[stop[entry]], weight[entry], target[entry], 0.0, 0.0, 0.0)
    for node in range(parent.size - 1, -1, -1):
        stopped[node] = _about(moments[node], predictions[node], power)
    for node in range(parent.size - 1, -1, -1):  # children before parents
        of_node = moments[node]
        as_leaf[node] = _about(of_node, predictions[node], power)
        if node > 0:
            _merge(
                moments[parent[node]], of_node.weight, of_node.center, of_node.second,
                of_node.third, of_node.fourth,
            )  # fmt: skip


@borrowing
def _merge(into, weight, mean, second, third, fourth):
    if weight == 0.0:
        return
    whole = into.weight + weight
    a, b = into.weight / whole, weight / whole
    d = mean - into.center
    between = whole * a * b * d * d
    into.fourth += fourth + between * d * d * (a * a - a * b + b * b)
    into.fourth += 6.0 * d * d * (a * a * second + b * b * into.second)
    into.fourth += 4.0 * d * (a * third - b * into.third)
    into.third += third + between * d * (a - b) + 3.0 * d * (a * second - b * into.second)
    into.second += second + between
    into.center += d * b
    into.weight = whole


@borrowing
def _about(moments, prediction, power):
    """Second (power 1) or fourth (power 2) moment about `prediction`."""
    d = moments.center - prediction
    if power == 1:
        return moments.second + moments.weight * d * d
    near = moments.fourth + 4.0 * d * moments.third + 6.0 * d * d * moments.second
    return max(near + moments.weight * d * d * d * d, 0.0)


Sums = Int64s

# Values of the parameter `criterion` for type checkers, and its documentation.
ClassificationCriterion = Literal["gini", "entropy", "log_loss"]
RegressionCriterion = Literal["squared_error", "poisson", "absolute_error", "quantile"]
CLASSIFICATION_CRITERION = """criterion : "gini", "entropy" or "log_loss", default="gini"
        Impurity; "entropy" and "log_loss" are the same, in bits."""
REGRESSION_CRITERION = """\
criterion : "squared_error", "poisson", "absolute_error", "quantile", default="squared_error"
        Impurity; "poisson" is half the mean Poisson deviance, in nats,
        for non-negative targets. Then no leaf predicts 0, unless the root does. "absolute_error"
        is the mean absolute deviation from the median, which leaves predict, and "quantile" the
        mean pinball loss of the `quantile`; both on the CPU, from a table in memory.
    quantile : float, default=0.5
        What leaves predict with ``criterion="quantile"``, from 0.001 to 0.999: the lowest target up
        to which they have that fraction of the weight. It is taken as the nearest fraction whose
        denominator is at most 1000. A median between two targets is their mean."""


class OfClasses(NamedTuple):
    """A criterion of classification.

    The description of its impurity; the types of its forms, the header of its CUDA formulas; its
    form for K classes; and impurities of class weights.
    """

    text: str
    forms: tuple[type, ...]
    header: str
    form: Callable[[int, Weights], Criterion]
    impurity: Callable[[NDArray], Floats]


class OfTargets(NamedTuple):
    """A criterion of regression.

    The description of its impurity; the types of its forms, the header of its CUDA formulas; the
    name of its impurity in trees as text; a check of the minimum and maximum target, which raises;
    targets in fixed point, of one tree and of some; its form for them; the impurities of nodes by
    their sums of weight, targets and squares, the latter in float64; and losses of rows: see the
    module.
    """

    text: str
    forms: tuple[type, ...]
    header: str
    label: str
    check: Callable[[float, float], None]
    fix: Callable[[Floats, Weights, Ends | None], Targets]
    fix_drawn: Callable[[Floats, Int64s, Int64s], Targets]
    form: Callable[[Targets], Criterion]
    impurity: Callable[[Sums, Sums, Floats, Targets], Floats]
    loss: Callable[[Int32s, Floats, Int32s, Floats, Floats, int], Loss]


class OfRanks(NamedTuple):
    """A criterion of regression whose trees are grown over ranked lists, on the CPU.

    The description of its impurity, the name of it in trees as text, a check of the minimum and
    maximum target, and losses of rows: as of `OfTargets`.
    """

    text: str
    label: str
    check: Callable[[float, float], None]
    loss: Callable[[Int32s, Floats, Int32s, Floats, Floats, int], Loss]


def _gini(n_classes: int, weights: Weights) -> Criterion:
    kind = Gini if weights.total <= INTEGER_GINI_LIMIT else WideGini
    return kind(n_classes, weights.unit)


def _entropy(n_classes: int, weights: Weights) -> Criterion:
    if n_classes <= MANY_CLASSES:
        return Entropy(n_classes, weights.unit)
    scale = entropy_scale(weights.total, weights.unit)
    return ManyClassEntropy(n_classes, weights.unit, scale)


def _take_all(low: float, high: float) -> None:
    """Accept any numbers as targets."""


def _no_pinball_loss(*rows: Any) -> Loss:
    """Refuse to prune by rows: a tree does not say which quantile it predicts."""
    raise InputError(
        "A tree of criterion='quantile' is not pruned by rows. Use ccp_alpha or "
        "CostComplexity(alpha), or criterion='absolute_error' for medians."
    )


def _squared_error(targets: Targets) -> Criterion:
    return SquaredError(targets.unit, targets.square_unit / targets.unit**2)


def _poisson(targets: Targets) -> Criterion:
    return Poisson(targets.unit / targets.reach, targets.reach)


def _variances(weight: Sums, sums: Sums, squares: Floats, targets: Targets) -> Floats:
    variances: Floats = variance(weight, sums, squares, targets.unit, targets.square_unit)
    return variances


def _deviances(weight: Sums, sums: Sums, squares: Floats, targets: Targets) -> Floats:
    unit = targets.unit / targets.reach
    deviances: Floats = node_deviances(weight, sums, squares, unit, targets.reach)
    return deviances


OF_CLASSES = {
    "gini": OfClasses("gini", (Gini, WideGini), "gini.cuh", _gini, node_ginis),
    "entropy": OfClasses(
        "entropy in bits", (Entropy, ManyClassEntropy), "entropy.cuh", _entropy, node_entropies
    ),
}
OF_TARGETS = {
    "squared_error": OfTargets(
        text="the mean squared error",
        forms=(SquaredError,),
        header="squared_error.cuh",
        label="mse",
        check=_take_all,
        fix=fix_targets,
        fix_drawn=fix_drawn_targets,
        form=_squared_error,
        impurity=_variances,
        loss=squared_errors,
    ),
    "poisson": OfTargets(
        text="half the mean Poisson deviance",
        forms=(Poisson,),
        header="poisson.cuh",
        label="deviance",
        check=check_counts,
        fix=fix_rates,
        fix_drawn=fix_drawn_rates,
        form=_poisson,
        impurity=_deviances,
        loss=deviances,
    ),
}
RANKED = {
    "absolute_error": OfRanks("the mean absolute error", "mae", _take_all, absolute_errors),
    "quantile": OfRanks("the mean pinball loss", "pinball", _take_all, _no_pinball_loss),
}
OVER_HISTOGRAMS: dict[str, OfClasses | OfTargets] = {**OF_CLASSES, **OF_TARGETS}
OF_REGRESSION: dict[str, OfTargets | OfRanks] = {**OF_TARGETS, **RANKED}
NAMED: dict[str, OfClasses | OfTargets | OfRanks] = {**OF_CLASSES, **OF_REGRESSION}

# Types of criteria over histograms, by which kernels are compiled, and those of targets.
FORMS = tuple(form for entry in OVER_HISTOGRAMS.values() for form in entry.forms)
TARGET_FORMS = frozenset(form for entry in OF_TARGETS.values() for form in entry.forms)

# Names of the impurities that trees of each task are grown by.
CRITERIA: dict[str, tuple[str, ...]] = {
    "classification": tuple(OF_CLASSES),
    "regression": tuple(OF_REGRESSION),
}


def check_ends(name: str, low: float, high: float) -> None:
    """Raise for targets from `low` to `high` that the criterion does not support."""
    _require(name, "regression")
    OF_REGRESSION[name].check(low, high)


def fix(name: str, y: Floats, weights: Weights, ends: Ends | None = None) -> Targets:
    """Convert regression targets to fixed point for a criterion.

    `ends` are the minimum and the maximum of all targets, where `y` has only some of them.
    """
    _require(name, "regression")
    return OF_TARGETS[name].fix(y, weights, ends)


def fix_drawn(name: str, y: Floats, weight: Int64s, totals: Int64s) -> Targets:
    """Convert the targets that trees have drawn: see `gputree.arithmetic.fixed_point`."""
    return OF_TARGETS[name].fix_drawn(y, weight, totals)


def new_criterion(
    name: str, n_classes: int, weights: Weights, targets: Targets | None
) -> Criterion:
    """Return the criterion in the form that suits the weights, and classes or targets."""
    if targets is None:
        _require(name, "classification")
        return OF_CLASSES[name].form(n_classes, weights)
    _require(name, "regression")
    return OF_TARGETS[name].form(targets)


def class_impurity(name: str, weights: NDArray) -> Floats:
    """Impurity of each row of class weights, shape (n, K); no row is empty."""
    _require(name, "classification")
    return OF_CLASSES[name].impurity(weights)


def target_impurity(name: str, sums: Sums, targets: Targets) -> Floats:
    """Impurity of nodes by their sums, shape (n, 4): weight, target, square and its rest."""
    weight, total, square, rest = sums.T
    return OF_TARGETS[name].impurity(weight, total, square + rest * 2.0**-REST_BITS, targets)


def _require(name: str, task: str) -> None:
    if name not in CRITERIA[task]:
        raise InputError(f"The criterion of {task} must be one of {CRITERIA[task]}, got {name!r}.")
