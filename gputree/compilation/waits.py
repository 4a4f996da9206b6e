"""Messages about compilation while it lasts, and separate counting of its time.

with waiting(tell=print) as wait:
    tree.fit(X, y)                  "compiling kernels ..." once, if any is compiled
seconds spent, less wait.seconds    the time that the tree took
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gputree.compilation import tiers

MESSAGE = "compiling kernels for this kind of table, once on this machine"

# Seconds of compilation for which a process logs one warning, unless there is a callback `tell`.
LONG = 2.0
LONG_MESSAGE = (
    "gputree compiles kernels for this kind of table, once on this machine; then the fit goes on. "
    "`gputree warmup` does so in advance; logging.getLogger('gputree').setLevel('ERROR') hides "
    "this message."
)

_log = logging.getLogger("gputree")


class Wait:
    """Kernels compiled during a piece of work.

    Attributes
    ----------
    seconds : float
        Compilation time of kernels.
    kernels : int
        Their number.
    """

    def __init__(self, tell: Callable[[str], object] | None = None) -> None:
        self.seconds = 0.0
        self.kernels = 0
        self.tell = tell
        self.reported = False

    def announce(self) -> None:
        """Announce once that kernels are compiled."""
        if not self.reported:
            self.reported = True
            _log.info(MESSAGE)
            if self.tell is not None:
                self.tell(MESSAGE)


# First the process's wait, then those of nested `waiting` blocks; the outermost announces.
_waits = [Wait()]
_warned = False  # of long compilation, in this process


@contextmanager
def waiting(tell: Callable[[str], object] | None = None) -> Iterator[Wait]:
    """Call `tell` once if kernels are compiled within the block, and count them.

    The logger "gputree" also has messages: of the first kernel (INFO), and of each (DEBUG); and
    once in a process, if there is no `tell`, of compiling for more than `LONG` seconds (WARNING,
    which Python writes to standard error where no handler is set).
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
    global _warned
    wait = _outermost()
    if wait.tell is None and not _warned and wait.seconds + coming >= LONG:
        _warned = True
        _log.warning(LONG_MESSAGE)


def nowhere(message: str) -> None:
    """Ignore the message, as a `tell`."""


def on_screen(message: str) -> None:
    """Write a line to standard error, above a progress bar where there is one."""
    import sys

    from tqdm import tqdm

    tqdm.write(message, file=sys.stderr)
