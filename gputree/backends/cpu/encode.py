"""Coding of numeric columns into bins: one byte a value.

Bin b of a column holds the values x with ``edge[b - 1] < x <= edge[b]``. The bin is
found by a uniform grid over the edges (cell -> edges before it, exact, since the cell of
a value never falls as the value grows) and a few halving steps among the edges that
share a cell: 2.2 ns a value of 1,000,000 x 28 normal ones (one thread, November 2026).
Rows are coded in blocks that the caches hold, a block column by column.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.bits import mix
from gputree.backends import binning
from gputree.backends.binning import GRID_CELLS, MAX_BINS, Bins
from gputree.base.dtypes import Int64s
from gputree.compilation import PREFETCH_ROWS, borrowing, kernel, prefetch

# Maximum number of values that the sample missed, per column and span of rows; with more, the
# column is sorted to place its bins anew.
MOST_UNSEEN = 1024

# Rows of a sample that are sorted for the edges of exact bins, which affect the work of the search,
# never its result. CPU ms of a fit of depth 8 with 65,536, 32,768, 16,384: 300,000 x 28 183, 141,
# 129, 1,000,000 x 28 376, 351, 321, 500,000 x 14 without signal 152, 145, 138.
SORTED_ROWS = 16_384

# Maximum number of values picked by hash, as a multiple of the wanted number.
MOST_PICKED = 4

# Rows of a block that is coded column by column.
BLOCK_ROWS = 256

# Rows that are tested for non-finite values at once.
INSPECTED_ROWS = 16


class Unseen(NamedTuple):
    """Values that the sample missed, by column: the first of a span of rows, and how many."""

    value: NDArray  # (d, MOST_UNSEEN)
    row: NDArray  # (d, MOST_UNSEEN) int64
    count: NDArray  # type: ignore[assignment]  # (d,) int64

    @classmethod
    def none(cls, d: int, dtype: np.dtype) -> Unseen:
        """Space for d columns, no value collected yet."""
        shape = (d, MOST_UNSEEN)
        return cls(np.empty(shape, dtype), np.empty(shape, np.int64), np.zeros(d, np.int64))


@borrowing
def all_finite(cells, begin, end):
    """Return True if the cells ``begin .. end`` are all finite: in vectors, without a branch."""
    odd = np.uint8(0)
    for i in range(np.uintp(begin), np.uintp(end)):
        x = cells[i]
        odd |= np.uint8(x - x != 0)  # NaN for NaN and infinity
    return odd == 0


@kernel
def inspect_columns(values, begin, end, missing, infinite):
    """Mark the columns that hold NaN, and those that hold an infinity; `values` in C order."""
    d = values.shape[1]
    cells = values.reshape(-1)
    for first in range(begin, end, INSPECTED_ROWS):
        last = min(first + INSPECTED_ROWS, end)
        if all_finite(cells, first * d, last * d):
            continue
        for i in range(first, last):
            if all_finite(cells, i * d, (i + 1) * d):
                continue
            for f in range(d):
                x = values[i, f]
                if x != x:
                    missing[f] = True
                elif x - x != 0:
                    infinite[f] = True


@borrowing
def grid_cell(x, low, scale, half, top):
    """Grid cell of x: never falls as x grows; 0 for NaN. Halves keep the difference finite.

    `half` and `top` are 0.5 and the last cell in the values' own dtype.
    """
    place = (x * half - low) * scale
    place = place if place > 0 else half - half
    return np.uint32(np.int32(place if place < top else top))


def grid_ends(dtype: np.dtype) -> tuple[Any, Any]:
    """0.5 and the last cell of a grid, in the dtype of the values."""
    return dtype.type(0.5), dtype.type(GRID_CELLS - 1)


@kernel
def fill_grid(edge, low, scale, half, top, cell):
    """Fill the grid of one column with m edges; returns the halving steps it needs."""
    counts = np.zeros(GRID_CELLS, np.int64)
    for j in range(edge.size):
        counts[grid_cell(edge[j], low, scale, half, top)] += 1
    before = most = 0
    for c in range(GRID_CELLS):
        cell[c] = before
        before += counts[c]
        most = max(most, counts[c])
    steps = 0
    while (1 << steps) - 1 < most:
        steps += 1
    return steps


@borrowing
def encode_block(x, n, bins, f, half, top, place, code):
    """Code the first n of the values x of column f; `place` is scratch."""
    edge, cell, steps = bins.edge[f], bins.cell[f], bins.steps[f]
    low, scale = bins.low[f], bins.scale[f]
    one = np.uint32(1)
    for k in range(n):
        place[k] = grid_cell(x[k], low, scale, half, top)
    if steps <= 1:  # one comparison settles a value in most columns
        for k in range(n):
            b = np.uint32(cell[place[k]])
            code[k] = b + np.uint32(edge[b] < x[k])
        return
    for k in range(n):
        place[k] = cell[place[k]]
    step = (one << np.uint32(steps)) >> one
    while step > 0:
        for k in range(n):
            b = place[k]
            place[k] = b + step * np.uint32(edge[np.uint32(b + step - one)] < x[k])
        step >>= one
    for k in range(n):
        code[k] = place[k]


@borrowing
def is_constant(x, n):
    """Return True if the first n values are equal, none NaN: no branch if the ends are equal."""
    if x[0] != x[n - np.uintp(1)]:
        return False
    odd = False
    for k in range(n):
        odd |= x[k] != x[0]
    return not odd


@borrowing
def has_other_values(x, n, code, lowest):
    """Return True if some known value, of n, differs from the one of its bin: without a branch."""
    odd = False
    for k in range(n):
        odd |= (lowest[code[k]] != x[k]) & (x[k] == x[k])
    return odd


@borrowing
def collect_unseen(x, n, code, lowest, first, f, unseen):
    """Collect the values that their bins do not have, and their rows from `first` on."""
    position = unseen.count[f]
    for k in range(n):
        if x[k] == x[k] and lowest[code[k]] != x[k] and position < MOST_UNSEEN:
            unseen.value[f, position] = x[k]
            unseen.row[f, position] = first + k
            position += 1
    unseen.count[f] = position


@kernel
def encode_rows(values, bins, columns, missing, checked, begin, end, ends, codes, unseen):
    """Code `columns` of the rows ``begin .. end``; `ends` are the `grid_ends` of the values.

    Columns of `missing` hold missing values. Those `checked`, taken for lossless, may hold
    values that are not their bin's: they are collected in `unseen`.
    """
    half, top = ends
    x = np.empty(BLOCK_ROWS, values.dtype)
    place = np.empty(BLOCK_ROWS, np.uint32)
    code = np.empty(BLOCK_ROWS, np.uint8)
    # Rows begin .. first are coded.
    for first in range(begin, end, BLOCK_ROWS):
        n = np.uintp(min(BLOCK_ROWS, end - first))
        for f in columns:
            for k in range(n):
                x[k] = values[np.uintp(first) + k, f]
            m = np.uintp(1) if is_constant(x, n) else n
            encode_block(x, m, bins, f, half, top, place, code)
            for k in range(m, n):
                code[k] = code[0]
            if checked[f] and has_other_values(x, m, code, bins.lowest[f]):
                collect_unseen(x, n, code, bins.lowest[f], first, f, unseen)
            if missing[f]:
                for k in range(n):
                    if x[k] != x[k]:
                        code[k] = bins.count[f]
            for k in range(n):
                codes[np.uintp(first) + k, f] = code[k]


@kernel
def recode_rows(codes, columns, moved, begin, end):
    """Replace each code c of `columns` by ``moved[f, c]`` in the rows ``begin .. end``."""
    for first in range(begin, end, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, end)
        for f in columns:
            for i in range(np.uintp(first), np.uintp(last)):
                codes[i, f] = moved[f, codes[i, f]]


@kernel
def pick_by_value(values, f, share, out):
    """Copy known values of column f whose hash is among the lowest `share` of 2**63; how many.

    Which values are picked does not depend on the order of rows. -1 if `out` is too short.
    """
    count = 0
    for i in range(values.shape[0]):
        x = np.float64(values[i, f]) + 0.0  # -0.0 and 0.0 are one value
        if (
            x == x
            and np.int64(mix(np.uint64(np.float64(x).view(np.int64))) >> np.uint64(1)) < share
        ):
            if count == out.size:
                return -1
            out[count] = values[i, f]
            count += 1
    return count


@kernel
def take_columns(values, rows, columns, out):
    """Copy column ``columns[j]`` of the given rows to ``out[j]``."""
    final = np.uintp(max(rows.size, 1) - 1)
    for first in range(0, rows.size, BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, rows.size)
        for j in range(columns.size):
            f = np.uintp(columns[j])
            for i in range(np.uintp(first), np.uintp(last)):
                prefetch(values, rows[min(i + np.uintp(PREFETCH_ROWS), final)], f)
                out[j, i] = values[np.uintp(rows[i]), f]


@kernel
def find_runs(ordered, begins):
    """Write the first place of each run of equal values to `begins`; returns the number of runs."""
    count = 0
    for i in range(ordered.size):
        begins[count] = i
        count += i == 0 or ordered[i] != ordered[i - 1]
    return count


def picked_values(values: NDArray, f: int, n_rows: int) -> NDArray:
    """Values of column f picked by their hash, some `SAMPLE_ROWS` of a table of `n_rows`.

    The choice does not depend on the order of rows or their places. Values that repeat may come in
    large numbers, but in no more than it takes `fit_picked` to refuse them.
    """
    sample = np.empty(MOST_PICKED * binning.SAMPLE_ROWS + 1, values.dtype)
    n = pick_by_value(values, f, int(2.0**63 * binning.SAMPLE_ROWS / n_rows), sample)
    return sample if n < 0 else sample[:n].copy()


def fit_picked(bins: Bins, f: int, picked: NDArray, max_bins: int) -> bool:
    """Set the bins of column f from values picked by their hash, whose edges delimit them.

    Returns False if they are too many, or too few of them are distinct: then the bins should come
    from all values.
    """
    ordered = known_ascending(picked)
    fit_column(bins, f, ordered, max_bins)
    delimit(bins, f)
    changes = int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    return ordered.size <= MOST_PICKED * binning.SAMPLE_ROWS and changes >= binning.FEWEST_DISTINCT


def delimit(bins: Bins, f: int) -> None:
    """Set the ends of the bins of column f, fitted to a sample of its values, to its edges."""
    bins.highest[f] = bins.edge[f, :MAX_BINS]
    bins.lowest[f, 1:] = bins.edge[f, : MAX_BINS - 1]


def fit_values(bins: Bins, f: int, values: NDArray, max_bins: int) -> None:
    """Set the bins of column f from its values, NaN where missing: a sample if not `even`."""
    step = 1 if bins.even[f] else max(values.size // SORTED_ROWS, 1)
    fit_column(bins, f, known_ascending(values[::step]), max_bins)
    if bins.lossless[f] and step > 1:  # the other rows may have more distinct values
        fit_column(bins, f, known_ascending(values), max_bins)


def known_ascending(values: NDArray) -> NDArray:
    """The values that are not NaN, in ascending order."""
    ordered = np.sort(values)  # NaN comes last
    return ordered[: np.searchsorted(ordered, np.nan)]


def fit_column(bins: Bins, f: int, ordered: NDArray, max_bins: int) -> None:
    """Set the bins of column f from its known values in ascending order."""
    begins = np.empty(ordered.size + 1, np.int64)
    m = find_runs(ordered, begins)
    begins[m] = ordered.size
    distinct = ordered[begins[:m]] + 0  # 0.0 for either zero
    fit_distinct(bins, f, distinct, np.diff(begins[: m + 1]), max_bins)


def fit_distinct(bins: Bins, f: int, distinct: NDArray, counts: Int64s, max_bins: int) -> None:
    """Set the bins of column f from its distinct values, ascending, and the rows of each."""
    lossless = bins.lossless[f] = distinct.size <= max_bins
    edge = distinct[:-1]
    if not lossless:
        edge = quantile_edges(distinct, counts, max_bins, bins.even[f])
    bins.edge[f] = np.inf
    bins.edge[f, : edge.size] = edge
    bins.highest[f] = bins.lowest[f] = 0  # of a fit that was refused
    bins.count[f] = edge.size + 1
    if lossless:
        bins.highest[f, : distinct.size] = bins.lowest[f, : distinct.size] = distinct
    else:
        last = np.append(np.searchsorted(distinct, edge, side="right"), distinct.size) - 1
        first = np.append(0, last[:-1] + 1)
        bins.highest[f, : last.size] = distinct[np.maximum(last, 0)]
        bins.lowest[f, : last.size] = distinct[np.minimum(first, distinct.size - 1)]
    fit_grid(bins, f, edge)


def fit_categories(bins: Bins, f: int, count: int, few: bool) -> None:
    """Set the bins of nominal column f: one per category if they are `few`, else one for all."""
    fit_column(bins, f, np.arange(count if few else 0, dtype=bins.edge.dtype), MAX_BINS)
    bins.lossless[f] = few


def quantile_edges(distinct: NDArray, counts: Int64s, max_bins: int, even: bool) -> NDArray:
    """Edges at quantiles of the `distinct` values, ascending, that occur `counts` times.

    A value that fills a bin has a bin to itself. Such a bin is between two edges even at the
    ends, where the sample may not reach.
    """
    upto = np.cumsum(counts)
    places = np.arange(1, max_bins) * (upto[-1] - 1) // max_bins
    if not even:
        places = (binning.uneven_quantiles(max_bins) * (upto[-1] - 1)).astype(np.int64)
    picked = distinct[np.searchsorted(upto, places, side="right")]
    edge = np.unique(picked)
    heavy = np.unique(picked[1:][picked[1:] == picked[:-1]])
    below = heavy[heavy > np.finfo(heavy.dtype).min]
    isolated = np.union1d(edge, np.nextafter(below, heavy.dtype.type(-np.inf)))
    return isolated if isolated.size < max_bins else edge


def fit_grid(bins: Bins, f: int, edge: NDArray) -> None:
    """Set the grid over the edges of column f; one cell if the width exceeds the dtype."""
    half, top = grid_ends(edge.dtype)
    if edge.size == 0:
        bins.steps[f] = 0
        return
    width = edge[-1] * half - edge[0] * half
    with np.errstate(over="ignore", divide="ignore"):
        scale = top / width if width > 0 else half * 0
    bins.low[f] = edge[0] * half
    bins.scale[f] = scale if np.isfinite(scale) else 0
    bins.steps[f] = fill_grid(edge, bins.low[f], bins.scale[f], half, top, bins.cell[f])
