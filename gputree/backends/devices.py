"""Resolution of the parameter `device` on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from gputree.base.lazy import provided
from gputree.base.memory import OutOfMemory
from gputree.base.warnings import warn

T = TypeVar("T")

# Differences that a warning quotes.
MOST_QUOTED = 2


def resolve_device(device: str, verbose: bool = False) -> str:
    """Return the device that a tree is grown on: "cpu", "cuda" or one by its number, as "cuda:1".

    "cuda" is always used, as the current device, or that of a table on one; and so is one with a
    number. Where it cannot be, errors are as for `gputree.backends.get_backend`.
    "auto" is a CUDA device if nothing is missing and its check, run when the device is first used,
    found the same trees there as on the CPU; else the CPU, with a RuntimeWarning if the check
    failed. If `verbose`, the choice of "auto" and its reason are written to standard error where
    there may be a device.
    """
    if device == "cpu":
        return device
    from gputree.backends.cuda import machine

    # before the check nothing runs on a device in this process, not even an empty kernel
    problem = machine.missing(device, compiles=device != "auto")
    if device != "auto":
        if problem is not None:
            raise problem
        return device
    if problem is not None:
        if verbose and machine.has_driver():
            _say(f"grows on the CPU: {problem}")
        return "cpu"
    return _checked(verbose)


def other_devices(device: str, used: int, verbose: bool = False) -> list[str]:
    """Names of the visible CUDA devices other than number `used`, as "cuda:1", that may grow trees.

    Nothing is missing on them, and where the parameter `device` is "auto" they passed the check.
    """
    from gputree.backends.cuda import machine

    found = []
    for name in (f"cuda:{j}" for j in range(machine.device_count()) if j != used):
        if machine.missing(name, compiles=device != "auto") is None:
            with machine.entered(name):
                if device != "auto" or _checked(verbose) != "cpu":
                    found.append(name)
    return found


def within_memory(
    device: str, chosen: str, grow: Callable[[str], T], leave: Callable[[str], object]
) -> T:
    """Call `grow` with the device `chosen` for the parameter `device`, or with the CPU.

    The CPU takes the place of a CUDA device that "auto" has chosen and whose memory does not
    suffice, with a RuntimeWarning that says what is lacking. `leave` is called with that device,
    to release what lies there, and `grow` again from the start. A device that has a number in
    `chosen` is the current one meanwhile.

    Raises
    ------
    MemoryError
        With "cuda", if its memory does not suffice.
    """
    if chosen == "cpu":
        return grow(chosen)
    from gputree.backends.cuda import machine, memory

    with machine.entered(chosen):
        try:
            return grow(chosen)
        except MemoryError as error:
            reason = memory.refused_allocation(error)
            if device != "auto":
                if reason is None:
                    raise
                # no variable: its traceback would keep what these frames have allocated
                raise OutOfMemory(reason, memory.INSTEAD) from error
            reason = reason or getattr(error, "reason", str(error))
        leave(chosen)
        memory.release()  # after the error, whose frames have what was allocated
    warn(f"device='auto' goes on with the CPU: {reason}", RuntimeWarning)
    return grow("cpu")


def _checked(verbose: bool) -> str:
    """Return the current CUDA device if its check passed."""
    from gputree.backends.cuda import machine

    name = machine.identity().device
    differences = provided("what_differs")()
    if differences:
        more = len(differences) - MOST_QUOTED
        quoted = "; ".join(differences[:MOST_QUOTED]) + (f"; and {more} more" if more > 0 else "")
        warn(
            f"device='auto' grows on the CPU: the check of the CUDA device {name} failed "
            f"({quoted}). `gputree check` checks it again.",
            RuntimeWarning,
        )
        return "cpu"
    if verbose:
        _say(f"grows on the CUDA device {name}")
    return "cuda"


def _say(line: str) -> None:
    if sys.stderr is not None:
        print(f"device='auto' {line}", file=sys.stderr)
