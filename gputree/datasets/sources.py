"""Sources of tables: a file by its name, or a stream of CSV text."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa

from gputree._files import as_path
from gputree.datasets.counted import members_of, opened
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
        held = ", ".join(map(repr, members[:5])) or "none"
        raise InputError(
            f"{path} must hold one file of text. Got {len(members)} instead ({held}): unpack it."
        )
    return members[0]


def _stream_name(stream: Any) -> str:
    if stream is getattr(sys.stdin, "buffer", None):
        return "standard input"
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) else "the stream"
