"""Resolution of the parameter `device` on this machine."""

from __future__ import annotations

import sys

from gputree.base.lazy import provided
from gputree.base.warnings import warn

# Differences that a warning quotes.
MOST_QUOTED = 2


def resolve_device(device: str, verbose: bool = False) -> str:
    """Return the device that a tree is grown on: "cpu" or "cuda".

    "cuda" is always used; where it cannot be, errors are as for `gputree.backends.get_backend`.
    "auto" is a CUDA device if nothing is missing and its check, run when the device is first used,
    found the same trees there as on the CPU; else the CPU, with a RuntimeWarning if the check
    failed. If `verbose`, the choice of "auto" and its reason are written to standard error where
    there may be a device.
    """
    if device == "cpu":
        return device
    from gputree.backends.cuda import machine

    # before the check nothing runs on a device in this process, not even an empty kernel
    problem = machine.missing(compiles=device == "cuda")
    if device == "cuda":
        if problem is not None:
            raise problem
        return device
    if problem is not None:
        if verbose and machine.has_driver():
            _say(f"grows on the CPU: {problem}")
        return "cpu"
    return _checked(verbose)


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
