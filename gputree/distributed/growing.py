"""From partitions to a tree: read, coded, counted; the client holds sums and the tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._optional import require
from gputree.backends.base import Int64s
from gputree.backends.binning import MAX_BINS
from gputree.backends.workers import coding, units
from gputree.backends.workers.backend import spread
from gputree.backends.workers.rows import Measure, Read, join_measures, measure
from gputree.backends.workers.tasks import Tasks
from gputree.criteria.named import fix
from gputree.distributed import reading
from gputree.distributed.reading import Asked, Known, Look
from gputree.estimators.growing import Grown, Options, grow_on, new_task
from gputree.estimators.growing_categories import categories_in_growth, search_of
from gputree.estimators.identifiers import count_codes
from gputree.estimators.resolution import SAMPLE_ROWS, warn_if_coarse
from gputree.fixed_point import Weights
from gputree.validation import check_weight_range, code_dtype

# Table, target and weights of each partition, delayed.
Partitions = list[tuple[Any, Any, Any]]


class Rowsets(NamedTuple):
    """The rows of all partitions that count, as futures, and what is known of them."""

    parts: list[Any]  # of Read
    known: Known
    found: Measure


def look_at(tasks: Tasks, partitions: Partitions, asked: Asked) -> Look:
    """What all partitions hold.

    Raises
    ------
    ValueError
        There are no rows, or no positive weights; columns, targets or weights that no estimator
        takes, or that do not fit together.
    """
    found: Look | None = tasks.tree(
        reading.join_looks,
        _compute(tasks, reading.look, [(*own, asked) for own in partitions], reading.join_looks),
    )
    if found is None:
        raise ValueError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by {asked.caller}."
        )
    if not found.any_weight:
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return found


def read_all(tasks: Tasks, partitions: Partitions, known: Known) -> Rowsets:
    """Read all partitions; they stay where they are read."""
    given = tasks.share(known)
    parts = _compute(tasks, reading.read, [(*own, given) for own in partitions], None)
    nominal = tasks.share(known.columns.nominal)
    found = tasks.combine(measure, join_measures, parts, nominal)
    check_weight_range(np.array([found.weights[1] if found.n_rows else 0.0]))
    return Rowsets(parts, known, found)


def _compute(
    tasks: Tasks, function: Callable[..., Any], arguments: list[tuple], combine: Any
) -> list[Any]:
    """Futures of a function of partitions; of one alone what `combine` makes of it."""
    delayed = require("dask", "gputree.distributed").delayed(function, pure=False)
    futures: list[Any] = tasks.client.compute([delayed(*own) for own in arguments])
    if combine is not None and len(futures) == 1:
        return [tasks.submit(combine, futures)]
    return futures


def category_counts(tasks: Tasks, rowsets: Rowsets) -> Callable[[int], Int64s]:
    """Rows of each category of a column, when they are asked for."""

    def count(f: int) -> Int64s:
        size = int(rowsets.known.columns.n_categories[f])
        counts: Int64s = tasks.combine(_count_codes, _add, rowsets.parts, f, size)
        return counts

    return count


def _count_codes(own: Read, f: int, size: int) -> Int64s:
    return count_codes(own.values[:, f], size)


def _add(found: list[Int64s]) -> Int64s:
    return np.sum(found, axis=0)


# -------------------------------------------------------------------------- growth
def grow_tree(tasks: Tasks, rowsets: Rowsets, options: Options) -> Grown:
    """Grow a CART tree over partitions, as `gputree.estimators.growing.grow_tree` does."""
    found, columns = rowsets.found, rowsets.known.columns
    rounding, weights = units.weight_units(tasks, rowsets.parts, found)
    criterion = None if options.n_classes else options.criterion
    targets = None if criterion is None else units.target_units(criterion, weights, found.ends)
    _warn_if_coarse(tasks, rowsets, options, rounding, weights)
    none = np.empty(0, code_dtype(options.n_classes))
    task = new_task(none, weights, targets, options)
    categories = categories_in_growth(columns)
    if categories.any():
        task = replace(task, search=search_of(options.categorical_split))
    layout = coding.Layout.of(
        found, categories, options.max_bins, options.exact, rowsets.known.dtype
    )
    how = (weights, rounding, criterion, found.ends)
    backend = spread(tasks, rowsets.parts, layout, how, task, options.n_threads)
    again = int(np.count_nonzero(categories + found.missing > MAX_BINS))
    shape = (found.n_rows, found.missing.size)
    return grow_on(backend, shape, task.limits, again, weights, targets, options, columns)


# ------------------------------------------------------------------------ warnings
def _warn_if_coarse(
    tasks: Tasks,
    rowsets: Rowsets,
    options: Options,
    rounding: units.Rounding,
    weights: Weights,
) -> None:
    """As `warn_if_coarse`, of some rows of each partition and the extreme ones."""
    if rounding.finest is None and options.n_classes:
        return
    n = rowsets.found.n_rows
    target, weight = tasks.combine(_some_rows, _join_rows, rowsets.parts, n)
    ends, greatest = rowsets.found.ends, rowsets.found.weights[1]
    if weight is not None:
        weight = np.append(weight, [greatest, greatest])
    if options.n_classes:
        target = np.zeros(target.size, np.int64)
    own = Read(np.empty((0, 0)), np.append(target, ends), weight)
    criterion = None if options.n_classes else options.criterion
    rows = units.in_units(own, weights, rounding, criterion, ends)
    held = weights._replace(weight=rows.weight)
    if criterion is None:
        warn_if_coarse(weight, held)
    else:
        warn_if_coarse(weight, held, own.target, fix(criterion, own.target, held, ends))


def _some_rows(own: Read, n: int) -> tuple[NDArray, NDArray | None]:
    """Targets and weights of rows at even distances."""
    size = len(own.target)
    rows = np.linspace(0, size - 1, -(-SAMPLE_ROWS * size // n) if n > SAMPLE_ROWS else size)
    rows = rows.astype(np.int64)
    return own.target[rows], None if own.weight is None else own.weight[rows]


def _join_rows(
    found: list[tuple[NDArray, NDArray | None]],
) -> tuple[NDArray, NDArray | None]:
    target = np.concatenate([own for own, _ in found])
    weights = [weight for _, weight in found if weight is not None]
    return target, np.concatenate(weights) if weights else None
