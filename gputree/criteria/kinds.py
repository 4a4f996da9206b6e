"""The criteria: named tuples whose types select the formulas, and their parameters."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

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
