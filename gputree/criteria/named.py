"""The criteria by name: their targets, and the impurities of whole nodes.

A criterion is a file of formulas here, one for CUDA, and an entry in `OF_CLASSES` or `OF_TARGETS`:
other code that needs a criterion (parameters, options and help of the command, files and their
schema, pruners, CUDA kernels, the check of a device) uses these entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.criteria.entropy import entropy_scale, node_entropies
from gputree.criteria.gini import node_ginis
from gputree.criteria.kinds import (
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
from gputree.criteria.losses import Loss, deviances, squared_errors
from gputree.criteria.poisson import check_counts, node_deviances
from gputree.errors import InputError
from gputree.fixed_point import REST_BITS, Ends, Targets, Weights, fix_rates, fix_targets

Floats = NDArray[np.float64]
Sums = NDArray[np.int64]

# Values of the parameter `criterion` for type checkers, and its documentation.
ClassificationCriterion = Literal["gini", "entropy", "log_loss"]
RegressionCriterion = Literal["squared_error", "poisson"]
CLASSIFICATION_CRITERION = """criterion : "gini", "entropy" or "log_loss", default="gini"
        Impurity; "entropy" and "log_loss" are the same, in bits."""
REGRESSION_CRITERION = """criterion : "squared_error" or "poisson", default="squared_error"
        Impurity; "poisson" is half the mean Poisson deviance, in nats, for non-negative targets.
        Then no leaf predicts 0, unless the root does."""


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
    targets in fixed point; its form for them; the impurities of nodes by their sums of weight,
    targets and squares, the latter in float64; and losses of rows, see `losses`.
    """

    text: str
    forms: tuple[type, ...]
    header: str
    label: str
    check: Callable[[float, float], None]
    fix: Callable[[Floats, Weights, Ends | None], Targets]
    form: Callable[[Targets], Criterion]
    impurity: Callable[[Sums, Sums, Floats, Targets], Floats]
    loss: Callable[[NDArray[np.int32], Floats, NDArray[np.int32], Floats, Floats, int], Loss]


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


def _squared_error(targets: Targets) -> Criterion:
    return SquaredError(targets.unit, targets.square_unit / targets.unit**2)


def _poisson(targets: Targets) -> Criterion:
    return Poisson(targets.unit / targets.reach, targets.reach)


def _variances(weight: Sums, sums: Sums, squares: Floats, targets: Targets) -> Floats:
    deviation = sums * targets.unit / weight
    mean_square = squares * targets.square_unit / weight
    variance: Floats = mean_square - deviation * deviation
    # a difference below its rounding error is no variance
    variance[variance <= 8 * np.finfo(np.float64).eps * mean_square] = 0.0
    return variance


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
        form=_poisson,
        impurity=_deviances,
        loss=deviances,
    ),
}
NAMED: dict[str, OfClasses | OfTargets] = {**OF_CLASSES, **OF_TARGETS}

# Types of all criteria, by which kernels are compiled, and those of targets.
FORMS = tuple(form for entry in NAMED.values() for form in entry.forms)
TARGET_FORMS = frozenset(form for entry in OF_TARGETS.values() for form in entry.forms)

# Names of the impurities that trees of each task are grown by.
CRITERIA: dict[str, tuple[str, ...]] = {
    "classification": tuple(OF_CLASSES),
    "regression": tuple(OF_TARGETS),
}


def check_ends(name: str, low: float, high: float) -> None:
    """Raise for targets from `low` to `high` that the criterion does not support."""
    _require(name, "regression")
    OF_TARGETS[name].check(low, high)


def fix(name: str, y: Floats, weights: Weights, ends: Ends | None = None) -> Targets:
    """Convert regression targets to fixed point for a criterion.

    `ends` are the minimum and the maximum of all targets, where `y` has only some of them.
    """
    _require(name, "regression")
    return OF_TARGETS[name].fix(y, weights, ends)


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
