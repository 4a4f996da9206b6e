"""Folders of cached kernels.

    NUMBA_CACHE_DIR         if set: there, and otherwise only in the temporary folder
    next to the code        as for Python's bytecode
    the user's cache        where the folder of the code is not writable
    a temporary folder      where the user has no cache either; deleted eventually

Kernels are searched for in all of them and written to the first writable one, so an image with
kernels next to the code is used unchanged, on a read-only file system.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from typing import NamedTuple

_BESIDE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__pycache__")


class Folder(NamedTuple):
    """A folder for kernels.

    The code in a private one is run: the folder must belong to the user, and no other user may be
    able to write there.
    """

    path: str
    private: bool
    lasts: bool  # not cleaned up by the system


def folders() -> list[Folder]:
    """Return the folders of kernels, in the order in which they are searched and written."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        place = os.path.join(chosen, _name())
        return [Folder(place, private=False, lasts=True), *_temporary()]
    installed = Folder(_BESIDE, private=False, lasts=True)
    user = user_cache()
    if user is None:
        return [installed, *_temporary()]
    return [installed, Folder(user, private=True, lasts=True), *_temporary()]


def _temporary() -> list[Folder]:
    """Folder of the user among the temporary ones, if there is a place for these."""
    try:
        place = tempfile.gettempdir()
    except FileNotFoundError:
        return []
    return [Folder(os.path.join(place, f"gputree-{_user()}"), private=True, lasts=False)]


def user_cache() -> str | None:
    """The user's cache folder for gputree; None without a home folder."""
    from platformdirs import user_cache_dir

    path = user_cache_dir("gputree", appauthor=False)
    return path if os.path.isabs(path) else None


def file_of(folder: Folder, name: str) -> str:
    """Path of the file `name` in a folder.

    Folders outside of the package have a subfolder for each place that gputree is installed in, so
    that a version never deletes the kernels of another.
    """
    return os.path.join(folder.path, _name() if folder.private else "", name)


def in_use() -> Folder | None:
    """Return the folder for a kernel compiled now, by the modes of files; None if there is none."""
    for folder in folders():
        place = folder.path
        while not os.path.exists(place) and place != os.path.dirname(place):
            place = os.path.dirname(place)
        safe = place != folder.path or is_safe(folder)
        if safe and os.access(place, os.W_OK | os.X_OK):
            return folder
    return None


def is_safe(folder: Folder, file: int | None = None) -> bool:
    """Return True if only the user, or the installer of the package, can have written to a folder.

    The same for a file that was opened there: the folder may have been replaced before.
    """
    if not folder.private or not hasattr(os, "geteuid"):
        return True
    try:
        status = os.lstat(folder.path)
    except OSError:
        return False
    others = stat.S_IWGRP | stat.S_IWOTH
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    if file is not None:
        is_private = is_private and os.fstat(file).st_uid == os.geteuid()
    return is_private and not status.st_mode & others


def make(folder: Folder) -> None:
    """Make the folder if it does not exist; OSError if that fails, or it is another user's."""
    os.makedirs(folder.path, mode=0o700 if folder.private else 0o777, exist_ok=True)
    if not is_safe(folder):
        raise PermissionError(f"{folder.path} can be written by others")
    os.makedirs(os.path.dirname(file_of(folder, "any")), exist_ok=True)


def _name() -> str:
    """Name of this installation's subfolder; other installations have others."""
    return "gputree-" + hashlib.sha256(_BESIDE.encode()).hexdigest()[:16]


def _user() -> str:
    return str(os.geteuid()) if hasattr(os, "geteuid") else os.environ.get("USERNAME", "user")
