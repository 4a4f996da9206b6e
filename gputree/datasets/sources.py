"""Where a table comes from: a file by its name, or a stream of CSV text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from gputree._files import as_path
from gputree.datasets.counted import opened
from gputree.errors import InputError

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}  # or what the first rows show, but in .tsv
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather")
ARFF = (".arff",)
C45 = (".data", ".test")  # whose columns a .names file declares
COMPRESSION = (".gz", ".bz2", ".zst", ".lz4")

Origin = str | PathLike[str] | BinaryIO  # what a caller may name a table by


class Source(NamedTuple):
    """A table that can be read."""

    label: str  # what messages call it
    kind: str  # the suffix of its format, such as ".csv"
    codec: str | None  # name of what a file of text is compressed with
    path: Path | None  # a file, or a pipe that has a name; None for a stream
    stream: Any = None

    @property
    def is_stream(self) -> bool:
        """Whether it can be read once only."""
        return self.path is None or self.path.is_fifo()

    @property
    def is_plain(self) -> bool:
        """Whether it lies in a file as it is read, so that it can be read again."""
        return not self.is_stream and self.codec is None

    @property
    def delimiter(self) -> str:
        """What separates the cells of a CSV file."""
        return DELIMITERS[self.kind]

    @contextmanager
    def open(self, verbose: bool) -> Iterator[pa.NativeFile]:
        """Open it for pyarrow, decompressed, with a bar where `verbose`."""
        if self.path is None:
            yield pa.PythonFile(self.stream, "r")
        elif self.path.is_fifo():
            with open(self.path, "rb") as stream:
                yield pa.PythonFile(stream, "r")
        else:
            with opened(self.path, verbose, self.codec) as file:
                yield file


def source_of(origin: Origin) -> Source:
    """Find out what a table is and whether it is there.

    The format is that of the name; a pipe without a suffix and a binary file hold CSV.
    """
    if hasattr(origin, "read"):
        return Source(_stream_name(origin), ".csv", None, None, origin)
    path = as_path(origin, "The name of a table")
    kind = _kind(path)
    if path.is_fifo():
        return Source(str(path), kind or ".csv", None, path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; the table must be a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {path}.")
    if kind is None:
        raise InputError(
            f"Cannot infer the format of {path}. Its name must end in .csv, .tsv, .txt (or one of "
            f"them with {', '.join(COMPRESSION)}), {', '.join((*PARQUET, *ARROW, *ARFF))}, or in "
            ".data or .test with a .names file next to it."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    codec = None
    if path.suffix.lower() in COMPRESSION and kind in (*DELIMITERS, *ARFF, *C45):
        codec = pa.Codec.detect(path.name.lower()).name
    return Source(str(path), kind, codec, path)


def _kind(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSION]
    kind = suffixes[-1] if suffixes else ""
    return kind if kind in (*DELIMITERS, *PARQUET, *ARROW, *ARFF, *C45) else None


def _stream_name(stream: Any) -> str:
    if stream is getattr(sys.stdin, "buffer", None):
        return "standard input"
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "the stream"
