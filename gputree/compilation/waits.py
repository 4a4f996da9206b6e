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
from typing import Any

from gputree.compilation import tiers

MESSAGE = "compiling kernels for this kind of table, once on this machine"
COMPILE = "numba:compile"

# Seconds of compilation after which a process logs one warning, unless there is a callback `tell`.
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


class _Once:
    """State of a warning that is logged once in this process."""

    logged = False


# First the process's wait, then those of nested `waiting` blocks; the outermost announces.
_waits = [Wait()]


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
def elsewhere() -> Iterator[None]:
    """Count, within the block, compilation by another process of a kernel that is needed."""
    start = time.perf_counter()
    _outermost().announce()
    try:
        yield
    finally:
        for wait in _waits:
            wait.seconds += time.perf_counter() - start
        _warn_if_long(0.0)


def n_compiled() -> int:
    """Kernels that this process has compiled."""
    return _waits[0].kernels


def _outermost() -> Wait:
    return _waits[min(1, len(_waits) - 1)]


def _warn_if_long(under_way: float) -> None:
    """Log once that kernels are compiled, if that takes long and there is no `tell`."""
    wait = _outermost()
    if wait.tell is None and not _Once.logged and wait.seconds + under_way >= LONG:
        _Once.logged = True
        _log.warning(LONG_MESSAGE)


class Watch:
    """Count the compilation of one kernel, with all that it calls; a listener of numba's."""

    def __init__(self) -> None:
        self.depth = 0
        self.start = 0.0

    def notify(self, event: Any) -> None:
        """Handle an event: the compilation of the kernel, or of a callee, begins or ends."""
        if event.is_start:
            if self.depth == 0:
                self.start = time.perf_counter()
                _outermost().announce()
            self.depth += 1
            _warn_if_long(time.perf_counter() - self.start)
            return
        self.depth -= 1
        if self.depth == 0:
            seconds = time.perf_counter() - self.start
            for wait in _waits:
                wait.seconds += seconds
                wait.kernels += 1
            _warn_if_long(0.0)
            _log.debug("compiled %s in %.2f s", event.data["dispatcher"].__qualname__, seconds)


def nowhere(message: str) -> None:
    """Ignore the message, as a `tell`."""


def on_screen(message: str) -> None:
    """Write a line to standard error, above a progress bar where there is one."""
    import sys

    from tqdm import tqdm

    tqdm.write(message, file=sys.stderr)
