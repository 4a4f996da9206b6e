"""Tables of each format of files, whole and in batches of rows, with their columns' types."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gputree.datasets import delimited
from gputree.datasets.arff import read_arff
from gputree.datasets.c45 import read_c45
from gputree.datasets.conversion import Kinds, convert
from gputree.datasets.csv_head import Opened, open_delimited
from gputree.datasets.delimited import delimited_batches, read_delimited
from gputree.datasets.first_rows import check_header, check_present, forbid_repeated
from gputree.datasets.guesses import Guess
from gputree.datasets.parser_errors import naming_file, undamaged
from gputree.datasets.sources import (
    ARFF,
    C45,
    DELIMITERS,
    PARQUET,
    Source,
    least_bits,
    require_memory_for_parquet,
)

_BATCH_ROWS = 1 << 16  # rows of a batch of Parquet, at most

# Bytes of a column of a Parquet file that are read at once, at most.
_BUFFER_BYTES = 1 << 20


def schema_of(source: Source) -> pa.Schema:
    """Names of the columns of a file, with their types where it declares them."""
    if source.kind in (*ARFF, *C45):
        with naming_file(source):
            return _read_declared(source, False).schema
    with naming_file(source), source.open(False) as file:
        if source.kind in DELIMITERS:
            return pa.schema([(name, pa.null()) for name in open_delimited(source, file).names])
        found = pq.ParquetFile(file).schema_arrow if source.kind in PARQUET else None
        return found or _arrow_reader(file).schema


def read_whole(
    source: Source, kinds: Kinds, verbose: bool
) -> tuple[pa.Table, Opened | None, list[Guess]]:
    """The table, its columns of the types that the file has or suggests; what CSV shows."""
    if source.kind in DELIMITERS:
        return read_delimited(source, kinds, verbose)
    if source.kind in PARQUET:
        return _read_parquet(source, verbose), None, []
    if source.kind in (*ARFF, *C45):
        return _read_declared(source, verbose, {*kinds.text, *kinds.categorical}), None, []
    with source.open(verbose) as file:
        return _arrow_reader(file).read_all(), None, []


def _read_parquet(source: Source, verbose: bool) -> pa.Table:
    assert source.path is not None
    require_memory_for_parquet(source.path)
    with source.open(verbose) as file:
        forbid_repeated(source.label, pq.ParquetFile(file).schema_arrow.names)
        return pq.read_table(file)


def _read_declared(source: Source, verbose: bool, text: Collection[str] = ()) -> pa.Table:
    """The table of a file whose columns are declared."""
    with source.open(verbose) as file:
        content = file.read().decode("utf-8-sig")
    if source.kind in C45:
        assert source.path is not None
        return read_c45(source.path, content)
    return read_arff(source.label, content, text)


def _arrow_reader(file: Any) -> Any:
    """Reader of an Arrow file (also named Feather), of a table that may have been streamed."""
    head = file.read(6)
    file.seek(0)
    return pa.ipc.open_file(file) if head == b"ARROW1" else pa.ipc.open_stream(file)


def scan_bytes(source: Source) -> int | None:
    """Bytes of a batch of rows that are needed once; None for the usual size."""
    if source.kind not in DELIMITERS:
        return None
    return min(delimited.SCAN_BYTES, delimited.BATCH_BYTES)


def rows_of(
    source: Source,
    columns: Sequence[str],
    kinds: Kinds,
    verbose: bool = False,
    batch_bytes: int | None = None,
) -> Iterator[pa.Table]:
    """Read as `read_batches`, also a file without rows; batches have the usual size if None."""
    batch_bytes = delimited.BATCH_BYTES if batch_bytes is None else batch_bytes
    with naming_file(source):
        for batch in _batches(source, columns, kinds, verbose, batch_bytes):
            if batch.num_rows:
                yield batch


def _batches(
    source: Source, wanted: Sequence[str], kinds: Kinds, verbose: bool, batch_bytes: int
) -> Iterator[pa.Table]:
    if source.kind in (*ARFF, *C45):
        table = _read_declared(source, verbose, {*kinds.text, *kinds.categorical})
        check_header(source.label, table.column_names, wanted)
        yield convert(source.label, table.select(wanted), kinds)
        return
    with source.open(verbose) as file:
        if source.kind in DELIMITERS:
            opened = open_delimited(source, file, tuple(kinds.missing))
            check_header(source.label, opened.names, wanted)
            yield from delimited_batches(source, opened, wanted, kinds, batch_bytes)
            return
        if source.kind in PARQUET:
            batches = _parquet_batches(source, file, wanted, batch_bytes)
        else:
            reader = _arrow_reader(file)
            check_header(source.label, reader.schema.names, wanted)
            count = getattr(reader, "num_record_batches", None)
            batches = reader if count is None else map(reader.get_batch, range(count))
        for batch in batches:
            table = pa.Table.from_batches([batch])  # pa.table reads buffers, which may lie anywhere
            check_present(source.label, table.column_names, wanted)
            yield convert(source.label, undamaged(source, table.select(wanted)), kinds)


def _parquet_batches(
    source: Source, file: Any, wanted: Sequence[str], batch_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet file, read page by page: a group of rows may be most of a file."""
    # of smaller batches, each thread's memory counts
    small = batch_bytes < delimited.BATCH_BYTES
    size = min(_BUFFER_BYTES, batch_bytes >> 4)
    parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=size)
    schema = parquet.schema_arrow
    check_header(source.label, schema.names, wanted)
    row_bytes = sum(least_bits(schema.field(name).type) for name in wanted) / 8
    rows = int(min(max(batch_bytes / max(row_bytes, 1), 1), _BATCH_ROWS))
    yield from parquet.iter_batches(rows, columns=list(wanted), use_threads=not small)
