"""Zip archives of texts and arrays, read within bounds: what a file claims is checked first.

Nothing is allocated for a claim alone: an array is as long as its member is, all members
together are no longer than the file may unpack to, and no more is decompressed than that.

Values of headers are JSON; types that it lacks are objects with one key: see README.md.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from gputree.base.files import FilePath, naming, replaced_file, require_file
from gputree.errors import InputError, InputTypeError, warn

if TYPE_CHECKING:
    from gputree.pruning import Pruner

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


ARRAY_KINDS = "biufUO"  # numbers, booleans, strings; objects hold strings

# Bytes of all text arrays in the header, whose dtypes may need much memory for little text;
# other values take no more than a few bytes for each of their characters.
_MOST_TEXT_BYTES = 1 << 28


def encode(value: Any, name: str) -> Any:
    """`value` as JSON holds it; `name` is for messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, PurePath):  # of the machine that wrote it
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [encode(item, name) for item in value]
    if isinstance(value, tuple):
        return {"tuple": encode(list(value), name)}
    if isinstance(value, (set, frozenset)):  # in an order that is the same each time
        return {"set": encode(sorted(value, key=str), name)}
    if isinstance(value, dict):
        return {"dict": [encode(list(item), name) for item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        return {"array": encode(value.tolist(), name), "dtype": value.dtype.str}
    from gputree.pruning import PRUNERS

    short = next((short for short, kind in PRUNERS.items() if kind is type(value)), None)
    if short is not None:
        return {"pruner": encode([short, value.get_params(deep=False)], name)}
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        warn(f"The state of {name} is not stored; None is.")
        return None
    kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
    raise InputTypeError(f"A file cannot represent {name} of type {kind}.")


def decode(value: Any) -> Any:
    """The value that `encode` was given."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return _decode_array(value["array"], value["dtype"])
    if len(value) == 1 and (tag := next(iter(value))) in _DECODERS:
        return _DECODERS[tag](decode(value[tag]))
    raise InputError(f"a value has the unknown keys {sorted(value)}.")


def _decode_array(values: Any, dtype: str) -> np.ndarray:
    kind = _array_kind(dtype)
    if not isinstance(values, list):
        raise InputError(f"an array must be a list, got {type(values).__name__}.")
    with np.errstate(over="raise"):  # a FloatingPointError, in `rebuild` an error of the file
        array = np.array(decode(values), dtype=kind)
    if array.dtype.kind == "O" and not all(isinstance(v, (str, int, float)) for v in array.flat):
        raise InputError("an array holds something that is neither text nor a number.")
    return array


def _array_kind(dtype: Any) -> np.dtype:
    """The dtype of an array, if it is one that arrays of a file may have."""
    kind = np.dtype(dtype) if isinstance(dtype, str) else None
    if kind is None or kind.kind not in ARRAY_KINDS or kind.itemsize == 0:  # text of any length
        raise InputError(f"an array has the unknown dtype {dtype!r}.")
    return kind


def check_text_bytes(header: Any) -> None:
    """Raise ValueError where the arrays of text of a header would take too much memory."""
    if (taken := _text_bytes(header)) > _MOST_TEXT_BYTES:
        raise InputError(
            f"its arrays of text take {taken:,} bytes, but {_MOST_TEXT_BYTES:,} are allowed."
        )


def _text_bytes(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_text_bytes, value))
    if not isinstance(value, dict):
        return 0
    if set(value) == {"array", "dtype"}:
        kind = _array_kind(value["dtype"])
        if kind.kind == "U":  # its values may be lists
            return kind.itemsize * np.array(value["array"], dtype=object).size
    return sum(map(_text_bytes, value.values()))


def _decode_pruner(description: list[Any]) -> Pruner:
    from gputree.pruning import PRUNERS

    short, params = description
    if short not in PRUNERS:
        raise InputError(f"pruning must be one of {sorted(PRUNERS)}, got {short!r}.")
    pruner = PRUNERS[short](**params)
    pruner._validate_params()
    return pruner


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "pruner": _decode_pruner,
}
