"""Growth on a CUDA device, stage by stage, beside the CPU backend.

    python -m benchmarks.gpu [--rows 10000000 1000000] [--output benchmarks/results/gpu.md]

For each table (28 float32 columns, 2 classes, on the device or on the host), depth and
splitter: seconds from the table to the nodes, seconds of `fit`, of every stage and of every
kernel, the bytes that a stage moves at least, as a fraction of the bandwidth of a plain copy on
the device, and how often the device's time fits into the CPU backend's on all threads; XGBoost
beside it where it is installed. Trees are compared to the bit. The case that tells most comes
first, and the CPU backend last; after each measurement a line of JSON is printed and the output
written anew, so that a run cut short leaves some.

Stages are timed in runs of their own: there each ends with a synchronisation. So are
kernels, between two events; those of CuPy (sorts, scans) are not among them.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import synchronize
from benchmarks.data import classes_table
from gputree import DecisionTreeClassifier
from gputree.backends import get_backend, has_device, new_table
from gputree.backends.base import Limits, Rows, Task
from gputree.backends.cuda.kernels import Kernels
from gputree.base.progress import Progress
from gputree.compilation import tiers
from gputree.criteria import Gini
from gputree.growth.assembly import renumber
from gputree.growth.grower import GrowthPlan, grow_roots

COLUMNS, CLASSES, MAX_BINS = 28, 2, 256
VALUE, ENTRY, TARGET, KEY, SUM = 4, 4, 4, 4, 8  # bytes
UNLIMITED = 2**31 - 1
DEPTHS = {"8": 8, "unlimited": UNLIMITED}
SPLITTERS = ("exact", "binned")
PLACES = ("device", "host")
STAGES = ("encode", "histogram", "score", "refine", "partition", "finish")
WARM_ROWS = 5000  # of the table that compiles the kernels
REPEATS = 3


class Case(NamedTuple):
    rows: int
    place: str  # of the table when the clock starts: "host" or "device"
    depth: str
    splitter: str


class Run(NamedTuple):
    """One growth: seconds of all of it, stage by stage where they were timed, and its tree."""

    seconds: float
    stages: dict[str, float]
    bytes: dict[str, int]
    nodes: int
    digest: str


class Stopwatch:
    """A backend whose primitives are timed, and the bytes that they have to move."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.seconds: dict[str, float] = defaultdict(float)
        self.bytes: dict[str, int] = defaultdict(int)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._backend, name)
        return self._timed(name, value) if name in STAGES else value

    def _timed(self, name: str, primitive: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            refined = self._backend.refined_pairs
            started = time.perf_counter()
            result = primitive(*args)
            synchronize(self._backend.name)
            self.seconds[name] += time.perf_counter() - started
            refined = self._backend.refined_pairs - refined
            self.bytes[name] += bytes_moved(self._backend, name, args, refined)
            return result

        return call


def bytes_moved(backend: Any, stage: str, args: tuple[Any, ...], refined: int) -> int:
    """Bytes that a stage reads and writes at least, each once."""
    codes = backend.table.codes
    n, stride = codes.shape
    cells = backend.histogram_bytes
    if stage == "encode":
        return n * (COLUMNS * VALUE + stride)
    if stage == "score":  # cells in, sums of them over bins out
        return (cells + backend.histogram_cells * backend.channels * SUM) * args[1].size
    rows = int((args[1] - args[0]).sum())
    if stage == "histogram":
        derived = args[4].slots.size if args[4] else 0
        return rows * (stride + ENTRY + TARGET) + cells * (args[0].size + 3 * derived)
    if stage == "refine":  # codes of all rows; of those looked into key and row: out, sorted, in
        return rows * (stride + ENTRY) + refined * (VALUE + 4 * (KEY + ENTRY))
    if stage == "partition":  # a code, an entry and its side; then the entry there and back
        return rows * (1 + ENTRY + 1 + 4 * ENTRY)
    return rows * COLUMNS * (VALUE + 4 * (KEY + ENTRY))  # keys and rows sorted, then partitioned


def new_task(y: NDArray, case: Case) -> Task:
    limits = Limits(
        max_depth=DEPTHS[case.depth],
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_leaf=0,
        min_decrease=-np.inf,
        max_features=COLUMNS,
        rounded=False,
    )
    return Task(Gini(CLASSES, 1.0), limits, Rows(y, None, None, None), case.splitter == "exact")


def grow_once(device: str, values: Any, y: NDArray, case: Case, threads: int, staged: bool) -> Run:
    """Grow a tree from a table that lies where the case says."""
    task = new_task(y, case)
    synchronize(device)
    started = time.perf_counter()
    table = new_table(device, values, np.zeros(COLUMNS, np.bool_))
    backend = get_backend(device)(table, task, threads)
    synchronize(backend.name)
    arrived = time.perf_counter() - started
    if staged and hasattr(backend, "ahead_levels"):
        backend.ahead_levels = 0  # levels that are queued together have no stages
    watch = Stopwatch(backend)
    plan = GrowthPlan(MAX_BINS, task.exact, None, backend.most_histogram_bytes, None)
    progress = Progress(case.rows, enabled=False)
    roots = np.array([case.rows]), np.zeros(1, np.uint64)
    grower = watch if staged else backend
    nodes, _ = grow_roots(grower, *roots, COLUMNS, task.limits, plan, progress)
    seconds = time.perf_counter() - started
    stages = {"arrive": arrived, **watch.seconds} if staged else {}
    return Run(seconds, stages, dict(watch.bytes), nodes.first_child.size, digest(nodes))


def digest(nodes: Any) -> str:
    """Equal for equal trees."""
    tree, _, depth = renumber(nodes)
    total = hashlib.sha256()
    for field in (*tree, depth):
        total.update(np.ascontiguousarray(field).tobytes())
    return total.hexdigest()[:16]


def best_of(runs: list[Run]) -> Run:
    return min(runs, key=lambda run: run.seconds)


def measure_device(case: Case, bandwidth: float, threads: int) -> Iterator[dict[str, Any]]:
    """What is measured of a case, one after the other: the fastest of a few growths first."""
    values, y = classes_table(case.rows, COLUMNS, CLASSES)
    table = importlib.import_module("cupy").asarray(values) if case.place == "device" else values
    whole = best_of([grow_once("cuda", table, y, case, threads, False) for _ in _repeats()])
    yield {"seconds": whole.seconds, "nodes": whole.nodes, "digest": whole.digest}
    yield {"fit_seconds": min(fit_seconds(case, table, y) for _ in _repeats())}
    yield {"kernels": kernel_times(case, table, y, threads)}
    staged = best_of([grow_once("cuda", table, y, case, threads, True) for _ in _repeats()])
    coding = staged.stages.get("encode", 0.0) + staged.stages["arrive"]
    yield {
        "after_coding": max(whole.seconds - coding, 0.0),
        "stages": staged.stages,
        "bytes": staged.bytes,
        "share_of_copy_bandwidth": {
            name: moved / staged.stages[name] / bandwidth for name, moved in staged.bytes.items()
        },
    }
    if case.place == "device" and DEPTHS[case.depth] != UNLIMITED:
        yield {"xgboost": measure_xgboost(case, table, y)}


def fit_seconds(case: Case, table: Any, y: NDArray) -> float:
    """Of an estimator's `fit`: checks, growth and the tree; labels lie where the table does."""
    depth = None if DEPTHS[case.depth] == UNLIMITED else DEPTHS[case.depth]
    model = DecisionTreeClassifier(device="cuda", splitter=case.splitter, max_depth=depth)
    labels = importlib.import_module("cupy").asarray(y) if case.place == "device" else y
    synchronize("cuda")
    started = time.perf_counter()
    model.fit(table, labels)
    synchronize("cuda")
    return time.perf_counter() - started


@contextmanager
def timed_kernels() -> Iterator[list[tuple[str, Any, Any]]]:
    """The launches inside: kernel, and the events before and after it. Nothing waits."""
    cuda = importlib.import_module("cupy").cuda
    launch = Kernels.__call__
    spans: list[tuple[str, Any, Any]] = []

    def timed(self: Kernels, module: str, kernel: str, *arguments: Any, **options: Any) -> None:
        before, after = cuda.Event(), cuda.Event()
        before.record()
        launch(self, module, kernel, *arguments, **options)
        after.record()
        spans.append((kernel, before, after))

    Kernels.__call__ = timed  # type: ignore[method-assign]
    try:
        yield spans
    finally:
        Kernels.__call__ = launch  # type: ignore[method-assign]


def kernel_times(case: Case, table: Any, y: NDArray, threads: int) -> dict[str, Any]:
    """Launches and milliseconds of each kernel in one growth, the longest first."""
    cuda = importlib.import_module("cupy").cuda
    with timed_kernels() as spans:
        grow_once("cuda", table, y, case, threads, False)
    synchronize("cuda")
    found: dict[str, list[float]] = defaultdict(list)
    for kernel, before, after in spans:
        found[kernel].append(cuda.get_elapsed_time(before, after))
    by_time = sorted(found.items(), key=lambda item: -sum(item[1]))
    return {name: {"launches": len(ms), "ms": sum(ms), "most": max(ms)} for name, ms in by_time}


def measure_xgboost(case: Case, table: Any, y: NDArray) -> dict[str, Any]:
    """Seconds of XGBoost's one tree of the same depth from histograms, or why there are none."""
    try:
        xgboost = importlib.import_module("xgboost")
        options = {"device": "cuda", "tree_method": "hist", "max_bin": MAX_BINS}
        options |= {"max_depth": DEPTHS[case.depth], "objective": "binary:logistic"}
        runs = []
        for _ in range(REPEATS + 1):  # the first one warms up
            started = time.perf_counter()
            matrix = xgboost.QuantileDMatrix(table, y, max_bin=MAX_BINS)
            coded = time.perf_counter()
            xgboost.train(options, matrix, num_boost_round=1)
            synchronize("cuda")
            runs.append((time.perf_counter() - started, time.perf_counter() - coded))
    except ImportError:
        return {"error": "not installed"}
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        return {"error": f"{type(error).__name__}: {first_line}"[:200]}
    seconds, training = min(runs)
    return {"version": xgboost.__version__, "seconds": seconds, "training": training}


def _repeats() -> range:
    return range(REPEATS)


def compare_to_cpu(results: list[dict[str, Any]], threads: int) -> Iterator[dict[str, Any]]:
    """Grow the tree of `results`, one table in several places, on the CPU as well."""
    case = Case(*(results[0][name] for name in Case._fields))
    values, y = classes_table(case.rows, COLUMNS, CLASSES)
    run = best_of([grow_once("cpu", values, y, case, threads, False) for _ in _repeats()])
    for result in results:
        yield {
            "cpu_seconds": run.seconds,
            "ratio_to_cpu": run.seconds / result["seconds"],
            "same_tree": run.digest == result["digest"],
        }


def copy_bandwidth(nbytes: int) -> float:
    """Bytes a second, read and written, of a copy of so many on the device."""
    cupy = importlib.import_module("cupy")
    source, target = cupy.zeros(nbytes, dtype=np.uint8), cupy.empty(nbytes, dtype=np.uint8)
    best = np.inf
    for _ in range(REPEATS + 1):
        synchronize("cuda")
        started = time.perf_counter()
        target[:] = source
        synchronize("cuda")
        best = min(best, time.perf_counter() - started)
    return 2 * nbytes / best


def warm_up(device: str, options: argparse.Namespace) -> float:
    """Compile the kernels of the cases on a small table; returns the seconds that took."""
    values, y = classes_table(WARM_ROWS, COLUMNS, CLASSES)
    started = time.perf_counter()
    with tiers.forced("always"):  # so small a table would be interpreted on the CPU
        for depth, splitter in product(options.depths, options.splitters):
            case = Case(WARM_ROWS, "host", depth, splitter)
            grow_once(device, values, y, case, options.threads, False)
    return time.perf_counter() - started


# ---------------------------------------------------------------------- report
def describe_machine(threads: int) -> dict[str, Any]:
    cupy = importlib.import_module("cupy")
    runtime = cupy.cuda.runtime
    free, total = cupy.cuda.Device().mem_info
    return {
        "device": runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode(),
        "device_memory_gib": round(total / 2**30),
        "device_memory_free_gib": round(free / 2**30),
        "cpu": _cpu_name(),
        "cpu_threads": threads,
        "driver": runtime.driverGetVersion(),
        "cuda": runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
        "numpy": np.__version__,
        "numba": importlib.import_module("numba").__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "date": time.strftime("%Y-%m-%d"),
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def write(report: dict[str, Any], output: Path | None) -> None:
    """Write the report as Markdown or JSON, by the name of the file."""
    if output is None:
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    is_json = output.suffix == ".json"
    output.write_text(json.dumps(report, indent=2) + "\n" if is_json else markdown(report), "utf-8")


def markdown(report: dict[str, Any]) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    lines = [
        f"# {report['machine']['device']}, {report['machine']['date']}",
        "",
        f"`python -m benchmarks.gpu`; {machine}.",
        f"A copy on the device moves {report['copy_bandwidth'] / 1e9:.0f} GB/s, read and written; "
        f"first growths, compiling, took {report['warm_up_seconds']:.1f} s.",
        "",
        "| rows | table on | depth | splitter | growth | after coding | fit | CPU | ratio "
        "| same tree | nodes |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_summary(result) for result in report["cases"]),
        "",
        "Stages, each ending with a synchronisation: milliseconds, bytes moved at least, and",
        "these as a fraction of the bandwidth of the copy.",
        "",
        f"| rows | table on | depth | splitter | arrive | {' | '.join(STAGES)} |",
        "| --- " * (5 + len(STAGES)) + "|",
        *(_stages(result) for result in report["cases"] if "stages" in result),
        *(line for result in report["cases"] if "kernels" in result for line in _details(result)),
    ]
    return "\n".join(lines) + "\n"


def _summary(result: dict[str, Any]) -> str:
    cpu = f"{result['cpu_seconds']:.2f} s" if "cpu_seconds" in result else ""
    ratio = f"{result['ratio_to_cpu']:.1f}x" if cpu else ""
    same = {True: "yes", False: "NO", None: ""}[result.get("same_tree")]
    growth = " ".join(filter(None, (_ms(result, "seconds"), result.get("error"))))
    return (
        f"| {_label(result)} | {growth} | {_ms(result, 'after_coding')} "
        f"| {_ms(result, 'fit_seconds')} | {cpu} | {ratio} | {same} | {result.get('nodes', 0):,} |"
    )


def _ms(result: dict[str, Any], name: str) -> str:
    """Milliseconds, where they were measured."""
    return f"{1e3 * result[name]:.1f} ms" if name in result else ""


def _stages(result: dict[str, Any]) -> str:
    cells = [f"{1e3 * result['stages']['arrive']:.1f}"]
    for name in STAGES:
        if name not in result["stages"]:
            cells.append("")
            continue
        share = result["share_of_copy_bandwidth"][name]
        moved = result["bytes"][name] / 1e9
        cells.append(f"{1e3 * result['stages'][name]:.1f}; {moved:.2f} GB; {share:.0%}")
    return f"| {_label(result)} | {' | '.join(cells)} |"


def _details(result: dict[str, Any]) -> Iterator[str]:
    """Kernels of a case, and XGBoost's time for it."""
    yield f"\n## {_label(result).replace(' | ', ', ')}\n"
    peer = result.get("xgboost", {})
    if "seconds" in peer:
        yield (
            f"XGBoost {peer['version']}, one tree: {1e3 * peer['seconds']:.1f} ms, of which "
            f"{1e3 * peer['training']:.1f} ms after coding.\n"
        )
    elif peer:
        yield f"XGBoost: {peer['error']}.\n"
    yield "| kernel | launches | ms | longest launch, ms |"
    yield "| --- | --- | --- | --- |"
    for name, times in result["kernels"].items():
        yield f"| {name} | {times['launches']} | {times['ms']:.2f} | {times['most']:.2f} |"


def _label(result: dict[str, Any]) -> str:
    return f"{result['rows']:,} | {result['place']} | {result['depth']} | {result['splitter']}"


# ------------------------------------------------------------------------ main
def run_all(report: dict[str, Any], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure every case, then the CPU; yields what is new. A failure is its case's result."""
    trees = []
    for rows, depth, splitter in product(options.rows, options.depths, options.splitters):
        trees.append([])
        for place in options.places:
            case = Case(rows, place, depth, splitter)
            report["cases"].append(case._asdict())
            try:
                for found in measure_device(case, report["copy_bandwidth"], options.threads):
                    report["cases"][-1].update(found)
                    yield {**case._asdict(), **found}
            except Exception as error:
                report["cases"][-1]["error"] = f"{type(error).__name__}: {error}"
                yield report["cases"][-1]
            if "digest" in report["cases"][-1]:
                trees[-1].append(report["cases"][-1])
    if options.no_cpu:
        return
    warm_up("cpu", options)
    for results in filter(None, trees):
        for result, found in zip(results, compare_to_cpu(results, options.threads), strict=True):
            result.update(found)
            yield {**{name: result[name] for name in Case._fields}, **found}


def grow_all(options: argparse.Namespace) -> int:
    """Grow each case once and measure nothing."""
    for fields in product(options.rows, options.places, options.depths, options.splitters):
        case = Case(*fields)
        values, y = classes_table(case.rows, COLUMNS, CLASSES)
        on_device = case.place == "device"
        table = importlib.import_module("cupy").asarray(values) if on_device else values
        print(case, grow_once("cuda", table, y, case, options.threads, False).nodes, "nodes")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10**7, 10**6])
    parser.add_argument("--depths", nargs="+", choices=DEPTHS, default=list(DEPTHS))
    parser.add_argument("--splitters", nargs="+", choices=SPLITTERS, default=SPLITTERS)
    parser.add_argument("--places", nargs="+", choices=PLACES, default=PLACES)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the CPU backend")
    parser.add_argument("--no-cpu", action="store_true", help="leave the CPU backend out")
    parser.add_argument("--output", type=Path, help="file to write, .md or .json")
    parser.add_argument("--longest", type=Path, help="file for three kernels, the longest first")
    parser.add_argument("--once", action="store_true", help="grow each case once, for a profiler")
    options = parser.parse_args(arguments)
    if not has_device():
        print("There is no CUDA device to measure.", file=sys.stderr)
        return 1
    if options.once:
        return grow_all(options)
    report: dict[str, Any] = {"machine": describe_machine(options.threads)}
    print(json.dumps(report), flush=True)
    report["copy_bandwidth"] = copy_bandwidth(max(options.rows) * COLUMNS * VALUE)
    report["warm_up_seconds"] = warm_up("cuda", options)
    report["cases"] = []
    print(json.dumps(report), flush=True)
    for result in run_all(report, options):
        print(json.dumps(result), flush=True)
        write(report, options.output)
        if options.longest and "kernels" in report["cases"][0]:
            longest = list(report["cases"][0]["kernels"])[:3]
            options.longest.write_text("".join(f"{name}\n" for name in longest), "utf-8")
    print(markdown(report))
    print(_summary(report["cases"][0]))
    failed = any("error" in case or case.get("same_tree") is False for case in report["cases"])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
