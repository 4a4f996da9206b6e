"""Sources of tables: a file by its name, or a stream of CSV text.

Files count the bytes that are read from them; the memory that a file will take is estimated before
it is read. Arrays may be mapped from files, in batches of rows that are read as often as needed.
"""

import io
import lzma
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gputree.base.files import as_path
from gputree.base.memory import available_bytes, require_memory
from gputree.base.progress import new_bar
from gputree.datasets.file_format import FORMATS, INFERRED, FileFormat, check_format
from gputree.errors import InputError

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}  # or what the first rows show, but in .tsv
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather")
ARFF = (".arff",)
C45 = (".data", ".test")  # whose columns a .names file declares
COMPRESSION = (".gz", ".bz2", ".zst", ".lz4", ".xz", ".zip")

_CODECS = {".xz": "xz", ".zip": "zip"}  # that Arrow has none for

Origin = str | PathLike[str] | BinaryIO  # what a caller may name a table by


class Source(NamedTuple):
    """A table that can be read."""

    label: str  # what messages call it
    kind: str  # the suffix of its format, such as ".csv"
    codec: str | None  # name of what a file of text is compressed with
    path: Path | None  # a file, or a pipe that has a name; None for a stream
    stream: Any = None
    form: FileFormat = INFERRED

    @property
    def is_stream(self) -> bool:
        """Return whether it can be read once only."""
        return self.path is None or self.path.is_fifo()

    @property
    def is_plain(self) -> bool:
        """Return whether the file is read as it is, so that it can be read again."""
        return not self.is_stream and self.codec is None and self.form.encoding is None

    @property
    def delimiter(self) -> str:
        """Separator of the cells of a CSV file."""
        return DELIMITERS[self.kind]

    @contextmanager
    def open(self, verbose: bool) -> Iterator[pa.NativeFile]:
        """Open it for pyarrow, decompressed and as UTF-8, with a bar where `verbose`."""
        if self.path is None:
            yield self._decoded(pa.PythonFile(self.stream, "r"))
        elif self.path.is_fifo():
            with open(self.path, "rb") as stream:
                yield self._decoded(pa.PythonFile(stream, "r"))
        else:
            with opened(self.path, verbose, self.codec) as file:
                yield self._decoded(file)

    def _decoded(self, file: pa.NativeFile) -> pa.NativeFile:
        encoding = self.form.encoding
        if encoding is None or self.kind in (*PARQUET, *ARROW):
            return file
        return pa.transcoding_input_stream(file, encoding, "utf-8")


def source_of(origin: Origin, form: FileFormat = INFERRED) -> Source:
    """Find out what a table is and whether it is there.

    The format is that of the name, unless `form` says another; a pipe without a suffix and a binary
    file hold CSV.
    """
    check_format(form)
    given = None if form.format is None else FORMATS[form.format]
    if hasattr(origin, "read"):
        if given is not None and given not in DELIMITERS:
            raise InputError(f"A stream must hold CSV. Got the format {form.format!r} instead.")
        return Source(_stream_name(origin), given or ".csv", None, None, origin, form)
    path = as_path(origin, "The name of a table")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; the table must be a file.")
    if path.is_fifo():
        return Source(str(path), given or _kind(path) or ".csv", None, path, None, form)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    kind = given or _kind(path)
    if kind is None:
        raise InputError(
            f"Cannot infer the format of {path}. Its name must end in .csv, .tsv, .txt (or one of "
            f"them with {', '.join(COMPRESSION)}), {', '.join((*PARQUET, *ARROW, *ARFF))}, or in "
            ".data or .test with a .names file next to it; or pass the format."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    codec = _codec(path) if kind in (*DELIMITERS, *ARFF, *C45) else None
    return Source(str(path), kind, codec, path, None, form)


def _codec(path: Path) -> str | None:
    """The codec that the name of a file of text says, if any."""
    suffix = path.suffix.lower()
    if suffix not in COMPRESSION:
        return None
    return _CODECS.get(suffix) or pa.Codec.detect(path.name.lower()).name


def _kind(path: Path) -> str | None:
    """Suffix of the format; for an archive, the suffix of its member."""
    name = path
    if path.suffix.lower() == ".zip" and path.is_file():
        name = Path(_member(path))
    suffixes = [suffix.lower() for suffix in name.suffixes if suffix.lower() not in COMPRESSION]
    kind = suffixes[-1] if suffixes else ""
    return kind if kind in (*DELIMITERS, *PARQUET, *ARROW, *ARFF, *C45) else None


def _member(path: Path) -> str:
    """The name of the one file in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = members_of(archive)
    except zipfile.BadZipFile as error:
        raise InputError(f"Cannot read {path}: {error}.") from error
    if len(members) != 1 or Path(members[0]).suffix.lower() in (*PARQUET, *ARROW):
        listed = ", ".join(map(repr, members[:5])) or "none"
        raise InputError(
            f"{path} must hold one file of text. Got {len(members)} instead ({listed}): unpack it."
        )
    return members[0]


def _stream_name(stream: Any) -> str:
    if stream is getattr(sys.stdin, "buffer", None):
        return "standard input"
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "the stream"


@contextmanager
def opened(path: Path, verbose: bool, compression: str | None = None) -> Iterator[pa.NativeFile]:
    """Open a file for pyarrow, with a progress bar of the bytes read where `verbose`.

    `compression` is the codec of a compressed file, whose compressed bytes are counted.
    """
    bar = new_bar(
        path.stat().st_size, verbose, desc=f"reading {path.name}", unit="B", unit_scale=True,
        unit_divisor=1024, delay=0.5,
    )  # fmt: skip
    try:
        # without a bar, pyarrow prefetches in separate threads
        file = pa.OSFile(str(path)) if bar is None else pa.PythonFile(_Counted(path, bar), "r")
        with file:
            yield decompressed(file, compression)
    finally:
        if bar is not None:
            bar.close()


def decompressed(file: pa.NativeFile, compression: str | None) -> pa.NativeFile:
    """The content of a file that is compressed by a codec, or of the one member of an archive."""
    if compression is None:
        return file
    if compression == "xz":
        return pa.PythonFile(lzma.open(file), "r")
    if compression == "zip":
        archive = zipfile.ZipFile(file)
        return pa.PythonFile(archive.open(members_of(archive)[0]), "r")
    return pa.CompressedInputStream(file, compression)


def members_of(archive: zipfile.ZipFile) -> list[str]:
    """Names of the files in an archive, without what macOS adds to each."""
    names = [one.filename for one in archive.infolist() if not one.is_dir()]
    return [name for name in names if not name.startswith("__MACOSX/")]


class _Counted(io.BufferedReader):
    """File that moves a progress bar by the bytes read."""

    def __init__(self, path: Path, bar: Any) -> None:
        super().__init__(io.FileIO(path))
        self._bar = bar

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._bar.update(min(len(data), self._bar.total - self._bar.n))  # ends are read twice
        return data


SAMPLE_BYTES = 1 << 22  # bytes of text that are read to see what a row takes
LEAST_SHARE = 0.5  # rows further down may be smaller than those of the sample

# Fraction of the memory below which any file fits, even text that is compressed a hundredfold.
SMALL_SHARE = 0.002

ADVICE = "Keep fewer rows or columns in the file, or use a machine with more memory."


def least_bytes(path: Path, form: FileFormat = INFERRED) -> float:
    """Estimated bytes of the table of a file in memory; 0 for streams, which are read once only."""
    source = source_of(path, form)
    if source.is_stream:
        return 0.0  # it is unknown
    try:
        if source.kind in PARQUET:
            return _of_parquet(path)
        if source.kind in DELIMITERS:
            taken, read, _ = _sample(path, source.delimiter, source.codec)
            if read:
                return taken * path.stat().st_size / read
    except (pa.ArrowException, OSError, UnicodeError):
        pass  # reading the whole file gives a better estimate
    return path.stat().st_size


def least_rows(path: Path, form: FileFormat = INFERRED) -> int:
    """A lower bound of the number of rows of a file; 0 if unknown."""
    source = source_of(path, form)
    try:
        if source.kind in PARQUET:
            with pq.ParquetFile(path) as file:
                return _rows_of_parquet(path, file)
        if source.kind in DELIMITERS and not source.is_stream:
            _, read, rows = _sample(path, source.delimiter, source.codec)
            return int(LEAST_SHARE * rows * path.stat().st_size / read) if read else 0
    except (pa.ArrowException, OSError, UnicodeError):
        pass  # reading the whole file gives a better estimate
    return 0


def require_memory_for_parquet(path: Path) -> None:
    """Raise MemoryError if the table of a Parquet file clearly exceeds the memory."""
    require_memory(_of_parquet(path), f"Reading {path}", ADVICE)


def _of_parquet(path: Path) -> float:
    with pq.ParquetFile(path) as file:
        row_bits = sum(least_bits(field.type) for field in file.schema_arrow)
        return _rows_of_parquet(path, file) * row_bits / 8


def _rows_of_parquet(path: Path, file: pq.ParquetFile) -> int:
    metadata = file.metadata
    groups = [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)]
    if metadata.num_rows != sum(groups) or min(groups, default=0) < 0:
        raise InputError(
            f"{path} is damaged: it declares {metadata.num_rows:,} rows, and its groups of rows of "
            f"{sum(groups):,}."
        )
    return int(metadata.num_rows)


def least_bits(kind: pa.DataType) -> int:
    """Minimum bits of a cell in Arrow's memory."""
    try:
        return kind.bit_width
    except ValueError:  # variable width: one offset
        return 0 if kind.num_fields else 32


def require_memory_for_csv(path: Path, delimiter: str, compression: str | None) -> None:
    """Raise MemoryError if the table of a CSV file clearly exceeds the memory.

    Estimated from the memory of its first rows per byte of the file.
    """
    available, size = available_bytes(), path.stat().st_size
    if available is None or size < SMALL_SHARE * available:
        return
    taken, read, _ = _sample(path, delimiter, compression)
    if read:
        require_memory(LEAST_SHARE * taken * (size / read), f"Reading {path}", ADVICE)


def _sample(path: Path, delimiter: str, compression: str | None) -> tuple[int, int, int]:
    """Bytes of the first rows in memory and in the file, and their number; zeros if unknown."""
    with pa.OSFile(str(path)) as file:
        text = decompressed(file, compression)
        head, _, rest = text.read(SAMPLE_BYTES).rpartition(b"\n")
        read = file.tell() - (len(rest) if compression is None else 0)
    try:
        table = pcsv.read_csv(
            io.BytesIO(head), parse_options=pcsv.ParseOptions(delimiter=delimiter)
        )
        return table.nbytes, read, table.num_rows
    except (pa.ArrowInvalid, UnicodeError):  # reading the whole file gives a better estimate
        return 0, 0, 0


# Bytes of a batch: small compared with the memory, large compared with the cost of a call.
BATCH_BYTES = 1 << 26


class ArrayBatches:
    """Batches of the rows of an array, for `gputree.CodedTable.from_batches`.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        An array such as ``np.load("X.npy", mmap_mode="r")`` is read a batch at a time.
    y : array of shape (n_rows,), or None
        Targets; mapped from a file, too, perhaps.

    Raises
    ------
    ValueError
        `X` has other than two dimensions, or `y` has another length.

    Examples
    --------
    >>> import numpy as np
    >>> from gputree import CodedTable
    >>> from gputree.datasets import ArrayBatches
    >>> X = np.lib.format.open_memmap("X.npy", "w+", np.float32, (1000, 3))  # doctest: +SKIP
    >>> table = CodedTable.from_batches(ArrayBatches(X))  # doctest: +SKIP
    """

    def __init__(self, X: NDArray[Any], y: NDArray[Any] | None = None) -> None:
        if X.ndim != 2:
            raise InputError(f"X must have rows and columns, got an array of shape {X.shape}.")
        if y is not None and y.shape != (len(X),):
            raise InputError(f"y must have the shape ({len(X)},), got {y.shape}.")
        self.X, self.y = X, y

    def __iter__(self) -> Iterator[NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]]:
        row = max(self.X.shape[1] * self.X.dtype.itemsize, 1)
        height = max(BATCH_BYTES // row, 1)
        for begin in range(0, len(self.X), height):
            rows = slice(begin, begin + height)
            values = np.asarray(self.X[rows])
            yield values if self.y is None else (values, np.asarray(self.y[rows]))
