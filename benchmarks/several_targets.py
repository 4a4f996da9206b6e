"""One tree of several targets: seconds by the clock, beside one tree a target and scikit-learn's.

    python -m benchmarks.several_targets [k ...]     # 2 and 10 targets

100,000 x 28 normal numbers; targets are sums of the columns and noise, or their signs (multilabel).
Trees of gputree use two threads, those of scikit-learn one, which is what it has. The least of
three fits counts, one of scikit-learn's; kernels are compiled before.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import tree as sklearn_tree

import gputree

ROWS, COLUMNS = 100_000, 28
KINDS = ("DecisionTreeRegressor", "DecisionTreeClassifier")
ONES = 3  # targets that are fitted by themselves: their mean stands for all


def seconds(fit: Callable[[], Any], repeats: int = 3) -> float:
    """Least time of some calls."""
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        fit()
        found.append(time.perf_counter() - begin)
    return min(found)


def main(counts: list[int]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    print(
        "| kind | targets | depth | s | one tree a target | scikit-learn |\n"
        "|---|---|---|---|---|---|"
    )
    for kind in KINDS:
        for k in counts:
            y = X @ rng.normal(size=(COLUMNS, k)) + 3.0 * rng.normal(size=(ROWS, k))
            if kind == "DecisionTreeClassifier":
                y = (y > 0).astype(int)
            for depth in (8, None):
                ours = getattr(gputree, kind)(max_depth=depth, device="cpu", n_jobs=2)
                ours.fit(X, y)
                several = seconds(lambda m=ours, y=y: m.fit(X, y))
                ones = [
                    seconds(lambda m=ours, y=y, j=j: m.fit(X, y[:, j])) for j in range(min(k, ONES))
                ]
                peer = getattr(sklearn_tree, kind)(max_depth=depth)
                times = (
                    k * np.mean(ones) / several,
                    seconds(lambda m=peer, y=y: m.fit(X, y), 1) / several,
                )
                ratios = " | ".join(f"{ratio:.1f}" for ratio in times)
                print(
                    f"| {kind} | {k} | {depth or 'full'} | {several:.2f} | {ratios} |", flush=True
                )


if __name__ == "__main__":
    main([int(k) for k in sys.argv[1:]] or [2, 10])
