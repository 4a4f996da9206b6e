"""Weights and targets of all parts in the same fixed-point units, which depend on sums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputree.backends.cpu.layout import Rows
from gputree.backends.sharded.rows import Read, RowSummary, rows_of
from gputree.backends.sharded.tasks import Tasks
from gputree.criteria.named import fix
from gputree.fixed_point import (
    Ends,
    Targets,
    Weights,
    coarse_unit,
    common_shift,
    count_units,
    finest_unit,
    round_weights,
)


class Rounding(NamedTuple):
    """Rounding of weights to units; `finest` is None where all weights are equal."""

    finest: float | None
    shift: int


def weight_units(tasks: Tasks, parts: list[Any], found: RowSummary) -> tuple[Rounding, Weights]:
    """Choose the units of all weights, as `gputree.fixed_point.fix_weights` does.

    The weights that are returned have no rows.
    """
    lowest, highest = found.weights
    if lowest == highest:
        return Rounding(None, 0), Weights(None, 1.0, highest, found.n_rows)
    coarse = coarse_unit(highest, found.n_rows)
    finest = finest_unit(coarse, tasks.combine(total_units, add_up, parts, coarse))
    common, total = tasks.combine(rounded_sums, join_sums, parts, finest)
    shift = common_shift(common)
    weights = Weights(np.empty(0, np.int64), finest * 2.0**shift, 1.0, total >> shift)
    return Rounding(finest, shift), weights


def total_units(part: Read, coarse: float) -> int:
    """Weight of a part in coarse units."""
    return 0 if part.weight is None else count_units(part.weight, coarse)


def add_up(found: list[int]) -> int:
    """Weight of some parts together."""
    return sum(found)


def rounded_sums(part: Read, finest: float) -> tuple[int, int]:
    """Bitwise OR of the weights of a part in units, and their sum."""
    assert part.weight is not None
    weight = round_weights(part.weight, finest)
    return int(np.bitwise_or.reduce(weight)), int(weight.sum())


def join_sums(found: list[tuple[int, int]]) -> tuple[int, int]:
    """Join the bits and the sums of some parts."""
    common = 0
    for bits, _ in found:
        common |= bits
    return common, sum(total for _, total in found)


def target_units(criterion: str, weights: Weights, ends: Ends) -> Targets:
    """Units of regression targets, without rows."""
    return fix(criterion, np.empty(0), weights, ends)


def in_units(
    part: Read, weights: Weights, rounding: Rounding, criterion: str | None, ends: Ends
) -> Rows:
    """Statistics of the rows of a part in units; `criterion` is of regression, or None."""
    part = rows_of(part)
    if rounding.finest is not None:
        assert part.weight is not None
        weight = round_weights(part.weight, rounding.finest) >> rounding.shift
        weights = weights._replace(weight=weight)
    if criterion is None:
        return Rows(part.target, weights.weight, None, None)
    targets = fix(criterion, part.target, weights, ends)
    return Rows(targets.target, weights.weight, targets.square, targets.square_rest)
