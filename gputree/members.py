"""Members of an archive, read within bounds: what a file claims is checked before it is believed.

Nothing is allocated for a claim alone: an array is as long as its member is, all members
together are no longer than the file may unpack to, and no more is decompressed than that.
"""

from __future__ import annotations

import math
import os
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gputree.errors import InputError

# What any file may unpack to. A tree of two classes has about 100 bytes a node.
LEAST_BYTES = 1 << 28

# How much longer than the file its members may be beyond that. Trees unpack to 2 to 20 times
# their size, those of hundreds of classes to more; zeros to 1,000 times theirs.
MOST_TIMES = 50

# The same for a text, of which every three bytes can become an object of 60.
LEAST_TEXT_BYTES = 1 << 22
MOST_TEXT_TIMES = 20

# Bytes that are decompressed at a time.
CHUNK = 1 << 20


class RefusedError(InputError):
    """A file that is whole, for all one can see, and is not read: the message says all."""


class Members:
    """The members of a zip archive.

    Parameters
    ----------
    archive : zipfile.ZipFile
    path : Path
        Its file.
    max_bytes : int or None
        What all members together, and each text, may unpack to; None for the bounds above.

    Raises
    ------
    RefusedError
        The members claim to unpack to more.
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
        """The whole member.

        Raises
        ------
        RefusedError
            It claims to be far longer than what is stored of it.
        """
        info = self._info(name)
        most = max(LEAST_TEXT_BYTES, MOST_TEXT_TIMES * info.compress_size)
        if info.file_size > (most if self.max_bytes is None else self.max_bytes):
            raise RefusedError(
                f"{self.path}: {name} unpacks to {info.file_size:,} bytes, but {most:,} are "
                "allowed. If you trust the file, pass max_bytes to load_model."
            )
        with self.archive.open(info) as stream:
            return _read(stream, info.file_size, name).tobytes()

    def array(self, name: str, member: str, dtype: type[np.generic], n_dimensions: int) -> NDArray:
        """The array in a member of NumPy's format.

        Parameters
        ----------
        name : str
            What errors call it.
        member : str
        dtype : NumPy type, in any byte order
        n_dimensions : int

        Raises
        ------
        ValueError
            The member holds another array, or none, or is not as long as the array.
        """
        info = self._info(member)
        with self.archive.open(info) as stream:
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

    def _info(self, name: str) -> zipfile.ZipInfo:
        if name not in self:
            raise InputError(f"it holds no {name}.")
        info = self.archive.getinfo(name)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{name} is compressed by a method that model files do not use.")
        return info


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
    at = 0
    while at < size:
        chunk = np.frombuffer(stream.read(min(CHUNK, size - at)), np.uint8)
        if chunk.size == 0:
            raise InputError(f"{name} ends after {at:,} of {size:,} bytes.")
        out[at : at + chunk.size] = chunk
        at += chunk.size
    if stream.read(1):
        raise InputError(f"{name} goes on after {size:,} bytes.")
    return out
