"""Criteria of several targets: means of the impurities of each, and the targets in fixed point.

The statistics of a node are those of its targets, one after the other: sums in regression, class
weights in classification, whose cells are numbered from `offset` on.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights
from gputree.base.dtypes import Floats, Int64s
from gputree.criteria.named import fix

# Sums over targets of squared weights stay below 2**63 while total**2 x targets does.
SQUARE_BITS = 62
MOST_SEEN = 1 << 12  # weights whose logarithms are kept: they fit a core's cache


class SquaredErrors(NamedTuple):
    """Mean of the variances of the targets, whose sums count in ``scale x unit``."""

    scale: Floats  # (k,) powers of two, at most 1
    unit: float
    rounded: bool  # weight x target is not an integer of units


class Deviances(NamedTuple):
    """Mean of the half Poisson deviances of the targets, whose sums count in ``scale x unit``."""

    scale: Floats  # (k,) powers of two, at most 1
    unit: float
    rounded: bool


class Ginis(NamedTuple):
    """Mean of the Gini impurities of the targets; sums of squared weights fit int64."""

    offset: Int64s  # (k + 1,)
    unit: float


class WideGinis(NamedTuple):
    """`Ginis` on larger totals: squares are taken in float64."""

    offset: Int64s  # (k + 1,)
    unit: float


class Entropies(NamedTuple):
    """Mean of the entropies of the targets, in bits; weights count in `unit`."""

    offset: Int64s  # (k + 1,)
    unit: float
    seen: Floats  # x log2 x of small weights in units; NaN before the first use


OF_CLASSES = (Ginis, WideGinis, Entropies)
OF_NUMBERS = (SquaredErrors, Deviances)
OF_SUMS = (*OF_NUMBERS, *OF_CLASSES)
_BY_NAME = {"squared_error": SquaredErrors, "poisson": Deviances}


def class_criterion(name: str, n_classes: tuple[int, ...], weights: Weights) -> Any:
    """Return the criterion of classification by its name, for so many classes of each target."""
    offset = np.concatenate([[0], np.cumsum(n_classes)])
    if name == "entropy":
        seen = np.full(min(int(weights.total), MOST_SEEN) + 1, np.nan)
        return Entropies(offset, weights.unit, seen)
    bits = 2 * int(weights.total).bit_length() + len(n_classes).bit_length()
    return (Ginis if bits <= SQUARE_BITS else WideGinis)(offset, weights.unit)


def fix_several(name: str, y: NDArray[Any], weights: Weights) -> tuple[Any, list[Targets]]:
    """Return the criterion of regression by its name, and the columns of y in fixed point."""
    targets = [fix(name, np.ascontiguousarray(column), weights) for column in y.T]
    unit = max(found.unit for found in targets)
    scale = np.array([found.unit / unit for found in targets])
    return _BY_NAME[name](scale, unit, targets[0].rounded), targets
