"""Which device works: the one that a table lies on, or else the current one.

Memory of one device is no memory of another: kernels, functions of CuPy, streams and what they
allocate belong to the device that is current, so all work on a table enters its device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from gputree.backends.cuda.kernels import cupy

P = ParamSpec("P")
R = TypeVar("R")


class OnDevice(Protocol):
    """What works on one device."""

    device: Any  # CuPy's


Self = TypeVar("Self", bound=OnDevice)


def device_of(values: Any) -> Any:
    """The device of a CuPy array, and the current one for all else; to be entered by `with`."""
    xp = cupy()
    return values.device if isinstance(values, xp.ndarray) else xp.cuda.Device()


def on_own_device(method: Callable[Concatenate[Self, P], R]) -> Callable[Concatenate[Self, P], R]:
    """A method that runs while the device of its object is the current one."""

    @wraps(method)
    def call(self: Self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.device:
            return method(self, *args, **kwargs)

    return call
