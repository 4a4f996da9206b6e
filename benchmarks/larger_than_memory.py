"""A table larger than the memory that a process may have, beside the same table in memory.

    python -m benchmarks.larger_than_memory [--rows 40000000] [--limit 1024] [--depth 8]
        [--xgboost] [--output FILE]

Rows of 28 float32 columns lie in files. One process may take `--limit` MiB of memory of its own
(RLIMIT_DATA; pages of mapped files are the system's) and reads them in batches; another reads
them all. Both are told the seconds of each step and the most memory of their own that was seen,
and five fields of the trees are compared. XGBoost grows one tree under the same limit.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 28
FILE_ROWS = 1 << 18
STEPS = ("read and code", "exact", "binned")


def write_files(folder: Path, rows: int) -> int:
    """Write the table; returns its bytes."""
    rng = np.random.default_rng(0)
    for number, begin in enumerate(range(0, rows, FILE_ROWS)):
        n = min(FILE_ROWS, rows - begin)
        X = rng.standard_normal((n, COLUMNS), np.float32)
        noise = rng.standard_normal(n, np.float32)
        y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + noise > 0.1).astype(np.uint8)
        np.save(folder / f"X{number:05}.npy", X)
        np.save(folder / f"y{number:05}.npy", y)
    return rows * COLUMNS * 4


def batches(folder: Path) -> Iterator[tuple[Any, Any]]:
    """The table, a file at a time."""
    for path in sorted(folder.glob("X*.npy")):
        yield np.load(path, mmap_mode="r"), np.load(path.with_name("y" + path.name[1:]))


class OwnMemory:
    """The most memory of its own that this process had, in MiB, as far as it was looked at."""

    def __init__(self) -> None:
        self.most = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text("utf-8").splitlines()
            resident = next((line.split()[1] for line in lines if line.startswith("RssAnon")), "0")
            self.most = max(self.most, int(resident) >> 10)
            time.sleep(0.02)


# ------------------------------------------------------------------ in a process of their own
def grow(folder: Path, limit: int, depth: int) -> dict[str, Any]:
    """Read and fit, with batches if there is a limit."""
    from gputree import CodedTable, DecisionTreeClassifier

    seconds: dict[str, float] = {}
    digests: dict[str, Any] = {}
    begin = time.perf_counter()
    if limit:
        table = CodedTable.from_batches(lambda: batches(folder))
        y = table.target
    else:
        parts = list(batches(folder))
        X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
        table = CodedTable(X)
    seconds["read and code"] = time.perf_counter() - begin
    for splitter in ("exact", "binned"):
        model = DecisionTreeClassifier(max_depth=depth or None, splitter=splitter)
        begin = time.perf_counter()
        tree = model.fit(table, y).tree_
        seconds[splitter] = time.perf_counter() - begin
        fields = [tree.first_child, tree.feature, tree.threshold, tree.statistics, tree.gain]
        digests[splitter] = [zlib.crc32(field.tobytes()) for field in fields], tree.n_nodes
    return {"seconds": seconds, "trees": digests}


def grow_xgboost(folder: Path, limit: int, depth: int) -> dict[str, Any]:
    """One tree of XGBoost, from external memory; it knows histograms alone there."""
    import xgboost

    class Files(xgboost.DataIter):
        def __init__(self) -> None:
            self.source = batches(folder)
            super().__init__(cache_prefix=str(folder / "cache"))

        def next(self, input_data: Callable) -> bool:
            batch = next(self.source, None)
            if batch is not None:
                input_data(data=batch[0], label=batch[1])
            return batch is not None

        def reset(self) -> None:
            self.source = batches(folder)

    begin = time.perf_counter()
    table = xgboost.ExtMemQuantileDMatrix(Files(), max_bin=256)
    coded = time.perf_counter()
    given = {"max_depth": depth, "tree_method": "hist", "nthread": 2, "max_bin": 256}
    xgboost.train({**given, "objective": "binary:logistic"}, table, num_boost_round=1)
    done = time.perf_counter()
    return {"seconds": {"read and code": coded - begin, "binned": done - coded}}


def child(library: str, folder: Path, limit: int, depth: int) -> None:
    """Print what a library found, with at most `limit` MiB of its own; 0 for no limit."""
    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit << 20, limit << 20))
    memory = OwnMemory()
    found = {"gputree": grow, "XGBoost": grow_xgboost}[library](folder, limit, depth)
    print(json.dumps({**found, "own": memory.most}))


# ---------------------------------------------------------------------------------- the report
def measure(library: str, folder: Path, limit: int, depth: int) -> dict[str, Any]:
    """What a process of its own found; what it said last, where it failed."""
    command = [sys.executable, "-m", "benchmarks.larger_than_memory", "--depth", str(depth)]
    command += ["--child", library, str(folder), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {"error": lines[-1], "seconds": {}, "own": 0}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(library: str, what: str, found: dict[str, Any], rows: int) -> str:
    """A row of the table."""
    cells = [library, what]
    for step in STEPS:
        s = found["seconds"].get(step)
        cells.append("-" if s is None else f"{s:.1f} s, {rows / s / 1e6:.2f}")
    return "| " + " | ".join([*cells, found.get("error") or f"{found['own']:,} MiB"]) + " |"


def report(options: argparse.Namespace) -> Iterator[str]:
    """Lines of the report, as they are found."""
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        size, rows = write_files(Path(name), options.rows) >> 20, options.rows
        yield f"{rows:,} rows x {COLUMNS} columns, {size:,} MiB; depth {options.depth or 'any'}; "
        yield f"seconds, and million rows a second. {size / options.limit:.1f} times the limit."
        yield ""
        yield f"| library | process | {' | '.join(STEPS)} | memory of its own |"
        yield "| --- | --- | --- | --- | --- | --- |"
        limited = f"at most {options.limit:,} MiB"
        found = []
        for limit, what in ((options.limit, limited), (0, "in memory")):
            found.append(measure("gputree", Path(name), limit, options.depth))
            yield row("gputree", what, found[-1], rows)
        if options.xgboost:
            for limit, what in ((options.limit, limited), (0, "no limit")):
                theirs = measure("XGBoost", Path(name), limit, options.depth)
                yield row("XGBoost ExtMemQuantileDMatrix", what, theirs, rows)
        yield ""
        trees = [of.get("trees") for of in found]
        nodes = {splitter: tree[1] for splitter, tree in (trees[0] or {}).items()}
        yield f"Trees {'equal' if trees[0] and trees[0] == trees[1] else 'DIFFER'}: {nodes} nodes."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000_000)
    parser.add_argument("--limit", type=int, default=1024, help="MiB of the process's own memory")
    parser.add_argument("--depth", type=int, default=8, help="0 for none")
    parser.add_argument("--xgboost", action="store_true", help="XGBoost's external memory, too")
    parser.add_argument("--folder", help="of the files; default: that of temporary files")
    parser.add_argument("--output", type=Path, help="a file for the report, beside the screen")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        library, folder, limit = options.child
        child(library, Path(folder), int(limit), options.depth)
        return
    lines = []
    for line in report(options):
        print(line, flush=True)
        lines.append(line)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
