"""Exact splits where no cut stands out, beside bin boundaries alone: processor time.

    python -m benchmarks.hard_tables                     # 1,000,000 rows x 14, depth 8
    python -m benchmarks.hard_tables 200000 noise xor    # fewer rows, some of the tables
    python -m benchmarks.hard_tables 1000000 --sorted    # and with bins sorted, never counted

Fits run in turn in one process, and the best of each counts, so that ratios hold on a machine
that is doing other things. ``sorted`` is the share of (row, column) pairs that exact splits
had to sort.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.compare.timing import THREADS
from benchmarks.data import Table, binary_table
from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.cpu import tuning

COLUMNS = 14
DEPTH = 8
REPEATS = 3
RARE = 0.002


def _noise(n: int) -> tuple[NDArray[np.float32], np.random.Generator]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, COLUMNS)).astype(np.float32), rng


def _rare(n: int) -> Table:
    X, rng = _noise(n)
    z = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, (z > np.quantile(z, 1 - RARE)).astype(np.int32)


def _xor(n: int) -> Table:
    X, _ = _noise(n)
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int32)


def _classes(n: int, k: int) -> Table:
    X, rng = _noise(n)
    return X, rng.integers(0, k, n).astype(np.int32)


def _regression(n: int) -> Table:
    X, rng = _noise(n)
    return X, rng.normal(size=n)


TABLES: dict[str, Callable[[int], Table]] = {
    "signal": lambda n: binary_table(n, COLUMNS),
    "rare class": _rare,
    "xor": _xor,
    "noise": lambda n: _classes(n, 2),
    "noise, 7 classes": lambda n: _classes(n, 7),
    "noise, regression": _regression,
}


@contextmanager
def _sorted_only() -> Iterator[None]:
    """Let every living bin be sorted."""
    kept = tuning.TUNING
    tuning.TUNING = kept._replace(counted_rows=np.inf)
    try:
        yield
    finally:
        tuning.TUNING = kept


def _seconds(model: Any, X: NDArray, y: NDArray) -> float:
    started = time.process_time()
    model.fit(X, y)
    return time.process_time() - started


def measure(X: NDArray, y: NDArray, with_sorted: bool) -> dict[str, float]:
    """Best processor seconds of ``binned``, ``exact`` and perhaps ``sorted``; share sorted."""
    kind = DecisionTreeRegressor if y.dtype.kind == "f" else DecisionTreeClassifier
    binned, exact = (
        kind(max_depth=DEPTH, splitter=s, n_jobs=THREADS, device="cpu") for s in ("binned", "exact")
    )
    best = {"binned": np.inf, "exact": np.inf}
    for repeat in range(-1, REPEATS):  # the first compiles
        taken = {"binned": _seconds(binned, X, y), "exact": _seconds(exact, X, y)}
        if with_sorted and repeat < 1:
            with _sorted_only():
                taken["sorted"] = _seconds(exact, X, y)
        if repeat >= 0:
            best = {name: min(t, best.get(name, np.inf)) for name, t in taken.items()} | {
                name: t for name, t in best.items() if name not in taken
            }
    exact.fit(X, y)
    report = exact.growth_report_
    return best | {"share": report["refined_pairs"] / report["scanned_pairs"]}


def main() -> None:
    """Print one line a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rows", type=int, nargs="?", default=1_000_000)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--sorted", action="store_true", dest="with_sorted")
    chosen = parser.parse_args()
    print(f"{chosen.rows:,} rows x {COLUMNS}, depth {DEPTH}, {THREADS} threads")
    for name in chosen.tables or TABLES:
        found = measure(*TABLES[name](chosen.rows), chosen.with_sorted)
        line = f"{name:18s} binned {found['binned']:6.2f} s, exact {found['exact']:6.2f} s"
        line += f" = {found['exact'] / found['binned']:4.1f}x, sorted {found['share']:7.2%}"
        if "sorted" in found:
            line += f"; all sorted {found['sorted']:6.2f} s"
            line += f" = {found['sorted'] / found['binned']:4.1f}x"
        print(line, flush=True)


if __name__ == "__main__":
    main()
