"""What the parameter `device` amounts to on this machine."""

from __future__ import annotations

import sys

from gputree._warnings import warn

# Differences that a warning quotes.
MOST_QUOTED = 2


def resolve_device(device: str, verbose: bool = False) -> str:
    """The device that a tree is grown on: "cpu" or "cuda".

    Parameters
    ----------
    device : "auto", "cpu" or "cuda"
        "cuda" is always used. "auto" is a CUDA device where nothing is missing and its check, run
        when the device is first met, found the same trees there as on the CPU; else the CPU.
    verbose : bool
        Say on standard error what "auto" amounts to, and why, where there may be a device.

    Raises
    ------
    ImportError
        For "cuda" where CuPy or NVRTC is not installed; names the extra that installs it.
    RuntimeError
        For "cuda" where there is no driver, no CUDA device, or too old a one.

    Warns
    -----
    RuntimeWarning
        For "auto", where the check of the device failed.
    """
    if device == "cpu":
        return device
    from gputree.backends.cuda import machine

    problem = machine.missing()
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
    """The current CUDA device if its check passed."""
    from gputree.backends.cuda import machine
    from gputree.check import what_differs  # here, for it grows trees with the estimators

    name = machine.identity().device
    differences = what_differs()
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
