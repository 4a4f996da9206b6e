"""Zip archives of texts and arrays, read within bounds: what a file claims is checked first.

Nothing is allocated for a claim alone: an array is as long as its member is, all members
together are no longer than the file may unpack to, and no more is decompressed than that.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gputree.base.files import FilePath, naming, replaced_file, require_file
from gputree.errors import InputError

# What any file may unpack to. A tree of two classes has about 100 bytes a node.
LEAST_BYTES = 1 << 28

# How much longer than the file its members may be beyond that. Trees unpack to 2 to 20 times
# their size, those of hundreds of classes to more; zeros to 1,000 times theirs.
MOST_TIMES = 50

# The same for a text: every three bytes can become an object of 60.
LEAST_TEXT_BYTES = 1 << 22
MOST_TEXT_TIMES = 20

CHUNK = 1 << 20  # bytes that are decompressed at a time
_END_BYTES = 1 << 17  # an archive's own end is there
_BENT = (None, errno.EINVAL)  # of errors that come of wrong bytes: codecs, places before the first


class RefusedError(InputError):
    """A file that is whole, for all one can see, and is not read: the message says all."""


# ------------------------------------------------------------------ writing
def write_container(path: FilePath, members: Iterable[tuple[str, bytes]]) -> None:
    """Write an archive; an older file of that name is replaced, or kept on failure.

    Members are read one by one. The same ones give the same bytes (under one zlib): they have
    an order and no time stamp.
    """
    with replaced_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)  # dated 1980: equal models, equal bytes
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


def npy_bytes(array: NDArray) -> bytes:
    """An array in NumPy's format, in the byte order of this machine."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


# ------------------------------------------------------------------ reading
@contextmanager
def open_container(path: FilePath, max_bytes: int | None) -> Iterator[Members]:
    """The members of an archive; whatever damage makes of reading them is a ValueError."""
    path = require_file(path, "model")
    try:
        with naming(path), open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                # zipfile drops errors of reading the directory: read it, to report them
                file.seek(max(0, file.seek(0, os.SEEK_END) - _END_BYTES))
                file.read()
                advice = " JSON is read by read_json." if path.suffix.lower() == ".json" else ""
                raise RefusedError(
                    f"{path} is not a gputree model file, or it is truncated.{advice}"
                )
            with zipfile.ZipFile(file) as archive:
                yield Members(archive, path, max_bytes)
    except (RefusedError, MemoryError):
        raise
    except Exception as error:  # damage can make zipfile, zlib and JSON raise anything
        if isinstance(error, OSError) and (type(error) is not OSError or error.errno not in _BENT):
            raise
        raise InputError(f"{path} is damaged: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Reason why a file is refused, without the words of the libraries that found it."""
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError, RecursionError)):
        return "its model.json is no JSON that can be read."
    if isinstance(error, ValueError):
        return str(error)
    return "some of its bytes are not those that were written. Copy the file again, or train anew."


class Members:
    """The members of a zip archive; RefusedError where they claim to unpack to too much.

    `max_bytes` is what all together, and each text, may unpack to; None for the bounds above.
    """

    def __init__(self, archive: zipfile.ZipFile, path: Path, max_bytes: int | None) -> None:
        self.archive = archive
        self.path = path
        self.max_bytes = max_bytes
        size = os.stat(path).st_size
        claimed = sum(member.file_size for member in archive.infolist())
        if claimed > (max(LEAST_BYTES, MOST_TIMES * size) if max_bytes is None else max_bytes):
            allowed = "" if max_bytes is None else f", and max_bytes={max_bytes} is allowed"
            raise RefusedError(
                f"{path} unpacks to {claimed:,} bytes, {claimed / size:.0f} times its size"
                f"{allowed}. If you trust the file, pass max_bytes={claimed} to load_model."
            )

    def __contains__(self, name: str) -> bool:
        return name in self.archive.NameToInfo

    def text(self, name: str) -> bytes:
        """The whole member; RefusedError where it claims to be far longer than what is stored."""
        info = self.info(name)
        most = max(LEAST_TEXT_BYTES, MOST_TEXT_TIMES * info.compress_size)
        if info.file_size > (most if self.max_bytes is None else self.max_bytes):
            raise RefusedError(
                f"{self.path}: {name} unpacks to {info.file_size:,} bytes, but {most:,} are "
                "allowed. If you trust the file, pass max_bytes to load_model."
            )
        with self.archive.open(info) as stream:
            return _read(stream, info.file_size, name).tobytes()

    def info(self, name: str) -> zipfile.ZipInfo:
        """Entry of the archive for a member, compressed in a way that model files use."""
        if name not in self:
            raise InputError(f"it holds no {name}.")
        info = self.archive.getinfo(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{name} is compressed by a method that model files do not use.")
        return info


@dataclass(frozen=True)
class ArchiveFolder:
    """The arrays of a folder of an archive, by their names."""

    members: Members
    name: str

    @staticmethod
    def member(folder: str, name: str) -> str:
        """The member of an array."""
        return f"{folder}/{name}.npy"

    def __contains__(self, name: str) -> bool:
        return self.member(self.name, name) in self.members

    def array(self, name: str, dtype: type[np.generic], n_dimensions: int) -> NDArray:
        """An array, if it is of the type, in any byte order, and as long as its member."""
        info = self.members.info(self.member(self.name, name))
        with self.members.archive.open(info) as stream:
            shape, by_column, found = _header(stream, name)
            if len(shape) != n_dimensions or not np.can_cast(found, dtype, "equiv"):
                raise InputError(
                    f"array {name} must be {np.dtype(dtype)} with {n_dimensions} dimensions, "
                    f"got {found} with {len(shape)}."
                )
            size = math.prod(shape) * found.itemsize
            if info.file_size != stream.tell() + size:
                raise InputError(
                    f"array {name} of shape {shape} has {size:,} bytes, but its member holds "
                    f"{info.file_size - stream.tell():,}."
                )
            values = _read(stream, size, name).view(found)
        values = values.reshape(shape[::-1]).T if by_column else values.reshape(shape)
        return np.ascontiguousarray(values, dtype=dtype)


def _header(stream: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and type of an array of NumPy's format 1.0, whose header is short."""
    try:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise InputError("it is not of version 1.0")
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
        if min(shape, default=0) < 0:
            raise InputError("its shape is negative")
    except Exception as error:  # of tokenize, ast and others, for text of any kind
        raise InputError(f"array {name} has no valid header.") from error
    return shape, by_column, dtype


def _read(stream: BinaryIO | Any, size: int, name: str) -> NDArray[np.uint8]:
    """The next `size` bytes, which are the last; reading the end checks the CRC."""
    out = np.empty(size, np.uint8)
    n_read = 0
    while n_read < size:
        chunk = np.frombuffer(stream.read(min(CHUNK, size - n_read)), np.uint8)
        if chunk.size == 0:
            raise InputError(f"{name} ends after {n_read:,} of {size:,} bytes.")
        out[n_read : n_read + chunk.size] = chunk
        n_read += chunk.size
    if stream.read(1):
        raise InputError(f"{name} goes on after {size:,} bytes.")
    return out
