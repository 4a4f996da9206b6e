"""Stubs of the formulas, and their dispatch by the type of the criterion.

Kernels call these stubs; numba replaces each by the formula of the criterion's type. Called by
Python, as everything is where numba's compiler is disabled, they look the formula up.
"""

import functools
import inspect
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from gputree.compilation import overload_borrowing

# Sums of squared integer weights stay below 2**63 while the total does not exceed this.
INTEGER_GINI_LIMIT = 2**31

# For more classes than this, entropy is summed in fixed point, so that a row's cost does not grow.
MANY_CLASSES = 64


class Gini(NamedTuple):
    """Gini impurity, ``1 - sum p_k**2``, on totals of at most 2**31 units."""

    n_classes: int
    unit: float


class TwoClassGini(NamedTuple):
    """`Gini` of two classes, for kernels that move row after row: the state has the weights.

    Reading weights that the row before has just written would take twice as long.
    """

    n_classes: int
    unit: float


class WideGini(NamedTuple):
    """Gini impurity on larger totals: squares are taken in float64."""

    n_classes: int
    unit: float


class Entropy(NamedTuple):
    """Shannon entropy in bits, ``-sum p_k log2 p_k``; weights count in `unit`."""

    n_classes: int
    unit: float


class ManyClassEntropy(NamedTuple):
    """Shannon entropy in bits over many classes: sums of x log2 x in fixed point.

    A row that crosses a cut changes two terms of the sum, whatever the number of classes;
    `scale` is the number of fixed-point units in a bit.
    """

    n_classes: int
    unit: float
    scale: float


class SquaredError(NamedTuple):
    """Variance of the target; `square_unit` converts channel 2 to channel 1 squared per weight."""

    unit: float
    square_unit: float


class Poisson(NamedTuple):
    """Half Poisson deviance of targets that are 0 or positive.

    Sums count in `unit`, a fraction of `scale`: a power of two that no target exceeds.
    """

    unit: float
    scale: float


# A named tuple of one of the types above, or of `named.FORMS`.
Criterion: TypeAlias = Any


# A bin is searched if its bound is below the best score by no more than this fraction: far more
# than the rounding error of a bound, so that no tie is ever lost.
BOUND_MARGIN = 1e-9


_formulas: defaultdict[str, dict[type, Callable]] = defaultdict(dict)  # by stub, then criterion
_stubs: dict[Callable, Callable] = {}  # by formula


def stub(function: Callable) -> Callable:
    """Decorate a stub that calls the formula of the criterion it is given."""
    found = _formulas[function.__name__]

    @functools.wraps(function)
    def call(*arguments):  # in half the time of naming the criterion: each row of a node calls it
        return found[type(arguments[0])](*arguments)

    return call


def row_by_row(criterion: Any) -> Any:
    """Convert the criterion to the form for kernels that move row after row."""
    if isinstance(criterion, Gini) and criterion.n_classes == 2:
        return TwoClassGini(*criterion)
    return criterion


@stub
def begin(criterion, left, total):
    """State of a scan after the rows `left` of a node of `total`; field 0 is their weight."""


@stub
def move(criterion, state, left, total, target, weight):
    """State after a row moves to the left; `left` is updated."""


@stub
def move_cell(criterion, state, left, total, cells, offset):
    """State after rows move to the left whose statistics are at ``cells[offset]``."""


@stub
def score(criterion, state, left, total):
    """Score of the cut at this state."""


@stub
def refused_score(criterion, state, left, total):
    """Score at this state of a cut that `score` refuses, were it admitted; else -infinity."""


@stub
def means(criterion, state, left, total):
    """Means of both sides of a cut: probabilities of class 1, or mean targets in units."""


@stub
def may_exceed(criterion, state, left, total, value):
    """Return False only if the score at this state is surely at most `value`; cheap."""


@stub
def bound(criterion, left, cells, offset, total):
    """Upper bound on the score of every cut inside the bin at ``cells[offset]``, after `left`."""


@stub
def tighten(criterion, left, cells, offset, total, value, needed):
    """Lower the bound `value` of `bound`, at greater cost.

    Returns `value` itself if even the smallest upper bound would surely reach `needed`.
    """


@stub
def margin(criterion, value, total):
    """Difference to the best score `value` within which a bound is still searched."""


@stub
def gain(criterion, value, total):
    """Decrease of impurity per unit of weight by a cut of score `value`."""


@stub
def target_impurity(criterion, weight, total, squares, units):
    """Impurity of a node by its sums in `units` of targets, squares as float64; 0 of classes."""


@stub
def left_weight(criterion, statistics, offset):
    """Weight, in units, of the statistics at ``statistics[offset]``."""


@stub
def add_row(criterion, statistics, offset, target, weight, square):
    """Add one row to the channels that start at ``statistics[offset]``."""


@stub
def restrict(criterion, n_classes):
    """Return the same criterion over `n_classes` classes."""


@stub
def is_pure(criterion, total):
    """Return True if only one class has weight (never in regression)."""


def formula(function: Callable, *criteria: type, how: Callable = overload_borrowing) -> Callable:
    """Register a formula of `function` for some criteria; `how` is `overload` if it allocates."""

    def register(implementation: Callable) -> Callable:
        def choose(criterion: Any, *rest: Any) -> Callable | None:
            kind = getattr(criterion, "instance_class", None)  # of a named tuple
            return implementation if kind in criteria else None

        choose.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
        for criterion in criteria:
            _formulas[function.__name__][criterion] = implementation
        _stubs[implementation] = function
        how(function, implementation.__module__)(choose)
        return implementation

    return register


def share(criterion: type, *implementations: Callable) -> None:
    """Register formulas of other criteria, such as those of `shared`, for one more criterion."""
    for implementation in implementations:
        formula(_stubs[implementation], criterion)(implementation)


def is_shared(function: Callable, criterion: type, implementation: Callable) -> bool:
    """Return True if a criterion's formula of `function` is this one."""
    return _formulas[function.__name__][criterion] is implementation
