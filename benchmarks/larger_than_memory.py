"""A table larger than the memory that a process may have, beside the same table in memory.

    python -m benchmarks.larger_than_memory [--rows 18000000] [--limit 512] [--depth 8]

Rows of 28 float32 columns lie in files. One process may take `--limit` MiB of memory of its own
(RLIMIT_DATA; pages of mapped files are the system's) and reads them in batches; another reads
them all. Both are told the seconds of each step, and five fields of the trees are compared.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = 28
FILE_ROWS = 1 << 18


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


def child(folder: Path, limit: int, depth: int | None) -> dict[str, Any]:
    """Read and fit in this process, with at most `limit` MiB of its own; 0 for no limit."""
    from gputree import CodedTable, DecisionTreeClassifier

    if limit:
        resource.setrlimit(resource.RLIMIT_DATA, (limit << 20, limit << 20))
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
        model = DecisionTreeClassifier(max_depth=depth, splitter=splitter)
        begin = time.perf_counter()
        tree = model.fit(table, y).tree_
        seconds[splitter] = time.perf_counter() - begin
        fields = [tree.first_child, tree.feature, tree.threshold, tree.statistics, tree.gain]
        digests[splitter] = [zlib.crc32(field.tobytes()) for field in fields], tree.n_nodes
    data = Path("/proc/self/status").read_text("utf-8")
    own = next((line.split()[1] for line in data.splitlines() if "RssAnon" in line), "0")
    return {"seconds": seconds, "trees": digests, "own": int(own) >> 10}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=18_000_000)
    parser.add_argument("--limit", type=int, default=512, help="MiB of the process's own memory")
    parser.add_argument("--depth", type=int, default=8, help="0 for none")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        folder, limit = Path(options.child[0]), int(options.child[1])
        print(json.dumps(child(folder, limit, options.depth or None)))
        return
    with tempfile.TemporaryDirectory() as name:
        size = write_files(Path(name), options.rows)
        print(f"{options.rows:,} rows x {COLUMNS}, {size >> 20:,} MiB, depth {options.depth}")
        found = []
        for limit in (options.limit, 0):
            command = [sys.executable, "-m", "benchmarks.larger_than_memory"]
            command += ["--depth", str(options.depth), "--child", name, str(limit)]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            found.append(json.loads(done.stdout))
            what = f"at most {limit} MiB of its own" if limit else "in memory"
            steps = found[-1]["seconds"].items()
            print(f"{what:28}" + "".join(f"{step} {s:7.1f} s   " for step, s in steps))
        same = found[0]["trees"] == found[1]["trees"]
        nodes = {name: tree[1] for name, tree in found[0]["trees"].items()}
        print(f"trees {'equal' if same else 'DIFFER'}: {nodes}")


if __name__ == "__main__":
    main()
