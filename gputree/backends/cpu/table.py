"""A table on the host: its values, and their codes once they are needed."""

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from gputree.backends import binning
from gputree.backends.cpu import encode as coding
from gputree.backends.cpu import tuning
from gputree.backends.cpu.layout import Table
from gputree.backends.cpu.nonzeros import at_most, rank_nonzeros
from gputree.backends.cpu.ranks import Ranks, rank_table
from gputree.base.dtypes import CODE, Bools, Int64s, writable
from gputree.base.memory import require_memory
from gputree.base.threads import even_spans, run
from gputree.prediction.sparse import SparseRows

# Columns whose samples are read together: those of a cache line.
FITTED_COLUMNS = 16

# Minimum rows in which distinct values are counted, to guess if a column has more than have codes.
RANKED_SAMPLE = 1 << 10

# Allocates the codes of (n, d) values.
NewCodes = Callable[[tuple[int, int]], NDArray]


def codes_in_memory(shape: tuple[int, int]) -> NDArray:
    """Allocate codes in memory; MemoryError if they would clearly exceed it."""
    n, d = shape
    require_memory(n * d, f"Coding {n:,} rows x {d:,} columns", "Use fewer rows or columns.")
    return np.empty(shape, CODE)


class FineCodes:
    """Fine codes of a table (`Fine` of layout.py), for all growths over it at the same time."""

    def __init__(self, shape: tuple[int, int]) -> None:
        n, d = shape
        self.lock = Lock()
        self.known = np.zeros(d, np.bool_)
        try:
            self.code = np.empty((d, n), np.uint16)  # memory is used once columns are written
        except MemoryError:  # a system that grants no more than it has: none are made
            self.code = np.empty((d, 0), np.uint16)


def draws_few(categories: Int64s, max_features: int) -> bool:
    """Return True if nodes that draw `max_features` columns count, or sort, these only.

    A table of at most `drawn_rows` rows needs no codes then, where cuts are exact.
    """
    return max_features * tuning.TUNING.drawn_share <= categories.size and not categories.any()


class CpuTable:
    """`gputree.backends.base.DeviceTable` on the host, of C-contiguous values, or of sparse rows.

    `new_codes` allocates codes, uint8 of the shape that it is given; None: in memory.
    """

    name = "cpu"
    _keeps_bins = False  # True: in `bins`, by number and whether cuts are exact

    def __init__(
        self,
        source: NDArray | SparseRows,
        missing: Bools,
        categories: Int64s | None = None,
        new_codes: NewCodes | None = None,
    ) -> None:
        self.source, self.missing = source, missing
        self.categories = np.zeros(missing.size, np.int64) if categories is None else categories
        self.shape: tuple[int, int] = source.shape
        self._new_codes = new_codes or codes_in_memory
        self._coded: dict[tuple[int, bool], Table] = {}
        self.bins: dict[tuple[int, bool], binning.Bins] = {}
        self._fine: WeakValueDictionary[int, FineCodes] = WeakValueDictionary()
        self._by_column: NDArray | None = None
        self._ranks: dict[tuple[int, bool] | None, Ranks] = {}
        self.grows_many = False  # trees of a forest, whose nodes draw columns
        self._lock = Lock()  # tasks may grow at once

    def __getstate__(self) -> tuple[Any, ...]:
        return self.source, self.missing, self.categories, self._coded

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        source, missing, categories, coded = state
        source = source if isinstance(source, SparseRows) else writable(source)
        self.__init__(source, missing, categories)  # type: ignore[misc]
        for key, table in coded.items():
            self._coded[key] = Table(*map(writable, table._replace(values=self.values)))

    @property
    def values(self) -> NDArray:
        """The values (n, d); those of sparse rows take as much memory from the first time on."""
        return self.source.dense if isinstance(self.source, SparseRows) else self.source

    @cached_property
    def bare(self) -> Table:
        """The table without codes."""
        return self.empty._replace(values=self.values)

    @property
    def empty(self) -> Table:
        """The columns of the table, with neither codes nor values."""
        d = self.shape[1]
        return Table(
            values=np.empty((0, d), self.source.dtype),
            codes=np.empty((0, d), CODE),
            offset=np.zeros(d + 1, np.int64),
            missing=self.missing,
            single=np.empty(0, np.bool_),
            by_code=np.zeros(d, np.bool_),
            highest=np.empty((0, 0)),
            lowest=np.empty((0, 0)),
            categories=self.categories,
        )

    def by_column(self) -> NDArray:
        """The values column by column, (d, n), for nodes that read few of many columns."""
        with self._lock:
            if self._by_column is None:
                self._by_column = np.ascontiguousarray(self.values.T)
            return self._by_column

    def ranks(self, max_bins: int, exact: bool, coded: bool, n_threads: int) -> Ranks:
        """Ranks of the table, `coded` or not, which tasks with the same arguments share."""
        key = (max_bins, exact) if coded else None
        table = self.coded(max_bins, exact, n_threads) if coded else None
        with self._lock:
            if key not in self._ranks:
                self._ranks[key] = (
                    rank_nonzeros(self.source, self.missing)
                    if self.is_sparse and not coded
                    else rank_table(table or self.bare, n_threads)
                )
            return self._ranks[key]

    def rank_for(self, max_features: int, n_trees: int, n_threads: int) -> bool:
        """Rank the values if whole trees that draw `max_features` read ranks alone: see `ranks`.

        Returns True if so: then the table needs no codes.
        """
        tuned, d = tuning.TUNING, self.missing.size
        if max_features >= d or draws_few(self.categories, max_features):
            return False
        cells = math.prod(self.shape)
        if cells > tuned.ranked_cells and not (
            cells <= tuned.shared_ranked_cells
            and n_trees >= tuned.ranked_trees
            and 2 * max_features <= d
            and self._has_wide_columns
        ):
            return False
        self.ranks(0, True, False, n_threads)
        return True

    @property
    def is_ranked(self) -> bool:
        """Return whether the values are ranked, without codes."""
        return None in self._ranks

    @property
    def _has_wide_columns(self) -> bool:
        """True if more columns have too many values for codes than `Tuning.ranked_share` says."""
        if self.categories.any() or self.is_sparse:
            return False
        sample = np.sort(self.values[:: max(self.shape[0] // RANKED_SAMPLE, 1)], axis=0)
        distinct = np.count_nonzero(sample[1:] > sample[:-1], axis=0)
        return bool((distinct < binning.MAX_BINS).mean() < tuning.TUNING.ranked_share)

    @property
    def is_wide(self) -> bool:
        """Return whether bins would take more memory than values, and more time than they save."""
        tuned, (n, d) = tuning.TUNING, self.shape
        bins = d * binning.bin_bytes(self.source.dtype.itemsize)
        return n <= tuned.wide_rows and bins > tuned.wide_bin_bytes

    @cached_property
    def is_sparse(self) -> bool:
        """True for a wide table of numbers of which few are other than 0; missing ones are."""
        tuned, (n, d) = tuning.TUNING, self.shape
        if d < tuned.sparse_columns or self.categories.any():
            return False
        if isinstance(self.source, SparseRows):
            return bool(np.count_nonzero(self.source.values) <= tuned.sparse_share * n * d)
        most = min(tuned.sparse_share * n * d, tuned.shared_ranked_cells)
        sample = self.source[:: max(n // 64, 1)]
        if np.count_nonzero(sample != 0) > 2 * tuned.sparse_share * sample.size:
            return False
        return at_most(self.source, most)

    def prepare(
        self, max_bins: int, n_threads: int, exact: bool = True, max_features: int | None = None
    ) -> None:
        """Code the table, unless trees need no codes; forests say how many columns nodes draw."""
        self.grows_many = max_features is not None
        drawn = max_features is not None and draws_few(self.categories, max_features)
        uncoded = (
            self.is_wide or self.is_sparse or (drawn and self.shape[0] <= tuning.TUNING.drawn_rows)
        )
        if not exact or not uncoded:
            self.coded(max_bins, exact, n_threads)

    def coded(self, max_bins: int, exact: bool, n_threads: int) -> Table:
        """The table in at most `max_bins` bins a column, missing values included.

        Where cuts are not `exact`, codes decide them all. Tasks with the same arguments share it.
        """
        with self._lock:
            if (max_bins, exact) not in self._coded:
                arguments = self.bare, self._new_codes, max_bins, exact, n_threads
                self._coded[max_bins, exact], bins = code(*arguments)
                if self._keeps_bins:
                    self.bins[max_bins, exact] = bins
            return self._coded[max_bins, exact]

    def fine_codes(self, max_bins: int) -> FineCodes:
        """Weakly cached fine codes of the table in at most `max_bins` bins."""
        with self._lock:
            found = self._fine.get(max_bins)
            if found is None:
                found = self._fine[max_bins] = FineCodes(self.shape)
            return found


class Binning(NamedTuple):
    """Arguments of the bins of d columns, besides samples of their values."""

    dtype: np.dtype
    missing: Bools
    categories: Int64s
    most: Int64s  # maximum number of bins of values
    picked: Bools  # samples are values picked by hash, see `coding.picked_values`
    exact: bool  # True: cuts inside bins are searched for, too


def fit_bins(
    how: Binning, sample: Callable[[Int64s], Iterable[NDArray]], n_threads: int
) -> tuple[binning.Bins, list[int]]:
    """Fit the bins of all columns, numeric ones to samples of their values.

    ``sample(columns)`` are values of some columns, NaN where missing, in any order; threads call
    it. Also returns the columns whose bins should come from all values instead: see
    `coding.fit_picked`.
    """
    bins = binning.empty_bins(how.missing.size, how.dtype, even=not how.exact)
    few = how.categories + how.missing <= binning.MAX_BINS
    for f in np.flatnonzero(how.categories).tolist():
        coding.fit_categories(bins, f, int(how.categories[f]), bool(few[f]))

    def fit(columns: Int64s) -> list[int]:
        again = []
        for f, values in zip(columns.tolist(), sample(columns), strict=True):
            if not how.picked[f]:
                coding.fit_values(bins, f, values, int(how.most[f]))
            elif not coding.fit_picked(bins, f, values, int(how.most[f])):
                again.append(f)
        return again

    numeric = np.flatnonzero(how.categories == 0)
    width = 1 if how.picked.any() else FITTED_COLUMNS
    parts = [(numeric[a : a + width],) for a in range(0, numeric.size, width)]
    return bins, [f for found in run(n_threads, fit, parts) for f in found]


def code(
    table: Table, new_codes: NewCodes, max_bins: int, exact: bool, n_threads: int
) -> tuple[Table, binning.Bins]:
    """A bare table with codes as `CpuTable.coded` says, and its bins."""
    values = table.values
    n, d = values.shape
    most = np.full(d, max_bins) - table.missing
    codes = new_codes((n, d))
    by_value = not exact and n > binning.SAMPLE_ROWS
    picked = np.full(d, by_value)
    how = Binning(values.dtype, table.missing, table.categories, most, picked, exact)
    rows = np.linspace(0, n - 1, min(n, binning.SAMPLE_ROWS)).astype(np.int64)

    def sample(columns: Int64s) -> Iterable[NDArray]:
        if by_value:
            return [coding.picked_values(values, f, n) for f in columns.tolist()]
        taken = np.empty((columns.size, rows.size), values.dtype)
        coding.take_columns(values, rows, columns, taken)
        return taken

    large = by_value or rows.size * d > tuning.TUNING.chunk_rows
    bins, again = fit_bins(how, sample, n_threads if large else 1)
    whole = [(bins, f, values[:, f], int(most[f])) for f in again]
    run(n_threads, coding.fit_values, whole)
    _encode(table, bins, most, codes, exact and n > binning.SAMPLE_ROWS, n_threads)
    return with_codes(table, bins, codes, exact), bins


def with_codes(table: Table, bins: binning.Bins, codes: NDArray, exact: bool) -> Table:
    """The table with the codes of its values; where cuts are not `exact`, codes decide them all."""
    few = table.categories + table.missing <= binning.MAX_BINS  # numeric columns, too
    offset, single = binning.single_bins(bins, table.missing)
    single[np.repeat(table.categories > 0, np.diff(offset))] = True  # no cut can be in such a bin
    return table._replace(
        codes=codes,
        offset=offset,
        single=single if exact else np.ones_like(single),
        by_code=bins.lossless if exact else few,
        highest=bins.highest.astype(np.float64),
        lowest=bins.lowest.astype(np.float64),
    )


def _encode(
    table: Table, bins: binning.Bins, most: Int64s, codes: NDArray, sampled: bool, n_threads: int
) -> None:
    """Code the table; columns with values that the sample missed get new bins."""
    columns = np.arange(bins.count.size)
    if not sampled:
        encode_columns(table, bins, columns, codes, n_threads)
        return
    spans = encode_columns(table, bins, columns, codes, n_threads, bins.lossless)
    missed = np.array([unseen.count for unseen in spans]).max(axis=0)
    moved = np.zeros((bins.count.size, 2**8), CODE)
    recoded, again = [], []
    for f in np.flatnonzero(missed).tolist():
        if missed[f] >= coding.MOST_UNSEEN:
            coding.fit_values(bins, f, table.values[:, f], int(most[f]))
            again.append(f)
        elif _insert(bins, f, [u.value[f, : u.count[f]] for u in spans], most[f], moved[f]):
            recoded.append(f)
        else:
            again.append(f)
    if recoded:
        _recode(bins, np.array(recoded), moved, spans, codes, n_threads)
    if again:
        encode_columns(table, bins, np.array(again), codes, n_threads)


def _insert(
    bins: binning.Bins, f: int, unseen: list[NDArray], most: int, moved: NDArray[np.uint8]
) -> bool:
    """Fit column f to the values it has and those unseen so far; True if it stays lossless.

    ``moved[c]`` becomes the new code of values with code c, missing ones included.
    """
    lowest = bins.lowest[f, : bins.count[f]].copy()
    coding.fit_column(bins, f, np.unique(np.concatenate([lowest, *unseen])), int(most))
    if bins.lossless[f]:
        moved[: lowest.size] = np.searchsorted(bins.lowest[f, : bins.count[f]], lowest)
        moved[lowest.size] = bins.count[f]
    return bool(bins.lossless[f])


def _recode(
    bins: binning.Bins,
    columns: Int64s,
    moved: NDArray[np.uint8],
    spans: list[coding.Unseen],
    codes: NDArray,
    n_threads: int,
) -> None:
    """Rewrite codes of columns whose bins got some values more, which are in known rows."""
    parts = even_spans(len(codes), columns.size, n_threads, tuning.TUNING.chunk_rows)
    run(n_threads, coding.recode_rows, [(codes, columns, moved, a, b) for a, b in parts])
    for unseen in spans:
        for f in columns:
            value, row = (of[f, : unseen.count[f]] for of in (unseen.value, unseen.row))
            codes[row, f] = np.searchsorted(bins.lowest[f, : bins.count[f]], value)


def encode_columns(
    table: Table,
    bins: binning.Bins,
    columns: Int64s,
    codes: NDArray,
    n_threads: int,
    checked: Bools | None = None,
) -> list[coding.Unseen]:
    """Code `columns`; returns the values unseen so far in those `checked`, by span of rows."""
    values = table.values
    n, d = values.shape
    ends = coding.grid_ends(values.dtype)
    parts = even_spans(n, columns.size, n_threads, tuning.TUNING.chunk_rows)
    columns_checked = 0 if checked is None else d
    checked = np.zeros(d, np.bool_) if checked is None else checked

    def encode(a: int, b: int) -> coding.Unseen:
        unseen = coding.Unseen.none(columns_checked, values.dtype)
        coding.encode_rows(values, bins, columns, table.missing, checked, a, b, ends, codes, unseen)
        return unseen

    return run(n_threads, encode, parts)
