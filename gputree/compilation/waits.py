"""Messages about compilation while it lasts, its time, and interrupts (Ctrl-C) during it.

with waiting(tell=print) as wait:
    tree.fit(X, y)                  "compiling kernels ..." once, if any is compiled
seconds spent, less wait.seconds    the time that the tree took

A signal's handler runs between any two Python instructions of the main thread, also in functions
that LLVM calls back, which cannot raise: an interrupt that arrived there would be lost. So it is
recorded while numba compiles, and handled after that. Threads of a pool receive no signals: they
complete the kernel that they compile.
"""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gputree.compilation import tiers

MESSAGE = "compiling kernels for this kind of table, once on this machine"

# Seconds of compilation for which a wait logs one warning, unless there is a callback `tell`.
LONG = 2.0
LONG_MESSAGE = (
    "gputree compiles kernels for this kind of table, once on this machine; then the fit goes on. "
    "`gputree warmup` does so in advance; logging.getLogger('gputree').setLevel('ERROR') hides "
    "this message."
)

_log = logging.getLogger("gputree")


class Wait:
    """Kernels compiled during a piece of work: their number, and the seconds that it took."""

    def __init__(self, tell: Callable[[str], object] | None = None) -> None:
        self.seconds = 0.0
        self.kernels = 0
        self.tell = tell
        self.reported = False
        self.warned = False  # of long compilation; the process's wait, that any has

    def announce(self) -> None:
        """Announce once that kernels are compiled."""
        if not self.reported:
            self.reported = True
            _log.info(MESSAGE)
            if self.tell is not None:
                self.tell(MESSAGE)


# First the process's wait, then those of nested `waiting` blocks; the outermost announces.
_waits = [Wait()]


@contextmanager
def waiting(tell: Callable[[str], object] | None = None) -> Iterator[Wait]:
    """Call `tell` once if kernels are compiled within the block, and count them.

    The logger "gputree" also has messages: of the first kernel (INFO), and of each (DEBUG); and
    once, if there is no `tell`, of compiling for more than `LONG` seconds (WARNING, which Python
    writes to standard error where no handler is set).
    Compilations of other threads count as well, since all wait for them.
    """
    wait = Wait(tell)
    if len(_waits) == 1:
        tiers.begin_wait()
    _waits.append(wait)
    try:
        yield wait
    finally:
        _waits.remove(wait)


@contextmanager
def timed(kernel: str = "", expected: float = 0.0) -> Iterator[None]:
    """Count the compilation of a kernel within the block, which takes about `expected` seconds.

    Without a name, another process compiles it.
    """
    start = time.perf_counter()
    _outermost().announce()
    _warn_if_long(expected)
    try:
        yield
    finally:
        seconds = time.perf_counter() - start
        for wait in _waits:
            wait.seconds += seconds
            wait.kernels += bool(kernel)
        _warn_if_long(0.0)
        if kernel:
            _log.debug("compiled %s in %.2f s", kernel, seconds)


def n_compiled() -> int:
    """Kernels that this process has compiled."""
    return _waits[0].kernels


def _outermost() -> Wait:
    return _waits[min(1, len(_waits) - 1)]


def _warn_if_long(coming: float) -> None:
    """Log once that kernels are compiled, if that takes long and there is no `tell`."""
    wait = _outermost()
    if wait.tell is None and not wait.warned and wait.seconds + coming >= LONG:
        wait.warned = _waits[0].warned = True
        _log.warning(LONG_MESSAGE)


def nowhere(message: str) -> None:
    """Ignore the message, as a `tell`."""


def on_screen(message: str) -> None:
    """Write a line to standard error, above a progress bar where there is one."""
    import sys

    from tqdm import tqdm

    tqdm.write(message, file=sys.stderr)


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
