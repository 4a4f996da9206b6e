"""Growth on a CUDA device, stage by stage, beside the CPU backend.

    python -m benchmarks.gpu [--rows 1000000 10000000] [--output benchmarks/results/gpu.json]

For each table (28 float32 columns, 2 classes, on the host or on the device), depth and
splitter: seconds of every stage, bytes that coding and histograms have to move, their
share of the bandwidth of a plain copy, and how often the CPU backend's time fits in.
Every stage ends with a synchronisation, so stages do not overlap here.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import synchronize
from benchmarks.compare.timing import THREADS
from benchmarks.data import classes_table
from gputree.backends.base import Limits, Task
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cuda.backend import CudaBackend
from gputree.criteria import Gini
from gputree.growth.grower import Plan, grow
from gputree.growth.progress import Progress

COLUMNS, CLASSES, MAX_BINS = 28, 2, 256
UNLIMITED = 2**31 - 1
STAGES = ("encode", "histogram", "subtract", "score", "refine", "partition", "finish")
COPY_BYTES = 1 << 30  # of the array whose copy measures the bandwidth
REPEATS = 3


class Case(NamedTuple):
    rows: int
    place: str  # of the table when the clock starts: "host" or "device"
    depth: int
    splitter: str


class Stopwatch:
    """A backend whose primitives are timed, and the bytes that some of them have to move."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.seconds: dict[str, float] = defaultdict(float)
        self.bytes: dict[str, int] = defaultdict(int)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._backend, name)
        return self._timed(name, value) if name in STAGES else value

    def _timed(self, name: str, primitive: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            started = time.perf_counter()
            result = primitive(*args)
            synchronize(self._backend.name)
            self.seconds[name] += time.perf_counter() - started
            self.bytes[name] += self._moved(name, args)
            return result

        return call

    def _moved(self, name: str, args: tuple[Any, ...]) -> int:
        """Bytes read and written at least once; 0 where the data decide."""
        codes = self._backend.table.codes
        if name == "encode":
            return codes.nbytes + self._backend.table.values.nbytes
        if name != "histogram":
            return 0
        begin, end = args[:2]
        a_row = codes.shape[1] + 2 * np.dtype(np.int32).itemsize  # its entry and class
        return int((end - begin).sum()) * a_row


def new_task(y: NDArray, depth: int, splitter: str) -> Task:
    limits = Limits(
        max_depth=depth,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_leaf=0,
        min_decrease=0.0,
        max_features=COLUMNS,
        rounded=False,
    )
    return Task(Gini(CLASSES, 1.0), limits, y, None, None, None, splitter == "exact")


def grow_once(kind: type, values: Any, y: NDArray, case: Case) -> dict[str, Any]:
    """Seconds of one growth: the table's way to the backend, every stage, all of it."""
    task = new_task(y, case.depth, case.splitter)
    started = time.perf_counter()
    backend = kind(values, np.zeros(COLUMNS, np.bool_), task, THREADS)
    synchronize(backend.name)
    watch = Stopwatch(backend)
    watch.seconds["arrive"] = time.perf_counter() - started
    plan = Plan(MAX_BINS, task.exact, None, max(1 << 25, values.nbytes // 2), None, 0)
    nodes = grow(watch, values.shape, task.limits, plan, Progress(case.rows, enabled=False))
    return {
        "seconds": time.perf_counter() - started,
        "stages": dict(watch.seconds),
        "bytes": {name: moved for name, moved in watch.bytes.items() if moved},
        "nodes": int(nodes.first_child.size),
    }


def measure(case: Case, bandwidth: float) -> dict[str, Any]:
    """The fastest of a few growths on the device, and one on the CPU."""
    values, y = classes_table(case.rows, COLUMNS, CLASSES)
    table = importlib.import_module("cupy").asarray(values) if case.place == "device" else values
    runs = [grow_once(CudaBackend, table, y, case) for _ in range(REPEATS + 1)][1:]
    best = min(runs, key=lambda run: run["seconds"])
    grow_once(CpuBackend, values[:5000], y[:5000], case._replace(rows=5000))  # compiles
    cpu = grow_once(CpuBackend, values, y, case)
    share = {
        name: moved / best["stages"][name] / bandwidth for name, moved in best["bytes"].items()
    }
    return {
        **case._asdict(),
        **best,
        "share_of_copy_bandwidth": share,
        "cpu_seconds": cpu["seconds"],
        "ratio_to_cpu": cpu["seconds"] / best["seconds"],
        "same_nodes": cpu["nodes"] == best["nodes"],
    }


def copy_bandwidth(size: int = COPY_BYTES) -> float:
    """Bytes a second, read and written, of a copy on the device."""
    cupy = importlib.import_module("cupy")
    source, target = cupy.zeros(size, dtype=np.uint8), cupy.empty(size, dtype=np.uint8)
    best = np.inf
    for _ in range(REPEATS + 1):
        synchronize("cuda")
        started = time.perf_counter()
        target[:] = source
        synchronize("cuda")
        best = min(best, time.perf_counter() - started)
    return 2 * size / best


def describe_machine() -> dict[str, str]:
    cupy = importlib.import_module("cupy")
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    return {
        "device": device,
        "cpu": platform.processor() or platform.machine(),
        "cpu_threads": str(THREADS),
        "cuda": str(cupy.cuda.runtime.runtimeGetVersion()),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    options = parser.parse_args(arguments)
    try:
        machine = describe_machine()
    except Exception as error:
        print(f"There is no CUDA device to measure: {error}", file=sys.stderr)
        return 1
    bandwidth = copy_bandwidth()
    report = {**machine, "copy_bandwidth_gb_s": bandwidth / 1e9, "cases": []}
    print(json.dumps(report, indent=2))
    for case in product(options.rows, ("device", "host"), (8, UNLIMITED), ("exact", "binned")):
        result = measure(Case(*case), bandwidth)
        report["cases"].append(result)
        print(json.dumps(result), flush=True)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
