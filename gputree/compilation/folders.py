"""Folders of cached kernels, and locks with which one process compiles a kernel for all.

    NUMBA_CACHE_DIR         if set: only there
    next to the code        as for Python's bytecode
    the user's cache        where the folder of the code is not writable

Kernels are searched for in all of them and written to the first writable one, so an image with
kernels next to the code is used unchanged, on a read-only file system.

    first process      lock, search, compile, store, unlock
    second             lock ................ waits ........ search, found, unlock

Each kernel has a byte of one file in the folder, and its lock ends with the process that has it.
Where files cannot be locked, each process compiles.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from functools import cache

from gputree.compilation import interrupts, waits

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_NEXT_TO_CODE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__pycache__"
)
# Subfolder of this installation in folders outside of the package: no version deletes the kernels
# of another.
_INSTALLATION = "gputree-" + hashlib.sha256(_NEXT_TO_CODE.encode()).hexdigest()[:16]

LOCKS = "turns"  # the file whose bytes are locked

# Seconds after which a process stops waiting for one that may be stopped: longer than a
# compilation.
PATIENCE = 60.0

# Seconds between attempts.
PAUSE = 0.05


def folders() -> list[str]:
    """Return the folders of kernels, in the order in which they are searched and written."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [os.path.join(chosen, _INSTALLATION)]
    user = user_cache()
    return [_NEXT_TO_CODE, *([os.path.join(user, _INSTALLATION)] if user else [])]


def user_cache() -> str | None:
    """The user's cache folder for gputree; None without a home folder."""
    from platformdirs import user_cache_dir

    path = user_cache_dir("gputree", appauthor=False)
    return path if os.path.isabs(path) else None


def in_use() -> str | None:
    """Return the folder for a kernel compiled now, by the modes of files; None if there is none."""
    for folder in folders():
        place = folder
        while not os.path.exists(place) and place != os.path.dirname(place):
            place = os.path.dirname(place)
        if os.access(place, os.W_OK | os.X_OK):
            return folder
    return None


def lock(kernel: str) -> bool:
    """Wait until no other process compiles `kernel`; False if files cannot be locked."""
    try:
        if _try_lock(kernel):
            return True
        with waits.timed():
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                interrupts.pause(PAUSE)
                if _try_lock(kernel):
                    return True
    except OSError:  # no folder, or a file system without locks
        pass
    return False


def unlock(kernel: str) -> None:
    """Unlock `kernel` for other processes."""
    with contextlib.suppress(OSError):
        fcntl.lockf(_open_locks(in_use()), fcntl.LOCK_UN, 1, _byte(kernel))


def _try_lock(kernel: str) -> bool:
    """Return False while another process has the lock of `kernel`."""
    file = _open_locks(in_use())
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(kernel))
    except (BlockingIOError, PermissionError):
        return False
    return True


@cache
def _open_locks(folder: str | None) -> int:
    """Open the file of locks for good: closing it would release all of them."""
    if fcntl is None or folder is None:
        raise FileNotFoundError
    os.makedirs(folder, exist_ok=True)
    return os.open(os.path.join(folder, LOCKS), os.O_RDWR | os.O_CREAT, 0o666)


def _byte(kernel: str) -> int:
    """Byte of a kernel; two kernels may share one, and then exclude each other."""
    return int.from_bytes(hashlib.sha256(kernel.encode()).digest()[:4])
