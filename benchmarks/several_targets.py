"""One tree of several targets, beside one tree a target and scikit-learn.

    python -m benchmarks.several_targets [k ...]          # 2 and 10 targets
    python -m benchmarks.several_targets --one [k ...]    # one thread each, in processor time
    python -m benchmarks.several_targets TABLE.csv ...    # of real tables, in processor time

100,000 x 28 normal numbers; targets are sums of the columns and noise, or their signs (multilabel).
Trees of gputree use two threads, those of scikit-learn one, which is what it has: seconds by the
clock. Of a CSV, the first half of the numeric columns without missing values are the targets, or
whether they exceed their medians; trees use one thread. The least of some fits counts, one of
scikit-learn's on normal numbers; kernels are compiled before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn import tree as sklearn_tree

import gputree

ROWS, COLUMNS = 100_000, 28
KINDS = ("DecisionTreeRegressor", "DecisionTreeClassifier")
ONES = 3  # targets that are fitted by themselves: their mean stands for all


def seconds(fit: Callable[[], Any], clock: Callable[[], float], repeats: int = 3) -> float:
    """Least time of some calls."""
    found = []
    for _ in range(repeats):
        begin = clock()
        fit()
        found.append(clock() - begin)
    return min(found)


def measure(name: str, X: NDArray, targets: NDArray, n_jobs: int) -> None:
    """Print the times of one table, at depth 8 and at full depth."""
    clock = time.perf_counter if n_jobs > 1 else time.process_time
    k = targets.shape[1]
    for kind in KINDS:
        y = targets
        if kind == "DecisionTreeClassifier":
            y = (y > np.median(y, axis=0)).astype(int)
        for depth in (8, None):
            ours = getattr(gputree, kind)(max_depth=depth, device="cpu", n_jobs=n_jobs)
            ours.fit(X, y)
            several = seconds(lambda m=ours, y=y: m.fit(X, y), clock)
            ones = [
                seconds(lambda m=ours, y=y, j=j: m.fit(X, y[:, j]), clock)
                for j in range(min(k, ONES))
            ]
            peer = getattr(sklearn_tree, kind)(max_depth=depth)
            theirs = seconds(lambda m=peer, y=y: m.fit(X, y), clock, 1 if len(X) == ROWS else 3)
            times = k * np.mean(ones) / several, theirs / several
            ratios = " | ".join(f"{ratio:.1f}" for ratio in times)
            print(f"| {name} | {kind} | {k} | {depth or 'full'} | {several:.3f} | {ratios} |")
            sys.stdout.flush()


def normal_numbers(counts: list[int], n_jobs: int) -> None:
    """Measure sums of normal numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    for k in counts:
        y = X @ rng.normal(size=(COLUMNS, k)) + 3.0 * rng.normal(size=(ROWS, k))
        measure("normal", X, y, n_jobs)


def real_table(path: str) -> None:
    """Measure the numeric columns of a CSV."""
    table = pd.read_csv(path).select_dtypes("number").dropna(axis=1)
    table = table.loc[:, table.nunique() > 1].to_numpy(np.float64)
    half = table.shape[1] // 2
    y = table[:, :half]
    X = table[:, half:].astype(np.float32)
    name = f"{Path(path).name.partition('.')[0]}, {len(X):,} x {X.shape[1]}"
    measure(name, X, (y - y.mean(axis=0)) / y.std(axis=0), 1)


def main(arguments: list[str]) -> None:
    print(
        "| table | kind | targets | depth | s | one tree a target | scikit-learn |\n"
        "|---|---|---|---|---|---|---|"
    )
    n_jobs = 1 if "--one" in arguments else 2
    arguments = [argument for argument in arguments if argument != "--one"]
    files = [argument for argument in arguments if not argument.isdigit()]
    for path in files:
        real_table(path)
    if len(files) < len(arguments) or not files:
        normal_numbers([int(k) for k in arguments if k.isdigit()] or [2, 10], n_jobs)


if __name__ == "__main__":
    main(sys.argv[1:])
