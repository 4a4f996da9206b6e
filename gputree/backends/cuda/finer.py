"""Living bins counted into cells on the device, so that few of their rows are sorted.

The marks of living bins, counted in cells, say where each bin's cells lie; what comes out are
marks of living cells, counted in rows, which are gathered, sorted and scanned as those of bins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cuda import tuning
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import Grower, HostTable, to_device
from gputree.backends.cuda.structs import SIEVE, Packed

if TYPE_CHECKING:
    from gputree.backends.cuda.refine import Alive, Batch, Level


class Cells(NamedTuple):
    """Living bins in cells; the cells of a column lie side by side."""

    bins: Alive  # ``place`` and ``taken`` are in cells, ``starts`` counts them
    low: Any  # (cells of a histogram,) float64: half of where a bin begins
    scale: Any  # and its inverse width
    counts: Any  # (cells x channels,) statistics
    sums: Any  # (cells x channels,) int64: up to each cell, from the column's first bin
    bin_of: Any  # (cells,) int32: bin in the column
    place: Any  # (cells,) int32 and uint32, as `Alive` has them
    taken: Any

    def sieve(self) -> Packed:
        """Where values are counted, for kernels."""
        bins = self.bins
        return SIEVE.pack(bins.used, bins.starts[0], bins.place, bins.taken, self.low, self.scale)


def is_worth_it(pairs: int, rows: int) -> bool:
    """Whether so many pairs of living bins, in a level of so many rows, are counted."""
    return pairs >= least_worth(rows)


def least_worth(rows: int) -> float:
    """Pairs of living bins from which on they are counted, in a level of so many rows."""
    own = tuning.TUNING
    return max(own.counted_pairs, own.alive_share * rows)


def mark_cells(grower: Grower, level: Level, bins: Alive, n_cells: int) -> Alive:
    """Living cells of living bins, with the rows and chunks that they take."""
    xp = cupy()
    channels = grower.task.channels
    m, d = level.nodes, grower.table.columns
    low, scale = (to_device(column) for column in bin_scales(grower.table.host))
    bars = xp.empty(m, dtype=np.int64)
    grower.kernels.each("finer", "start_bars", m, m, level.cuts, bars)
    cells = Cells(
        bins=bins,
        low=low,
        scale=scale,
        counts=xp.zeros(n_cells * channels, dtype=level.histograms.dtype),
        sums=xp.empty(n_cells * channels, dtype=np.int64),
        bin_of=xp.empty(n_cells, dtype=np.int32),
        place=xp.empty(n_cells, dtype=np.int32),
        taken=xp.empty(n_cells, dtype=np.uint32),
    )
    _count(grower, level, cells)
    shape = (
        grower.rules, grower.table.packed, level.packed, level.held, bins.used, bins.starts[0],
        cells.counts, cells.sums, bars,
    )  # fmt: skip
    grower.kernels("finer", "raise_bars", (m * d,), *shape, threads=128)
    taken = xp.zeros((2, m * d + 1), dtype=np.int64)
    grower.kernels(
        "finer", "mark_cells", (m * d,), *shape, cells.place, cells.taken, taken[0, 1:],
        taken[1, 1:], threads=32,
    )  # fmt: skip
    return bins._replace(used=taken[0, 1:], starts=xp.cumsum(taken, axis=1), cells=cells)


def bin_scales(table: HostTable) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Half of the least value of each bin of a histogram, and what makes its width 1.

    Between the values that its edges were found from: others are in its first cell or its last.
    """
    exists = np.arange(table.least.shape[1]) < np.diff(table.offset)[:, None]
    low = 0.5 * table.least[exists]
    width = 0.5 * table.greatest[exists] - low
    scale = np.zeros_like(width)
    np.divide(1.0, width, out=scale, where=width > np.finfo(np.float64).tiny * 2.0**24)
    return low, scale


def _count(grower: Grower, level: Level, cells: Cells) -> None:
    table, channels = grower.table, grower.task.channels
    grower.kernels(
        "finer", "count_cells", (level.chunks.number,), table.values, table.packed,
        grower.statistics, grower.entries, level.chunks.packed, channels, cells.sieve(),
        cells.counts,
    )  # fmt: skip
    grower.kernels(
        "finer", "accumulate_cells", (level.nodes * table.columns,), table.packed, channels,
        level.packed, cells.sieve(), cells.counts, cells.sums, cells.bin_of, threads=32,
    )  # fmt: skip


def cell_bytes(grower: Grower, level: Level) -> int:
    """Device memory that a cell takes."""
    return grower.task.channels * (level.histograms.dtype.itemsize + 8) + 12


def most_cells(grower: Grower, level: Level) -> int:
    """Cells that the memory for gathered pairs has room for."""
    return grower.memory.gathered_bytes // 4 // cell_bytes(grower, level)


def gather_cells(
    grower: Grower, level: Level, cells: Cells, batch: Batch, segments: Any, keys: Any, items: Any
) -> None:
    """Keys and rows of the living cells, in no order; segments are the cells' first slots."""
    table = grower.table
    grower.kernels(
        "finer", "gather_cells", (level.chunks.number,), table.values, table.packed,
        grower.entries, level.chunks.packed, batch.begin, batch.end, cells.sieve(),
        batch.row_start, cells.place, cells.taken, segments, keys, items,
    )  # fmt: skip


def list_cells(grower: Grower, cells: Cells, batch: Batch, pieces: Packed) -> Any:
    """Cut the rows of living cells into chunks; returns the cell of each."""
    owner = cupy().empty(batch.chunks, dtype=np.int64)
    grower.kernels(
        "finer", "list_cells", (batch.end - batch.begin,), grower.rules, batch.begin,
        cells.bins.used, cells.bins.starts[0], cells.counts, cells.bin_of, cells.place,
        batch.row_start, batch.chunk_start, pieces, owner, threads=32,
    )  # fmt: skip
    return owner


def accumulate_cells(grower: Grower, cells: Cells, owner: Any, lefts: Any) -> None:
    """Statistics of chunks become those left of them, missing values apart."""
    count, channels = lefts.shape
    grower.kernels.each(
        "finer", "accumulate_living", count * channels, count, channels, cells.counts, cells.sums,
        owner, lefts,
    )  # fmt: skip
