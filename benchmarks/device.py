"""A CUDA device met for the first time: what is there, and whether it grows the CPU's trees.

    python -m benchmarks.device machine     versions; a module of kernels compiles and runs
    python -m benchmarks.device bits        trees of 20,000 rows on both devices, bit for bit
    python -m benchmarks.device small       trees of 2,000 rows on the device, for sanitizers

Each is short, and needs nothing but gputree and CuPy. Exits with 1 where something is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu import describe_machine
from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor

BITS_ROWS, SMALL_ROWS = 20_000, 2_000
FIELDS = ("feature", "threshold", "statistics", "impurity", "gain", "n_rows", "missing_child")

# Name, estimator, its parameters, and whether rows have weights: together, every kernel.
MODELS: list[tuple[str, type, dict[str, Any], bool]] = [
    ("gini, exact", DecisionTreeClassifier, {}, False),
    ("gini, refined", DecisionTreeClassifier, {"max_depth": 5, "max_bins": 16}, False),
    ("gini, best first", DecisionTreeClassifier, {"max_leaf_nodes": 30}, False),
    ("gini, binned", DecisionTreeClassifier, {"splitter": "binned"}, False),
    ("gini, weighted", DecisionTreeClassifier, {"min_samples_leaf": 5}, True),
    ("entropy, drawn columns", DecisionTreeClassifier, {"criterion": "entropy", "max_features": 3},
     False),
    ("squared error", DecisionTreeRegressor, {"max_depth": 8}, False),
    ("squared error, weighted", DecisionTreeRegressor, {}, True),
    ("categories", DecisionTreeClassifier, {"categorical_features": [6, 7]}, False),
    ("C4.5", C45Classifier, {"categorical_features": [6, 7]}, False),
]  # fmt: skip


def table(rows: int) -> tuple[NDArray, NDArray, NDArray]:
    """Eight columns: distinct values, ties, missing values, categories; classes and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 8)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = np.exp(4 * X[:, 2])
    X[:, 6:] = rng.integers(0, [3, 40], (rows, 2))
    y = (X[:, 0] + X[:, 1] * X[:, 3] + (X[:, 6] == 1) + rng.normal(size=rows) > 0.3).astype(int)
    X[rng.random((rows, 8)) < [0, 0.1, 0.02, 0, 0.5, 0, 0.1, 0]] = np.nan
    return X, y, rng.integers(1, 4, rows).astype(float)


def grown(rows: int, device: str) -> Iterator[tuple[str, Any, float]]:
    """Name, tree and seconds of each of the models."""
    X, y, weight = table(rows)
    for name, kind, parameters, weighted in MODELS:
        model = (
            kind(device=device, random_state=0)
            if kind is not C45Classifier
            else kind(device=device)
        )
        started = time.perf_counter()
        model.set_params(**parameters).fit(X, y, weight if weighted else None)
        yield name, model.tree_, time.perf_counter() - started


def differences(expected: Any, found: Any) -> list[str]:
    """Fields of two trees that are not equal to the bit."""
    pairs = {name: (getattr(expected, name), getattr(found, name)) for name in FIELDS}
    return [
        name for name, (a, b) in pairs.items() if a.dtype != b.dtype or a.tobytes() != b.tobytes()
    ]


def machine() -> bool:
    """Print what is there; one module is compiled and run."""
    cupy = importlib.import_module("cupy")
    print(json.dumps(describe_machine(os.cpu_count() or 1), indent=2))
    from gputree.backends.cuda.encode import inspect_columns

    started = time.perf_counter()
    values = np.zeros((1000, 3), np.float32)
    values[7, 1], values[9, 2] = np.nan, np.inf
    seen = [flags.tolist() for flags in inspect_columns(cupy.asarray(values))]
    print(f"a module compiled and ran in {time.perf_counter() - started:.2f} s")
    return seen == [[False, True, False], [False, False, True]]


def bits(rows: int) -> bool:
    """Grow each tree on the CPU and on the device; print where they differ."""
    equal = True
    for (name, expected, cpu), (_, found, cuda) in zip(
        grown(rows, "cpu"), grown(rows, "cuda"), strict=True
    ):
        wrong = differences(expected, found)
        equal = equal and not wrong
        verdict = f"DIFFERENT: {', '.join(wrong)}" if wrong else "equal"
        print(f"{name:26} {expected.feature.size:7,} nodes  CPU {cpu:6.2f} s  CUDA {cuda:6.2f} s  "
              f"{verdict}", flush=True)  # fmt: skip
    return equal


def small(rows: int) -> bool:
    """Grow each tree on the device alone, in memory of no pool, whose bounds sanitizers see."""
    cupy = importlib.import_module("cupy")
    if hasattr(cupy.cuda, "set_allocator"):
        cupy.cuda.set_allocator(None)
    for name, tree, seconds in grown(rows, "cuda"):
        print(f"{name:26} {tree.feature.size:7,} nodes  {seconds:6.2f} s", flush=True)
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.device",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("machine", "bits", "small"))
    parser.add_argument("--rows", type=int)
    options = parser.parse_args(arguments)
    if options.what == "machine":
        right = machine()
    elif options.what == "bits":
        right = bits(options.rows or BITS_ROWS)
    else:
        right = small(options.rows or SMALL_ROWS)
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
