"""Device memory of the emulator: the device of each array, and its defined bytes.

Fresh memory holds anything on a device. Where accesses are checked, every byte of it carries a
flag that a write sets; reading a byte without is an error of its reader, be it a kernel, a
function of CuPy or a copy to the host.
"""

import threading
import weakref
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

__all__ = ["LaunchError", "current_device", "device_stack", "memory", "same_memory"]


class LaunchError(RuntimeError):
    """An error that a device would raise."""


class _Devices(threading.local):
    """The devices that a thread has entered."""

    def __init__(self) -> None:
        self.entered: list[int] = [0]


_devices = _Devices()


def device_stack() -> list[int]:
    """Numbers of the devices that this thread has entered; the last one is current."""
    return _devices.entered


def current_device() -> int:
    return _devices.entered[-1]


class Allocation(NamedTuple):
    """Memory of another device than 0, or with undefined bytes."""

    begin: int
    bytes: int
    device: int
    defined: NDArray[np.uint8] | None  # a byte each; None where all are


class Memory:
    """Bytes of device arrays in use, their maximum so far, and their contents."""

    live = peak = 0
    allocations = 0  # since the start

    def __init__(self) -> None:
        self.on_devices: Counter[int] = Counter()  # bytes by device, since `on_devices` is new
        self._counted: set[int] = set()  # arrays, by `id`
        self._lock = threading.RLock()  # arrays of several threads come and go
        self._special: dict[int, Allocation] = {}  # by address

    def add(self, host: NDArray, is_defined: bool = True) -> None:
        """Count an array that owns its memory, once, until it is gone."""
        if host.base is not None or id(host) in self._counted:
            return
        self._counted.add(id(host))
        begin, device = _address(host), current_device()
        with self._lock:
            self.allocations += 1
            self.live += host.nbytes
            self.on_devices[device] += host.nbytes
            self.peak = max(self.peak, self.live)
        if host.nbytes and (device or not is_defined):
            flags = None if is_defined else np.zeros(host.nbytes, np.uint8)
            self._special[begin] = Allocation(begin, host.nbytes, device, flags)
        counted = id(host), begin, host.nbytes, device
        weakref.finalize(host, self._drop, *counted, self.on_devices)

    def _drop(
        self, number: int, begin: int, size: int, device: int, on_devices: Counter[int]
    ) -> None:
        self._counted.discard(number)
        with self._lock:
            self.live -= size
            on_devices[device] -= size
        self._special.pop(begin, None)

    def _find(self, host: NDArray) -> Allocation | None:
        if not self._special or not host.nbytes:
            return None
        owner = _owner(host)
        begin = _address(owner)
        if owner.base is None or begin in self._special:
            return self._special.get(begin)
        for found in list(self._special.values()):  # what another library lends begins anywhere
            if found.begin <= begin < found.begin + found.bytes:
                return found
        return None

    def device(self, host: NDArray) -> int:
        """The device of `host`."""
        found = self._find(host)
        return found.device if found else 0

    def require_device(self, host: NDArray) -> None:
        """Raise LaunchError where `host` lies on another device than the current one."""
        if host.nbytes and (device := self.device(host)) != current_device():
            raise LaunchError(
                f"an array of device {device} while device {current_device()} is current"
            )

    def flags(self, host: NDArray) -> NDArray[np.uint8] | None:
        """Mask of the defined bytes of `host`, shape (..., itemsize); None where all are."""
        found = self._find(host)
        if found is None or found.defined is None:
            return None
        place = found.defined[_address(host) - found.begin :]
        return as_strided(place, (*host.shape, host.itemsize), (*host.strides, 1))

    def require_defined(self, host: NDArray, key: object = ()) -> None:
        """Raise LaunchError if elements ``host[key]`` were never written."""
        flags = self.flags(host)
        if flags is not None and not flags[key].all():
            undefined = np.argwhere(~flags.all(axis=-1))
            raise LaunchError(
                f"read of undefined memory: {len(undefined):,} of {host.size:,} elements of an "
                f"array of shape {host.shape}, the first at {undefined[0].tolist()}"
            )

    def define(self, host: NDArray, key: object = ()) -> None:
        """Mark elements ``host[key]`` as written."""
        flags = self.flags(host)
        if flags is not None:
            flags[key] = 1

    def forget(self, host: NDArray) -> None:
        """Mark all of `host` as never written."""
        flags = self.flags(host)
        if flags is not None:
            flags[...] = 0


def same_memory(a: NDArray, b: NDArray) -> bool:
    """Return True if one of two arrays is a view of the other, or both are of one."""
    return _owner(a) is _owner(b)


def _owner(host: NDArray) -> NDArray:
    while isinstance(host.base, np.ndarray):
        host = host.base
    return host


def _address(host: NDArray) -> int:
    return host.__array_interface__["data"][0]


memory = Memory()
