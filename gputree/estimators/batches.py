"""A table that is read in batches into separate files, which the system maps to memory.

    first pass      rows, columns and their categories, the type of numbers, targets
    second pass     values, to a file; then they are coded as any table is, into another

The files have no names: they are gone with the table, or with the process, however it ends.
"""

import errno
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Sharding
from gputree.backends.devices import to_host
from gputree.base.dtypes import CODE, MOST_ROWS, Int64s, writable
from gputree.base.progress import ReadingProgress
from gputree.columns import Columns
from gputree.columns.cells import as_table
from gputree.columns.merging import KeptColumns, MergedColumns
from gputree.errors import InputError, InputTypeError
from gputree.inputs.labels import BatchTargets, Labels
from gputree.inputs.tables import Table
from gputree.inputs.targets import target_names

# Bytes of values in a part of a table.
PART_BYTES = 1 << 26

# Bytes of a value in files: a number and its code.
LEAST_VALUE = np.dtype(np.float32).itemsize + np.dtype(CODE).itemsize

# Errors of a disk that is full, or full for this user, and of a file as long as one may be.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# What is read again: something iterable, or what makes an iterator.
Batches = Iterable[Any] | Callable[[], Iterable[Any]]


class Reader(Protocol):
    """Reader of one batch, as an estimator reads a table."""

    columns_: Columns

    def values(self, X: Any, *, learn: bool) -> NDArray:
        """The matrix of a batch; its columns are learned, or those known."""

    def names(self) -> NDArray | None:
        """Names of the columns of the batch learned last."""


class BatchTable(NamedTuple):
    """A table that was read, and the targets that came with it."""

    table: Table
    target: Labels | None
    target_names: NDArray | None  # of several targets that were a frame in the first batch


class _Seen(NamedTuple):
    """Results of the first pass."""

    sizes: list[int]  # rows of each batch
    sums: list[list[int]]  # of the columns of each batch: other numbers later have others
    columns: KeptColumns
    names: NDArray | None
    dtype: np.dtype
    targets: BatchTargets
    target_names: NDArray | None


def read_batches(
    batches: Batches,
    reader: Reader,
    device: str | None = None,
    max_bins: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    verbose: bool = False,
) -> BatchTable:
    """Read a table twice, batch by batch.

    Raises
    ------
    TypeError
        `batches` can be read once only.
    ValueError
        There are no rows, too many, or other rows in the second pass; columns, names or targets
        that do not fit those of earlier batches.
    OSError
        The folder has no space for the values.
    """
    rows = getattr(batches, "least_rows", None)
    if rows is not None:  # of files, which are not read yet
        require_room(folder, rows() * len(getattr(batches, "names", ())) * LEAST_VALUE)
    with ReadingProgress(verbose) as bar, temporary_file(folder) as file:
        seen = _learn(batches, reader, bar)
        n, d = sum(seen.sizes), seen.columns.nominal.size
        value = seen.dtype.itemsize + np.dtype(CODE).itemsize
        require_room(folder, n * d * value)
        reader.columns_ = seen.columns
        _write(batches, reader, seen, file, bar, folder)
        values = writable(np.memmap(file, seen.dtype, "r", shape=(n, d)))
    table = MappedTable(values, seen.columns.plain(), seen.names, device, max_bins, folder)
    return BatchTable(table, seen.targets.join() if seen.targets else None, seen.target_names)


class MappedTable(Table):
    """A table whose values are in a file of this process; its codes will be in one of `folder`."""

    def __init__(
        self,
        stored: NDArray,
        columns: Columns,
        names: NDArray | None,
        device: str | None,
        max_bins: int | None,
        folder: str | os.PathLike[str] | None,
    ) -> None:
        n = len(stored)
        bounds = np.append(np.arange(0, n, _rows_of(PART_BYTES, stored)), n)
        sharding = Sharding(bounds, lambda shape: mapped_codes(folder, shape))
        super().__init__(stored, columns, names, device, max_bins, sharding)
        self._folder = folder

    def copy_rows(self, rows: Int64s) -> Table:
        """Copy rows to a separate file."""
        shape, dtype = (rows.size, self.stored.shape[1]), self.stored.dtype
        with temporary_file(self._folder) as file:
            _reserve(file, rows.size * shape[1] * dtype.itemsize, self._folder)
            height = _rows_of(PART_BYTES, self.stored)
            for begin in range(0, rows.size, height):
                _put(file, self.stored[rows[begin : begin + height]], self._folder)
            file.flush()
            values = writable(np.memmap(file, dtype, "r", shape=shape))
        fields = values, self.columns, self.names, self.device, self.max_bins
        return MappedTable(*fields, self._folder)

    def __getstate__(self) -> dict[str, Any]:
        raise InputTypeError(
            "A CodedTable of batches lies in files of this process, which others cannot open: use "
            "threads, as in joblib.parallel_backend('threading'), or n_jobs=1."
        )


def _rows_of(size: int, values: NDArray) -> int:
    """Number of rows that `size` bytes can store, at least one."""
    return max(size // (values.shape[1] * values.dtype.itemsize), 1)


def _learn(batches: Batches, reader: Reader, bar: ReadingProgress) -> _Seen:
    sizes: list[int] = []
    sums: list[list[int]] = []
    targets = BatchTargets()
    merged, names, labels, dtype = None, None, None, np.dtype(np.float32)
    bar.begin("looking", None)
    for number, batch in _numbered(batches):
        with _naming_batch(number):
            X, y = _parts(batch)
            if X.shape[0] == 0:
                continue
            values = reader.values(X, learn=True)
            if merged is None:
                names, labels = reader.names(), target_names(y)
                merged = MergedColumns(_labels(names, values.shape[1]))
            _check_columns(merged, names, reader.names(), values.shape[1])
            merged.add(reader.columns_, np.isnan(values).all(axis=0))
            if y is not None:
                targets.add(_target(y, len(values)))
            if (len(targets) > 0) != (y is not None) or len(targets) not in (0, len(sizes) + 1):
                raise InputError("it has a target, and others have none, or the other way round.")
        sums.append(_sums_of(values))
        sizes.append(len(values))
        dtype = np.promote_types(dtype, values.dtype)
        bar.add(values)
    if merged is None:
        raise InputError("Found batches with 0 rows in all while a minimum of 1 is required.")
    if sum(sizes) > MOST_ROWS:
        raise InputError(f"A table has at most {MOST_ROWS:,} rows, got {sum(sizes):,}.")
    return _Seen(sizes, sums, merged.columns(), names, dtype, targets, labels)


def _write(
    batches: Batches,
    reader: Reader,
    seen: _Seen,
    file: Any,
    bar: ReadingProgress,
    folder: str | os.PathLike[str] | None,
) -> None:
    """The second pass: values to the file."""
    n = sum(seen.sizes)
    bar.begin("reading", n)
    _reserve(file, n * seen.columns.nominal.size * seen.dtype.itemsize, folder)
    done = 0
    for number, batch in _numbered(batches):
        with _naming_batch(number):
            X, y = _parts(batch)
            if X.shape[0] == 0:
                continue
            values = reader.values(X, learn=False)
        if done == len(seen.sizes) or not _is_as_seen(values, y, seen, done):
            raise _changed(n)
        _put(file, np.ascontiguousarray(values, seen.dtype), folder)
        bar.add(values)
        done += 1
    if done < len(seen.sizes):
        raise _changed(n)
    file.flush()


def _is_as_seen(values: NDArray, y: Any, seen: _Seen, place: int) -> bool:
    """Return whether a batch of the second pass equals the batch of the first pass."""
    nominal = seen.columns.nominal
    return (
        len(values) == seen.sizes[place]
        and np.promote_types(values.dtype, seen.dtype) == seen.dtype
        and not (values[:, nominal] < 0).any()  # categories that were not there
        and all(
            a == b
            for a, b, coded in zip(_sums_of(values), seen.sums[place], nominal, strict=True)
            if not coded
        )
        and (not seen.targets or seen.targets.are(place, _target(y, len(values))))
    )


def _sums_of(values: NDArray) -> list[int]:
    """A checksum of each column, whatever the type of its numbers, in order of the rows."""
    columns = (np.ascontiguousarray(values[:, f], np.float64) for f in range(values.shape[1]))
    return [zlib.crc32(column.data) for column in columns]


def _changed(n: int) -> ValueError:
    return InputError(
        f"The batches changed while they were read: {n:,} rows at first, then others. They must "
        "be the same, in the same order, in both passes; nothing may write to what they come from."
    )


def _numbered(batches: Batches) -> Iterator[tuple[int, Any]]:
    """The batches, counted from 0."""
    source = batches() if callable(batches) else batches
    if hasattr(source, "shape"):
        raise InputTypeError(
            f"Batches must be an iterable of tables, got one {type(source).__name__}: give a list "
            "of them, or use CodedTable(X)."
        )
    if not callable(batches) and iter(source) is source:
        raise InputTypeError(
            "The batches are read twice, and this iterator can be read once: give a list, "
            "anything else that can be iterated again, or a function that returns an iterator."
        )
    yield from enumerate(source)


def _parts(batch: Any) -> tuple[Any, Any]:
    """Table and target, or None, of a batch."""
    X, y = batch, None
    if isinstance(batch, tuple):
        if len(batch) != 2:
            raise InputError(
                f"a batch is a table, or a pair of table and target, got {len(batch)}."
            )
        X, y = batch
    X = as_table(X)
    if not hasattr(X, "shape"):
        array = np.asarray(X)
        X = np.array(X, dtype=object) if array.dtype.kind in "US" else array
    if len(X.shape) != 2:
        raise InputError(f"a table of rows and columns is expected, got the shape {X.shape}.")
    return X, y


class _naming_batch:
    """Adds the number of a batch to errors about it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, InputError | InputTypeError):
            kind = InputError if isinstance(error, InputError) else InputTypeError
            raise kind(f"Batch {self.number}: {error}") from error


def _labels(names: NDArray | None, d: int) -> list[str]:
    return list(map(repr, range(d) if names is None else names.tolist()))


def _check_columns(
    merged: MergedColumns, names: NDArray | None, former: NDArray | None, d: int
) -> None:
    if d != len(merged.labels):
        raise InputError(f"it has {d} columns, and earlier ones have {len(merged.labels)}.")
    if (None if names is None else names.tolist()) != (None if former is None else former.tolist()):
        same = names is not None and former is not None and sorted(names) == sorted(former)
        what = "are in another order" if same else "have other names"
        raise InputError(f"its columns {what} than those of earlier batches.")


def _target(y: Any, n: int) -> NDArray:
    y = np.array(to_host(y))  # a copy: a view would keep the whole batch
    if y.ndim not in (1, 2) or len(y) != n:
        raise InputError(f"its target must have the shape ({n},) or ({n}, k), got {y.shape}.")
    return y


def temporary_file(folder: str | os.PathLike[str] | None) -> Any:
    """A file without a name, in `folder` or where temporary files go.

    OSError where there is no such folder, or it cannot be written.
    """
    return tempfile.TemporaryFile(dir=_temporary_folder(folder), prefix="gputree-")


def _temporary_folder(folder: str | os.PathLike[str] | None) -> str:
    """`folder`, or where temporary files go.

    Python takes another place where TMPDIR names none, which may have less space.
    """
    if folder is not None:
        return os.fspath(folder)
    found, named = tempfile.gettempdir(), os.environ.get("TMPDIR")
    if named and not os.path.samefile(found, named if os.path.isdir(named) else os.devnull):
        raise OSError(errno.ENOENT, "TMPDIR names no folder that can be written", named)
    return found


def mapped_codes(folder: str | os.PathLike[str] | None, shape: tuple[int, int]) -> NDArray:
    """Space for codes in a file."""
    with temporary_file(folder) as file:
        _reserve(file, shape[0] * shape[1], folder)
        codes: NDArray = np.asarray(np.memmap(file, CODE, "r+", shape=shape))
        return codes


def require_room(folder: str | os.PathLike[str] | None, size: int) -> None:
    """Raise OSError if a folder of temporary files clearly has no space for `size` bytes.

    None is the folder where temporary files go.
    """
    path = Path(_temporary_folder(folder))
    free = shutil.disk_usage(path).free
    if free < size:
        raise _no_room(path, size, f"{free:,} bytes are free")


def _reserve(file: Any, size: int, folder: str | os.PathLike[str] | None) -> None:
    """Reserve the space of a file on its disk: writes to mapped memory cannot fail later."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
            return
    except OSError as error:
        if error.errno in FULL:
            raise _no_room(folder, size, str(error.strerror)) from error
    file.truncate(size)  # where the file system cannot reserve


def _put(file: Any, values: NDArray, folder: str | os.PathLike[str] | None) -> None:
    try:
        file.write(values.data)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise _no_room(folder, values.nbytes, str(error.strerror)) from error


def _no_room(folder: Any, size: int, why: str) -> OSError:
    path = _temporary_folder(folder)
    reason = (
        f"this folder of temporary files has no space for {size:,} bytes of the table ({why}). "
        "Name another one in 'folder'"
    )
    return OSError(errno.ENOSPC, reason, path)
