"""Processes that need the same kernel at the same time: one compiles, the others wait.

    first      lock, look again, compile, keep, unlock
    second     lock ......... waits ......... look again, found, unlock

Each kernel has a byte of one file in the folder of kernels, and its lock ends with the process that
has it. Where files cannot be locked, each process compiles.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from typing import Any

from gputree.compilation import folders, interrupts, waits

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

FILE = "turns"

# Seconds after which a process stops waiting for one that may be stopped: longer than a
# compilation.
PATIENCE = 60.0

# Seconds between attempts.
PAUSE = 0.05

# Open as long as the process runs: closing such a file releases all of its locks.
_files: dict[str, int] = {}


def take(kernel: str) -> bool:
    """Wait until no other process compiles `kernel`; False if files cannot be locked."""
    file = _open()
    if file is None:
        return False
    place = _place(kernel)
    if (taken := _try(file, place)) is not None:
        return taken
    with waits.elsewhere():
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            interrupts.pause(PAUSE)
            if (taken := _try(file, place)) is not None:
                return taken
    return False


def give_back(kernel: str) -> None:
    """Unlock `kernel` for other processes."""
    file = _open()
    if file is not None:
        with contextlib.suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_UN, 1, _place(kernel))


def _try(file: int, place: int) -> bool | None:
    """Try to lock: True if this process has the lock, None while another one has it, else False."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):
        return None
    except OSError:  # a file system without locks
        return False
    return True


def _place(kernel: str) -> int:
    """Byte of a kernel; two kernels may share one, and then exclude each other."""
    return int.from_bytes(hashlib.sha256(kernel.encode()).digest()[:4])


def _open() -> int | None:
    """Open the file of locks in the folder of kernels compiled now; None if there is none."""
    if fcntl is None:
        return None
    for folder in folders.folders():
        path = folders.file_of(folder, FILE)
        if path in _files:
            return _files[path]
        with contextlib.suppress(OSError):
            folders.make(folder)
            flags: Any = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            _files[path] = os.open(path, flags, 0o666)
            return _files[path]
    return None
