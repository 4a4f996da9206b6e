"""Interleaved runs: what slows the machine down for a while slows every library down."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

THREADS = 2
SLOW_SECONDS = 30.0  # an action that takes longer is run once: its noise is a few percent


@dataclass
class Timing:
    """Seconds of every run of an action, and what its last run returned."""

    seconds: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def interleave(
    actions: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Run the actions in turn, A B C A B C ..., `repeats` times."""
    timings = {name: Timing() for name in actions}
    for _ in range(repeats):
        for name, action in actions.items():
            timing = timings[name]
            if not timing.seconds or timing.best < SLOW_SECONDS:
                _run(action, timing, clock)
    return timings


def _run(action: Callable[[], Any], timing: Timing, clock: Callable[[], float]) -> None:
    timing.result = None  # the last run's memory is free before the clock starts
    gc.collect()
    started = clock()
    result = action()
    timing.seconds.append(clock() - started)
    timing.result = result
