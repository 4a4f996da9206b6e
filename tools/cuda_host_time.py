"""Processor time of the host in `fit` before growth, for a table on a device: on the emulator.

    PYTHONPATH=tests/helpers python tools/cuda_host_time.py
        [--rows N ...] [--columns D] [--repeats N]

From the call to where a backend would be made: parameters, shape, labels, infinite values. The
stand-in for CuPy computes in NumPy what a device does, and that time is left out; the number of its
calls is reported, as are copies, since calling and waiting for a device takes host time, too.
Labels are int32, on the device or on the host. The best of some fits counts.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from cuda_emulator import Kernel, emulated_cuda, ndarray
from cuda_traffic import Traffic

from gputree import DecisionTreeClassifier
from gputree.estimators import growing

# Functions of the stand-in that do not use a device.
IDLE = ("__init__", "__len__", "get_default_memory_pool")


class StandIn:
    """Measures the CPU time of work in a device's place; spies until `patch` is undone.

    Results are kept: releasing their memory is no work of a host whose arrays are on a device.
    """

    def __init__(self, patch: pytest.MonkeyPatch, cupy: ModuleType) -> None:
        self.seconds, self._inside = 0.0, False
        self._results: list[Any] = []
        for owner in (cupy, ndarray):
            for name, function in list(vars(owner).items()):
                if inspect.isfunction(function) and name not in IDLE:
                    patch.setattr(owner, name, self._timed(function))
        patch.setattr(Kernel, "__call__", self._timed(Kernel.__call__))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if self._inside:
                return function(*arguments, **options)
            self._inside, started = True, time.process_time()
            try:
                self._results.append(function(*arguments, **options))
                return self._results[-1]
            finally:
                self.seconds += time.process_time() - started
                self._inside = False

        return call

    @property
    def calls(self) -> int:
        return len(self._results)


class Begun(Exception):
    """Growth would begin."""


class Spent(NamedTuple):
    """On one fit until growth; milliseconds of the host and of what stands in for the device."""

    host: float
    stand_in: float
    calls: int
    uploads: int
    downloads: int


def spent(cupy: ModuleType, X: Any, y: Any) -> Spent:
    """On a fit to a table on the device."""

    def begin(*_: Any) -> None:
        raise Begun(time.process_time() - started)

    gc.collect()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "new_backend", begin)
        device, before = StandIn(patch, cupy), Traffic.now()
        started = time.process_time()
        with pytest.raises(Begun) as begun:
            DecisionTreeClassifier(device="cuda").fit(X, y)
    copies = (getattr(Traffic.now(), name) - getattr(before, name) for name in Spent._fields[3:])
    whole = begun.value.args[0]
    times = (1e3 * seconds for seconds in (whole - device.seconds, device.seconds))
    return Spent(*times, device.calls, *map(int, copies))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    sizes = [10_000, 100_000, 1_000_000, 10_000_000]
    parser.add_argument("--rows", type=int, nargs="+", default=sizes)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    print("".join(f"{name:>12}" for name in ("rows", "labels on", *Spent._fields)))
    with emulated_cuda() as cupy:
        for rows in asked.rows:
            X = cupy.zeros((rows, asked.columns), dtype=np.float32)
            labels = np.arange(rows, dtype=np.int32) % 2
            for place, y in {"device": cupy.asarray(labels), "host": labels}.items():
                best = min(spent(cupy, X, y) for _ in range(asked.repeats))
                times = "".join(f"{milliseconds:12.2f}" for milliseconds in best[:2])
                counts = "".join(f"{count:12,}" for count in best[2:])
                print(f"{rows:12,}{place:>12}{times}{counts}", flush=True)


if __name__ == "__main__":
    main()
