"""Ctrl-C while a kernel is compiled or loaded.

A signal's handler runs between any two instructions of Python, and those of the main thread
that LLVM calls back cannot pass an exception on: an interrupt that arrived there was lost, and
the program ran on. So an interrupt is noted while numba is at work, and taken where an
exception leaves nothing behind: before the next pass of the compiler, or at the end.

    main thread    handler notes       before a pass: the handler that was there before
    pool thread    `abandon` notes     before a pass: KeyboardInterrupt
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from gputree.compilation import waits

PASS = "numba:run_pass"

_OWN_LOCK = threading.RLock()

# Seconds between looks for an interrupt while another thread compiles.
PATIENCE = 0.05


def _lock() -> Any:
    """Numba's own, so that whoever holds the one holds the other."""
    from numba.core.compiler_lock import global_compiler_lock

    return getattr(global_compiler_lock, "_lock", None) or _OWN_LOCK


class Compilation:
    """One compilation of this thread, and the interrupt that came while it was under way."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.handler: Any = None  # of SIGINT, where this thread is the one that gets signals
        self.pending: Callable[[], object] | None = None

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note interrupts instead of having them handled."""
        handler = signal.getsignal(signal.SIGINT)
        main = threading.current_thread() is threading.main_thread()
        noted = main and callable(handler)  # SIG_DFL and SIG_IGN are not for Python to run
        self.handler = handler
        try:
            if noted:
                signal.signal(signal.SIGINT, self._note)
            _under_way[self.thread] = self
            yield
        finally:
            _under_way.pop(self.thread, None)
            if noted:
                signal.signal(signal.SIGINT, handler)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until no other thread compiles, where numba would wait and not be left."""
        lock = _lock()
        while not lock.acquire(timeout=PATIENCE):
            self.take()
        try:
            yield
        finally:
            lock.release()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.pending = partial(self.handler, number, frame)

    def take(self) -> None:
        """Do what the interrupt asks for, if one came."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending()

    def notify(self, event: Any) -> None:
        """A pass of the compiler begins or ends, in whichever thread; a listener of numba's."""
        if event.is_start and threading.get_ident() == self.thread:
            self.take()


_under_way: dict[int, Compilation] = {}  # by thread


@contextmanager
def deferred() -> Iterator[None]:
    """Within the block, interrupts of this thread wait until numba can be left."""
    from numba.core import event

    for kind in (Compilation, waits.Watch):
        event.Listener.register(kind)  # in name, so that numba need not be imported before
    if threading.get_ident() in _under_way:  # a kernel that is compiled for another
        yield
        return
    compilation = Compilation()
    try:
        with (
            compilation.noting(),
            compilation.turn(),
            event.install_listener(waits.COMPILE, waits.Watch()),
            event.install_listener(PASS, compilation),
        ):
            yield
    finally:
        compilation.take()


def pause(seconds: float) -> None:
    """Sleep while another process compiles; an interrupt that comes meanwhile is taken."""
    time.sleep(seconds)
    compilation = _under_way.get(threading.get_ident())
    if compilation is not None:
        compilation.take()


def abandon(threads: Iterable[int]) -> None:
    """End the compilations of these threads: nobody waits for them any longer."""
    for thread in threads:
        compilation = _under_way.get(thread)
        if compilation is not None:
            compilation.pending = _raise


def _raise() -> None:
    raise KeyboardInterrupt
