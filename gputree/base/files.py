"""Files that are written whole or not at all."""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from gputree.errors import InputTypeError

try:
    import fcntl
except ImportError:  # of systems other than POSIX
    fcntl = None  # type: ignore[assignment]

FilePath = str | os.PathLike[str]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of writing, which name no file


@contextmanager
def replaced_file(path: FilePath) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the name `path` only once it is complete.

    A new file next to `path` replaces it when the block ends, and is removed when the block raises:
    readers see the old file or the new one.
    """
    path = as_path(path, "The name of a file to write")
    require_destination(path)
    _remove_left(path)
    temporary, descriptor = _locked(path)
    try:
        with open(temporary, "r+b") as file:
            yield file
        os.replace(temporary, path)
    except OSError as error:
        if (
            str(error.filename) == str(temporary) or error.errno in _FULL
        ):  # not the name that was given
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        with suppress(OSError):
            temporary.unlink()
        if descriptor is not None:
            os.close(descriptor)


def _locked(path: Path) -> tuple[Path, int | None]:
    """Create a file next to `path`, locked until it is closed or the process ends; return its lock.

    Where there are no locks (Windows) a file that is open cannot be removed, which serves as well.
    """
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(path)) from None
        if fcntl is None:
            os.close(descriptor)
            return temporary, None
        with suppress(OSError):  # of file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.exists(temporary):  # else another save took it for one that was left
            return temporary, descriptor
        os.close(descriptor)


def _remove_left(path: Path) -> None:
    """Remove temporary files that killed processes have left next to `path`."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}")
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if not pattern.fullmatch(entry.name):
                continue
            with suppress(OSError), open(entry.path, "rb") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is written
                    os.unlink(entry.path)
            if fcntl is None:
                with suppress(OSError):
                    os.unlink(entry.path)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add `path` to errors of the system that name no file, such as those of reading."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def as_path(path: Any, what: str) -> Path:
    """The path, or a TypeError that says `what` it should be."""
    try:
        return Path(os.fspath(path))
    except TypeError:
        kind = type(path).__name__
        raise InputTypeError(f"{what} must be a str or path-like, got {kind}.") from None


def require_file(path: FilePath, kind: str) -> Path:
    """The path of a file that is there; OSError if it is not, TypeError if it is no path."""
    path = as_path(path, f"The name of a {kind} file")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, and no {kind} file.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no {kind} file {path}.")
    return path


def require_destination(path: Path) -> None:
    """Raise OSError unless a file of the name `path` can be made or replaced."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; the output must be a file.")
    if path.exists() and not path.is_file():  # /dev/null, say: replacing it would remove it
        raise FileExistsError(f"{path} is not a regular file; the output would replace it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no directory {path.parent} to write {path.name} to.")
