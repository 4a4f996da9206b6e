"""Cut points of a column that pay for their own description, found on the host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.radix import radix_argsort
from gputree.backends.rules import midpoints
from gputree.criteria.information import Information, new_information
from gputree.discretization.kernels import cut_sorted
from gputree.dtypes import ROW, Floats, Int32s, Int64s, Values
from gputree.fixed_point import about_one, fix_weights


class MdlRule(NamedTuple):
    """Criterion by which a cut is accepted."""

    by_kononenko: bool  # True: description of labels by Kononenko; else by Fayyad and Irani
    # True: identifying a cut takes the logarithm of the number of cuts; else of the rows less one
    counts_cuts: bool


class MdlTask(NamedTuple):
    """Labels of n rows, for the cut points of any column over them."""

    target: NDArray[np.integer]  # (n,), codes of labels
    weight: Int64s  # (n,), in units
    n_classes: int
    information: Information
    scale: float  # rows that correspond to a unit of weight
    rule: MdlRule
    place: Int32s  # (n,): 0, 1, ..., n - 1


def new_mdl_task(
    target: NDArray[np.integer], sample_weight: Floats | None, n_classes: int, rule: MdlRule
) -> MdlTask:
    """Return the task for columns of the rows of `target`; weights are positive, or None."""
    weights = about_one(fix_weights(sample_weight, target.size), target.size)
    return MdlTask(
        target=target,
        weight=np.ones(target.size, np.int64) if weights.weight is None else weights.weight,
        n_classes=n_classes,
        information=new_information(weights.total, weights.unit),
        scale=weights.unit * weights.scale,
        rule=rule,
        place=np.arange(target.size, dtype=ROW),
    )


def cut_values(column: Values, task: MdlTask) -> Floats:
    """Cut points of a column, ascending: midway between the values on both sides.

    Rows without a value (NaN) are ignored.
    """
    column = np.ascontiguousarray(column)
    order, keys = radix_argsort(column)
    known = int(np.searchsorted(keys, ~keys.dtype.type(0)))
    # Of one type for both precisions: one kernel is compiled.
    keys = keys[:known].astype(np.uint64, copy=False)
    last = cut_sorted(
        task.information, task.rule, task.scale, task.n_classes, task.place, order[:known],
        keys, task.target, task.weight,
    )  # fmt: skip
    low, high = column[order[last]], column[order[last + 1]]
    return midpoints(low.astype(np.float64), high.astype(np.float64))
