"""Ctrl-C while a kernel is compiled or loaded.

A signal's handler runs between any two Python instructions of the main thread, also in functions
that LLVM calls back, which cannot raise: an interrupt that arrived there would be lost. So it is
recorded while numba compiles, and handled after that. Threads of a pool receive no signals: they
complete the kernel that they compile.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gputree.compilation import waits


class _UnderWay:
    """The compilation of this process: only one runs at a time."""

    exists = False


# Handlers to call with the interrupts that arrived.
_pending: list[Callable[[], object]] = []


@contextmanager
def deferred() -> Iterator[None]:
    """Defer interrupts within the block. One thread is in it at a time."""
    from numba.core import event
    from numba.core.compiler_lock import global_compiler_lock

    event.Listener.register(waits.Watch)  # by name, so that numba need not be imported before
    with global_compiler_lock:
        if _UnderWay.exists:  # a kernel that is compiled for another
            yield
            return
        _UnderWay.exists = True
        try:
            with _recorded(), event.install_listener(waits.COMPILE, waits.Watch()):
                yield
        finally:
            _UnderWay.exists = False
            take()


@contextmanager
def _recorded() -> Iterator[None]:
    """Record interrupts of the main thread instead of handling them."""
    handler = signal.getsignal(signal.SIGINT)
    if not _is_main() or not callable(handler):  # SIG_DFL and SIG_IGN are not for Python to run
        yield
        return
    signal.signal(signal.SIGINT, lambda *event: _pending.append(lambda: handler(*event)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def pause(seconds: float) -> None:
    """Sleep while another process compiles, then handle a recorded interrupt."""
    time.sleep(seconds)
    take()


def take() -> None:
    """Handle the recorded interrupts, if there are any; signals are for the main thread."""
    while _is_main() and _pending:
        _pending.pop()()
