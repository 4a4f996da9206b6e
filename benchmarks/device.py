"""A CUDA device met for the first time: what is there, and whether it grows the CPU's trees.

    python -m benchmarks.device machine     versions, tools, CuPy's interface; a module runs
    python -m benchmarks.device warm        compile kernels for tests, in one process
    python -m benchmarks.device bits        trees of the check and of 20,000 rows, bit for bit
    python -m benchmarks.device small       trees of the check, each array in memory of its own
    python -m benchmarks.device record      grow the trees on record anew, on the CPU

Each is short, and needs nothing but gputree and CuPy. Exits with 1 where something is wrong.
``device_trees.json`` has digests of the CPU's trees, so that the time of a device is not spent on
growing them: where a tree is not the one on record, it is grown on the CPU and compared by field.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu import describe_machine
from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.cuda import kernels, machine, workspace
from gputree.backends.cuda.encode import inspect_columns
from gputree.backends.cuda.kernels import HEADERS, Variant
from gputree.check.cases import CASES, Case, CaseTable
from gputree.check.comparison import Side, first_difference, grow_case
from gputree.criteria.named import FORMS
from gputree.tree import Tree

RECORD = Path(__file__).with_name("device_trees.json")
TOOLS = ("nvcc", "compute-sanitizer", "ncu", "cuda-gdb")
CPU, DEVICE = Side("the CPU", "CPU", "cpu"), Side("the device", "device", "cuda")


# ----------------------------------------------------------------------- trees
@cache
def weighted() -> CaseTable:
    """20,000 rows: distinct values, ties, missing values, categories; two classes; weights.

    Made of integers and single roundings: the same on every machine.
    """
    rows, rng = 20_000, np.random.RandomState(0)  # whose streams never change
    sums = rng.randint(0, 1 << 30, (rows, 8, 4), dtype=np.int64).sum(axis=2) - (1 << 31)
    X = (sums / (1 << 29)).astype(np.float32)  # nearly normal
    X[:, 1] = np.rint(8 * X[:, 1]) / 8
    X[:, 2] = X[:, 2] * X[:, 2] * X[:, 2]
    X[:, 6] = rng.randint(0, 3, rows)
    X[:, 7] = rng.randint(0, 40, rows)
    noise = (rng.randint(0, 1 << 16, rows) / (1 << 14) - 2).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 3] + (X[:, 6] == 1) + noise > 0.3).astype(np.int64)
    X[rng.random_sample((rows, 8)) < [0, 0.1, 0.02, 0, 0.5, 0, 0.1, 0]] = np.nan
    return CaseTable(X, y, rng.randint(1, 4, rows).astype(float))


def plain() -> CaseTable:
    return weighted()._replace(weight=None)


DRAWN = {"criterion": "entropy", "max_features": 3, "random_state": 0}
NOMINAL = {"categorical_features": [6, 7]}

# Of more levels and wider ones than those of the check, which use every kernel.
LARGE = [
    Case("large: gini, exact", DecisionTreeClassifier, {}, plain),
    Case("large: gini, refined", DecisionTreeClassifier, {"max_depth": 5, "max_bins": 16}, plain),
    Case("large: gini, best first", DecisionTreeClassifier, {"max_leaf_nodes": 30}, plain),
    Case("large: gini, binned", DecisionTreeClassifier, {"splitter": "binned"}, plain),
    Case("large: gini, weights", DecisionTreeClassifier, {"min_samples_leaf": 5}, weighted),
    Case("large: entropy, drawn columns", DecisionTreeClassifier, DRAWN, plain),
    Case("large: regression", DecisionTreeRegressor, {"max_depth": 8}, plain),
    Case("large: regression, weights", DecisionTreeRegressor, {}, weighted),
    Case("large: categories", DecisionTreeClassifier, NOMINAL, plain),
    Case("large: C4.5", C45Classifier, {**NOMINAL, "pruning": None}, plain),
]


def digest(*arrays: NDArray | None) -> str:
    """Equal for arrays that are equal to the bit."""
    total = hashlib.sha256()
    for array in arrays:
        if array is not None:
            total.update(f"{array.dtype.str}{array.shape}".encode())
            total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:16]


def tree_digest(tree: Tree) -> str:
    values = (getattr(tree, field.name) for field in fields(Tree))
    return digest(*(value for value in values if isinstance(value, np.ndarray)))


def on_cpu(case: Case) -> dict[str, str]:
    """What is recorded of a case."""
    table = case.table()
    return {"table": digest(*table), "tree": tree_digest(grow_case(case, table, CPU))}


def record() -> bool:
    """Write digests of the CPU's trees."""
    found = {case.name: on_cpu(case) for case in (*CASES, *LARGE)}
    RECORD.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    return True


def compare(cases: list[Case]) -> bool:
    """Grow each tree on the device and say how it compares, until an error stays there."""
    known, equal = json.loads(RECORD.read_text("utf-8")), True
    for case in cases:
        table, started = case.table(), time.perf_counter()
        try:
            found = grow_case(case, table, DEVICE)
            seconds = time.perf_counter() - started
            digests = {"table": digest(*table), "tree": tree_digest(found)}
            verdict = "equal" if digests == known.get(case.name) else difference(case, table, found)
            print(
                f"{case.name:50} {found.n_nodes:7,} nodes {seconds:7.2f} s  {verdict}", flush=True
            )
            equal = equal and verdict.startswith("equal")
        except Exception as error:
            equal = False
            print(f"{case.name:50} FAILED: {type(error).__name__}: {error}", flush=True)
            if stays := remaining_error():
                print(f"what follows was not run, for the error stays: {stays}")
                break
    return equal


def difference(case: Case, table: CaseTable, found: Tree) -> str:
    """How a tree that is not on record compares with the CPU's."""
    wrong = first_difference(grow_case(case, table, CPU), found, (CPU, DEVICE))
    return f"DIFFERENT: {wrong}" if wrong else "equal to the CPU's, which is not on record"


def remaining_error() -> str:
    """What the device answers with since a launch went wrong, such as an illegal address."""
    try:
        importlib.import_module("cupy").cuda.Device().synchronize()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@contextmanager
def apart() -> Iterator[None]:
    """Each array in an allocation of its own, so that memcheck sees its end.

    CuPy's pool keeps allocations, and levels carve several arrays from one.
    """
    cupy = importlib.import_module("cupy")
    if hasattr(cupy.cuda, "set_allocator"):
        cupy.cuda.set_allocator(None)
    carve = workspace.carve

    def allocate(_: Any, arrays: Sequence[workspace.Shaped], __: list[int]) -> list[Any]:
        return [cupy.empty(shape, dtype=dtype) for shape, dtype in arrays]

    def copy(memory: Any, arrays: Sequence[workspace.Shaped], places: list[int]) -> list[Any]:
        return [array.copy() for array in carve(memory, arrays, places)]

    with mock.patch.multiple(workspace, carve=allocate, sent_to=copy):
        yield


# --------------------------------------------------------------------- machine
def look() -> bool:
    """Print what is there; CuPy's interface is used once, and a module compiled and run."""
    cupy = importlib.import_module("cupy")
    print(json.dumps(describe_machine(os.cpu_count() or 1), indent=2))
    if hasattr(cupy, "show_config"):
        cupy.show_config()  # where CuPy finds CUDA, its headers among them
    needs = machine.requirements()
    for need in needs:
        print(f"{need.name}: {need.problem or need.found}")
    print("NVRTC compiles for", *cupy.cuda.nvrtc.getSupportedArchs())
    for tool in TOOLS:
        print(f"{tool}: {shutil.which(tool) or 'not found'}")
    fine = [need.problem is None for need in needs]
    fine += [_succeeds(name, use, cupy) for name, use in USES.items()]
    started = time.perf_counter()
    fine.append(_succeeds("inspect_columns", lambda _: _inspect(cupy), cupy))
    print(f"a module compiled and ran in {time.perf_counter() - started:.2f} s")
    return all(fine)


def _succeeds(name: str, use: Callable[[Any], Any], cupy: Any) -> bool:
    """Whether a use of CuPy ends well and its result, if it has one, is not False."""
    try:
        outcome = "FAILED" if use(cupy) is False else "works"
    except Exception as error:
        outcome = f"FAILED: {type(error).__name__}: {error}"
    print(f"{name}: {outcome}", flush=True)
    return outcome == "works"


def _inspect(cupy: Any) -> bool:
    values = np.zeros((1000, 3), np.float32)
    values[7, 1], values[9, 2] = np.nan, np.inf
    seen = [flags.tolist() for flags in inspect_columns(cupy.asarray(values))]
    return seen == [[False, True, False], [False, False, True]]


def _send(cupy: Any) -> bool:
    """Page-locked memory to the device, and back."""
    locked = np.frombuffer(cupy.cuda.alloc_pinned_memory(64), np.uint8, 64)
    locked[:] = 7
    array, stream = cupy.empty(64, dtype=np.uint8), cupy.cuda.get_current_stream()
    array.set(locked, stream=stream)
    stream.synchronize()
    return bool((array.get() == 7).all())


def _lend(cupy: Any) -> bool:
    """An array over memory of another one."""
    owner, cuda = cupy.zeros(600, dtype=np.uint8), cupy.cuda
    memory = cuda.UnownedMemory(owner.data.ptr, owner.nbytes, owner, cuda.Device().id)
    array = cupy.ndarray((3, 4), np.float32, memptr=cuda.MemoryPointer(memory, 0) + 512)
    return array.shape == (3, 4) and float(array.sum().item()) == 0


def _lock(cupy: Any) -> bool:
    """Pages of the host, locked and released."""
    values, runtime = np.zeros(1 << 14, np.uint8), cupy.cuda.runtime
    runtime.hostRegister(values.ctypes.data, values.nbytes, 3)
    runtime.hostUnregister(values.ctypes.data)
    return cupy.cuda.Device().attributes.get("CanUseHostPointerForRegisteredMem") is not None


def _time(cupy: Any) -> bool:
    before, after = cupy.cuda.Event(), cupy.cuda.Event()
    before.record()
    after.record()
    cupy.cuda.Device().synchronize()
    return cupy.cuda.get_elapsed_time(before, after) >= 0


def _stream(cupy: Any) -> None:
    with cupy.cuda.Stream(non_blocking=True) as stream:
        event = cupy.cuda.Event(disable_timing=True)
        event.record(stream)
        stream.synchronize()


def _sort(cupy: Any) -> bool:
    """Sorts are stable."""
    keys = cupy.asarray(np.tile(np.arange(3), 1000))
    order = np.argsort(np.tile(np.arange(3), 1000), kind="stable")
    return bool((cupy.argsort(keys).get() == order).all())


# CuPy's interface, of which nothing tells signatures but a call.
USES: dict[str, Callable[[Any], Any]] = {
    "Event(), get_elapsed_time": _time,
    "Stream(non_blocking=), Event(disable_timing=)": _stream,
    "UnownedMemory, MemoryPointer, ndarray(memptr=)": _lend,
    "alloc_pinned_memory, ndarray.set(stream=)": _send,
    "hostRegister, Device.attributes": _lock,
    "argsort": _sort,
    "pci_bus_id": lambda cupy: bool(cupy.cuda.Device().pci_bus_id),
    "mem_info": lambda cupy: len(cupy.cuda.Device().mem_info) == 2,
    "free_bytes of the pool": lambda cupy: cupy.get_default_memory_pool().free_bytes() >= 0,
}


# ------------------------------------------------------------------------ warm
def modules() -> list[tuple[str, Variant]]:
    """Modules and variants that launches use: of 64 bits first, and those that take longest."""
    both = (False, True)
    plain = [Variant(*v) for v in product(FORMS, both, (64, 32))]
    categories = [Variant(*v, 64, categories=True) for v in product(FORMS, both)]
    monotonic = [Variant(kind, True, 64, monotonic=True) for kind in FORMS]
    used = {
        (name, variant.seen_by(name)): None
        for name, variant in product(sorted(HEADERS), [*plain, *categories, *monotonic])
    }
    return sorted(used, key=lambda pair: (-pair[1].value_bits, -len(kernels.source(pair[0]))))


def warm(most: int | None) -> bool:
    """Compile modules, on all cores: CuPy keeps them for other processes."""
    started, device = time.perf_counter(), machine.current_device()

    def compile_one(pair: tuple[str, Variant]) -> tuple[float, str]:
        begin = time.perf_counter()
        with machine.device(device):
            kernels.load(*pair).compile()
        return time.perf_counter() - begin, pair[0]

    chosen, done = modules()[:most], []
    try:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done.extend(pool.map(compile_one, chosen))
    finally:  # also where it is interrupted
        print(f"{len(done)} of {len(chosen)} modules in {time.perf_counter() - started:.1f} s")
        print("the longest:", *max(done, default=("none",)))
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.device",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("machine", "warm", "bits", "small", "record"))
    parser.add_argument("--most", type=int, help="trees to grow or modules to compile, at most")
    options = parser.parse_args(arguments)
    if options.what == "machine":
        right = look()
    elif options.what == "warm":
        right = warm(options.most)
    elif options.what == "record":
        right = record()
    elif options.what == "bits":
        right = compare([*CASES, *LARGE][: options.most])
    else:
        with apart():
            right = compare(CASES[: options.most])
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
