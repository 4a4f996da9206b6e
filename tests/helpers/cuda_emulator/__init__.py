"""CUDA kernels on a machine without a GPU: compiled by g++, run thread by thread on the CPU.

Or compiled by NVRTC, and its PTX run: the argument `ptx` selects that.

What it cannot show: memory order, speed, and CuPy's own sorts and scans. Those need a device.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .compiler import ptx_unavailable, unavailable
from .library import (
    DEFAULT_CARD,
    KINDS,
    Card,
    Kernel,
    Library,
    Schedule,
    accesses,
    launch_devices,
    launches,
)
from .memory import LaunchError, memory
from .stand_in import make_module, ndarray, transfers

__all__ = [
    "KINDS",
    "Card",
    "Kernel",
    "LaunchError",
    "Library",
    "Schedule",
    "accesses",
    "emulated_cuda",
    "launch_devices",
    "launches",
    "memory",
    "ndarray",
    "ptx_unavailable",
    "transfers",
    "unavailable",
]

ORDERS = {"ascending": 0, "descending": 1, "random": 2}


@contextmanager
def emulated_cuda(
    order: str = "ascending",
    check: bool = False,
    seed: int = 0,
    replace: dict[str, str] | None = None,
    fill: int = 0xCD,
    devices: int = 1,
    believed: bool = True,
    ptx: dict[str, str] | None = None,
    card: Card | Sequence[Card] = DEFAULT_CARD,
) -> Iterator[Any]:
    """Run ``device="cuda"`` on the emulator; yields the stand-in for the module cupy.

    Parameters
    ----------
    order : "ascending", "descending" or "random"
        In which blocks, warps and lanes run. In random order blocks run side by side.
    check : bool
        Report races, accesses out of bounds, undefined operations and reads of memory that
        nothing has written (slow).
    seed : int
        Of the random order.
    replace : dict of str to str, optional
        Text of the sources to change: seeded bugs that tests must catch. What is compiled
        for it, changed or not, is not optimised: it runs once.
    fill : int
        Every byte of fresh memory, global and shared.
    devices : int
        Device 0 is current. Kernels, streams and arrays of one are errors on another.
    believed : bool
        ``device="auto"`` takes emulated devices without checking them.
    ptx : dict of str to str, optional
        Run what NVRTC makes of the kernels, with these patterns changed in it, instead of what
        g++ makes of them: ``{}`` where the environment has GPUTREE_EMULATE=ptx.
    card : Card, or sequence of Card
        Sizes of every device, or of each.
    """
    from gputree.backends.cuda import kernels, machine, workspace
    from gputree.check import comparison

    if ptx is None and os.environ.get("GPUTREE_EMULATE") == "ptx":
        ptx = {}
    missing = object()
    before = Kernel.schedule
    cards = [card] if isinstance(card, Card) else card
    module = make_module(check, replace, fill, devices, ptx, cards)
    previous = sys.modules.get("cupy", missing)
    sys.modules["cupy"] = module
    Kernel.schedule = Schedule(ORDERS[order], seed, fill)
    _forget(kernels, workspace)
    identities = []
    for number in range(devices):
        with module.cuda.Device(number):
            identities.append(machine.identity())
    if believed:
        for identity in identities:
            comparison.remember(identity, [])
    try:
        yield module
    finally:
        for identity in identities:
            comparison._known.pop(identity, None)
        _forget(kernels, workspace)
        Kernel.schedule = before
        if previous is missing:
            del sys.modules["cupy"]
        else:
            sys.modules["cupy"] = previous


def _forget(kernels: Any, workspace: Any) -> None:
    """Kernels and devices of one module `cupy` are none of the next."""
    workspace._attribute.cache_clear()
    kernels.load.cache_clear()
    kernels.function.cache_clear()
