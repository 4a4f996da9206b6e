"""Estimates of the memory that a file will take, before it is read."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from gputree._memory import available_bytes, require_memory
from gputree.datasets.counted import decompressed
from gputree.datasets.file_format import INFERRED, FileFormat
from gputree.datasets.sources import DELIMITERS, PARQUET, source_of
from gputree.errors import InputError

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
    told = file.metadata
    groups = [told.row_group(place).num_rows for place in range(told.num_row_groups)]
    if told.num_rows != sum(groups) or min(groups, default=0) < 0:
        raise InputError(
            f"{path} is damaged: it declares {told.num_rows:,} rows, and its groups of rows of "
            f"{sum(groups):,}."
        )
    return int(told.num_rows)


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
