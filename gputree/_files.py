"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replaced_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the name `path` only once it is complete.

    Parameters
    ----------
    path : str or path-like

    Yields
    ------
    binary file
        A new file beside `path`. It replaces `path` when the block ends, and is
        removed when the block raises: readers see the old file or the new one.
    """
    path = Path(os.fspath(path))
    require_destination(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def require_destination(path: Path) -> None:
    """Raise OSError unless a file of the name `path` can be made or replaced."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; the output must be a file.")
    if path.exists() and not path.is_file():  # /dev/null, say: replacing it would remove it
        raise FileExistsError(f"{path} is not a regular file; the output would replace it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no directory {path.parent} to write {path.name} to.")
