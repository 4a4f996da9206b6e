"""Growth of a CART tree over parts of a table on workers: units, bins, codes, then nodes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Weights
from gputree.backends.binning import MAX_BINS, Bins
from gputree.backends.sharded import coding
from gputree.backends.sharded.dask import spread
from gputree.backends.sharded.rows import Read, Rounding, RowSummary, in_units, weight_units
from gputree.backends.sharded.tasks import Tasks
from gputree.columns import Columns
from gputree.criteria.named import fix
from gputree.estimators.column_warnings import SAMPLE_ROWS, warn_if_coarse
from gputree.estimators.growing import Grown, Options, cuts_not_drawn, grow_on, new_task
from gputree.estimators.growing_ranked import forbid_ranked
from gputree.inputs.validation import code_dtype


class Rowsets(NamedTuple):
    """Rows with weight of all partitions, as futures, and their specification."""

    parts: list[Any]  # of Read
    columns: Columns
    dtype: np.dtype  # of values
    found: RowSummary


def layout_of(rowsets: Rowsets, options: Options) -> coding.Layout:
    """Arguments that each part is coded with."""
    categories = rowsets.columns.grown_categories
    return coding.Layout(rowsets.found, categories, options.max_bins, options.exact, rowsets.dtype)


def grow_parts(
    tasks: Tasks,
    rowsets: Rowsets,
    options: Options,
    choose: Callable[[], str],
    bins: Bins | None = None,
) -> Grown:
    """Grow a CART tree over parts, as `gputree.estimators.growing.grow_tree` does.

    The device of `options` is that of the client; `choose` is called on a worker and returns the
    one that it counts on, "cpu" or "cuda". Bins that are None are fitted to these parts.
    """
    if options.draws_cuts:
        raise cuts_not_drawn()
    forbid_ranked(options.criterion)
    found, columns = rowsets.found, rowsets.columns
    rounding, weights = weight_units(tasks, rowsets.parts, found)
    criterion = None if options.n_classes else options.criterion
    targets = None if criterion is None else fix(criterion, np.empty(0), weights, found.ends)
    if options.warns:
        _warn_if_coarse(tasks, rowsets, options, rounding, weights)
    none = np.empty(0, code_dtype(options.n_classes))
    layout = layout_of(rowsets, options)
    task = new_task(none, weights, targets, layout.categories, options)
    how = (weights, rounding, criterion, found.ends)
    if bins is None:
        bins = coding.fit_all(tasks, rowsets.parts, tasks.share(layout))
    backend = spread(tasks, rowsets.parts, layout, bins, how, task, options.n_threads, choose)
    again = int(np.count_nonzero(layout.categories + found.missing > MAX_BINS))
    shape = (found.n_rows, found.missing.size)
    return grow_on(backend, shape, task.limits, again, weights, targets, options, columns)


def _warn_if_coarse(
    tasks: Tasks,
    rowsets: Rowsets,
    options: Options,
    rounding: Rounding,
    weights: Weights,
) -> None:
    """Warn as `warn_if_coarse` does, from some rows of each partition and the extreme ones."""
    if rounding.finest is None and options.n_classes:
        return
    n = rowsets.found.n_rows
    target, weight = tasks.combine(_some_rows, _join_rows, rowsets.parts, n)
    ends, highest = rowsets.found.ends, rowsets.found.weights[1]
    if weight is not None:
        weight = np.append(weight, [highest, highest])
    if options.n_classes:
        target = np.zeros(target.size, np.int64)
    read = Read(np.empty((0, 0)), np.append(target, ends), weight)
    criterion = None if options.n_classes else options.criterion
    rows = in_units(read, weights, rounding, criterion, ends)
    given = weights._replace(weight=rows.weight)
    if criterion is None:
        warn_if_coarse(weight, given)
    else:
        warn_if_coarse(weight, given, read.target, fix(criterion, read.target, given, ends))


def _some_rows(part: Read, n: int) -> tuple[NDArray, NDArray | None]:
    """Targets and weights of rows at even distances."""
    size = len(part.target)
    rows = np.linspace(0, size - 1, -(-SAMPLE_ROWS * size // n) if n > SAMPLE_ROWS else size)
    rows = rows.astype(np.int64)
    return part.target[rows], None if part.weight is None else part.weight[rows]


def _join_rows(
    found: list[tuple[NDArray, NDArray | None]],
) -> tuple[NDArray, NDArray | None]:
    target = np.concatenate([part for part, _ in found])
    weights = [weight for _, weight in found if weight is not None]
    return target, np.concatenate(weights) if weights else None
