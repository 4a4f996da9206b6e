"""Trust in the current CUDA device, by the recorded result of its check, or by a new check."""

from __future__ import annotations

import sys
import threading

from gputree.backends.cuda import machine
from gputree.check import record
from gputree.check.child import check_apart

# Threads that fit at once check once.
_checking = threading.Lock()


def what_differs() -> list[str]:
    """Return the differences on the current CUDA device, which must be usable; none is good.

    A device that was not checked before is checked now, in a child process, and a line on
    standard error says so.
    """
    identity = machine.identity()
    with _checking:
        found = record.find(identity)
        if found is None:
            _say(
                f"checking the CUDA device {identity.device} against the CPU, once on this "
                "machine: its kernels are compiled first"
            )
            found = check_apart(identity)
    return found


def _say(line: str) -> None:
    if sys.stderr is not None:
        print(f"gputree: {line}", file=sys.stderr, flush=True)
