"""Current device and stream: work on a table runs on the device that has it.

Kernels, functions of CuPy, streams and allocations belong to the current device, so all work on a
table enters its device. The current stream is per thread: a growth enters the stream of the thread
that began it in whichever thread its methods are called.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from gputree.backends.cuda.kernels import cupy

P = ParamSpec("P")
R = TypeVar("R")


class OnDevice(Protocol):
    """An object whose arrays are on one device."""

    device: Any  # CuPy's
    stream: Any  # CuPy's, of that device; None for the current one


Self = TypeVar("Self", bound=OnDevice)


def device_of(values: Any) -> Any:
    """Device of a CuPy array, and the current one for anything else; to be entered by `with`."""
    xp = cupy()
    return values.device if isinstance(values, xp.ndarray) else xp.cuda.Device()


def current_stream(device: Any) -> Any:
    """The stream of a device that is current in this thread."""
    return cupy().cuda.get_current_stream(int(device))


def on_own_device(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R]:
    """Decorate a method to run with the device and stream of its object as the current ones."""

    @wraps(method)
    def call(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.device, nullcontext() if self.stream is None else self.stream:
            return method(self, *args, **kwargs)

    return call
