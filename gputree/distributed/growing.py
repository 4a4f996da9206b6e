"""From partitions to a tree: read, coded, counted; the client holds sums and the tree."""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gputree.backends.base import Int64s
from gputree.backends.binning import Bins
from gputree.backends.devices import resolve_device
from gputree.backends.sharded.rows import Read, join_measures, measure
from gputree.backends.sharded.tasks import Tasks
from gputree.base.optional import require
from gputree.columns.integers import count_codes
from gputree.distributed import reading
from gputree.distributed.reading import Known, Look, ReadingOptions
from gputree.errors import InputError
from gputree.estimators.growing import Grown, Options, interactions_not_on_cuda
from gputree.estimators.growing_parts import Rowsets, grow_parts
from gputree.inputs.validation import check_weight_range

# Table, target and weights of each partition, delayed.
Partitions = list[tuple[Any, Any, Any]]


def look_at(tasks: Tasks, partitions: Partitions, options: ReadingOptions) -> Look:
    """Inspect partitions; ValueError without rows or positive weights, or if they do not fit."""
    found: Look | None = tasks.tree(
        reading.join_looks,
        _compute(
            tasks,
            reading.look,
            [(*partition, options) for partition in partitions],
            reading.join_looks,
        ),
    )
    if found is None:
        raise InputError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by {options.caller}."
        )
    if not found.any_weight:
        raise InputError("Sample weights must contain at least one non-zero number.")
    return found


def read_all(tasks: Tasks, partitions: Partitions, known: Known) -> Rowsets:
    """Read all partitions; they stay where they are read."""
    given = tasks.share(known)
    parts = _compute(tasks, reading.read, [(*partition, given) for partition in partitions], None)
    nominal = tasks.share(known.columns.nominal)
    found = tasks.combine(measure, join_measures, parts, nominal)
    check_weight_range(np.array([found.weights[1] if found.n_rows else 0.0]))
    return Rowsets(parts, known.columns, known.dtype, found)


def _compute(
    tasks: Tasks, function: Callable[..., Any], arguments: list[tuple], combine: Any
) -> list[Any]:
    """Futures of a function of each partition; a single one is passed through `combine`."""
    delayed = require("dask", "gputree.distributed").delayed(function, pure=False)
    futures: list[Any] = tasks.client.compute([delayed(*argument) for argument in arguments])
    if combine is not None and len(futures) == 1:
        return [tasks.submit(combine, futures)]
    return futures


def category_counts(tasks: Tasks, rowsets: Rowsets) -> Callable[[int], Int64s]:
    """Rows of each category of a column, on first use."""

    def count(f: int) -> Int64s:
        size = int(rowsets.columns.n_categories[f])
        return tasks.combine(_count_codes, _add, rowsets.parts, f, size)

    return count


def _count_codes(part: Read, f: int, size: int) -> Int64s:
    return count_codes(part.values[:, f], size)


def _add(found: list[Int64s]) -> Int64s:
    return np.sum(found, axis=0)


# -------------------------------------------------------------------------- growth
def grow_tree(
    tasks: Tasks, rowsets: Rowsets, options: Options, device: str, bins: Bins | None = None
) -> Grown:
    """Grow a CART tree over partitions, which workers count on `device`: "auto", "cpu", "cuda".

    `bins` are those of all rows, where these are some of them.
    """
    if options.interactions is not None:
        if device == "cuda":
            raise interactions_not_on_cuda()
        device = "cpu"
    return grow_parts(tasks, rowsets, options, partial(worker_device, device), bins)


def worker_device(device: str) -> str:
    """The device that the calling worker counts on; errors of `resolve_device` name its host."""
    try:
        return resolve_device(device)
    except (ImportError, RuntimeError) as problem:
        host = platform.node()
        raise type(problem)(f"A worker on {host} has no device to count on: {problem}") from None
