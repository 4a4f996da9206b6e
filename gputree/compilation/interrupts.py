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


class _Recorder:
    """Handler that records interrupts for the handler of the program."""

    def __init__(self, handler: Callable[..., object]) -> None:
        self.handler = handler
        self.events: list[tuple] = []

    def __call__(self, *event: object) -> None:
        self.events.append(event)

    def handle(self) -> None:
        """Call the handler of the program with the interrupts that arrived."""
        while self.events:
            self.handler(*self.events.pop())


@contextmanager
def deferred() -> Iterator[None]:
    """Defer interrupts of the main thread within the block, to the end of the outermost one."""
    handler = signal.getsignal(signal.SIGINT)
    # SIG_DFL and SIG_IGN are not for Python to run.
    if not _is_main() or not callable(handler) or isinstance(handler, _Recorder):
        yield
        return
    recorder = _Recorder(handler)
    signal.signal(signal.SIGINT, recorder)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        recorder.handle()


def pause(seconds: float) -> None:
    """Sleep while another process compiles, then handle a recorded interrupt."""
    time.sleep(seconds)
    handler = signal.getsignal(signal.SIGINT)
    if _is_main() and isinstance(handler, _Recorder):
        handler.handle()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()
