"""Scores of 28 columns and their cut points by MDL, in processor seconds, beside Orange's.

    python -m benchmarks.discretization            # 200,000 rows for scores, 1,000,000 for cuts
    python -m benchmarks.discretization 20000      # rows of both, for a first look
    python -m benchmarks.discretization --orange   # with Orange3 installed: its EntropyMDL, too

Processor time of all threads, the least of three runs after one that compiles.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree import (
    MDLPDiscretizer,
    gini_gain,
    information_gain,
    rank_features,
    variance_reduction,
)

COLUMNS = 28
RUNS = 3


def normal_table(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Normal columns and two classes, about which the first three columns tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, COLUMNS))
    return X, (X[:, :3].sum(axis=1) + rng.normal(size=rows) > 0).astype(np.int64)


def measured(name: str, work: Callable[[], Any], runs: int = RUNS) -> Any:
    """Print processor and wall seconds of the fastest of some runs; the result of one."""
    result = work()
    seconds = []
    for _ in range(runs):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        seconds.append((time.process_time() - processor, time.perf_counter() - wall))
    print(
        f"{name:44}{min(seconds)[0]:8.2f} s of the processor, {min(seconds)[1]:.2f} s", flush=True
    )
    return result


def measure_scores(rows: int) -> None:
    """All ways to score the columns."""
    X, y = normal_table(rows)
    print(f"{rows:,} rows x {COLUMNS} columns, float64")
    measured("information_gain", lambda: information_gain(X, y))
    measured("gini_gain", lambda: gini_gain(X, y))
    measured("variance_reduction", lambda: variance_reduction(X, y + X[:, 0]))
    measured('information_gain, numeric="mdl"', lambda: information_gain(X, y, numeric="mdl"))
    measured("rank_features", lambda: rank_features(X, y))


def measure_cuts(rows: int, beside_orange: bool) -> None:
    """Cut points of all columns, of two number formats."""
    X, y = normal_table(rows)
    print(f"{rows:,} rows x {COLUMNS} columns")
    for dtype in (np.float64, np.float32):
        table = X.astype(dtype)
        name = f"MDLPDiscretizer, {np.dtype(dtype).name}"
        found = measured(f"{name}, fit", lambda table=table: MDLPDiscretizer().fit(table, y))
        measured(f"{name}, transform", lambda table=table, found=found: found.transform(table))
    if beside_orange:
        ours = MDLPDiscretizer().fit(X, y).cut_points_
        theirs = measured("Orange EntropyMDL, float64", lambda: orange_cuts(X, y), runs=1)
        equal = [np.allclose(a, b) for a, b in zip(ours, theirs, strict=True) if a.size == len(b)]
        print(f"columns with the same cut points: {sum(equal)} of {COLUMNS}")


def orange_cuts(X: NDArray[np.float64], y: NDArray[np.int64]) -> list[list[float]]:
    """Cut points as Orange finds them; it cuts a column that tells nothing not at all."""
    from Orange.data import ContinuousVariable, DiscreteVariable, Domain, Table
    from Orange.preprocess.discretize import EntropyMDL

    attributes = [ContinuousVariable(f"x{f}") for f in range(X.shape[1])]
    labels = DiscreteVariable("y", tuple(map(str, np.unique(y))))
    table = Table.from_numpy(Domain(attributes, labels), X, y.astype(float))
    discretize = EntropyMDL()
    found = [discretize(table, attribute) for attribute in attributes]
    return [list(variable.compute_value.points) for variable in found]


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?")
    parser.add_argument("--orange", action="store_true")
    options = parser.parse_args()
    measure_scores(options.rows or 200_000)
    measure_cuts(options.rows or 1_000_000, options.orange)


if __name__ == "__main__":
    main()
