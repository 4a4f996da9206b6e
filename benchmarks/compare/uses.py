"""Cases about the use of a tree: small fits, prediction, memory, the first fit of a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris

from benchmarks import data
from benchmarks.compare.fits import DEPTH, Options
from benchmarks.compare.libraries import GPUTREE, SCIKIT_LEARN, gputree, scikit_learn
from benchmarks.compare.report import Row
from benchmarks.compare.timing import Timing, interleave

IRIS_RUNS = 200
COLD_ROWS = 20_000  # large enough to need every kernel
TREES = {GPUTREE: gputree, SCIKIT_LEARN: scikit_learn}
ROOT = Path(__file__).parents[2]


def _rows(case: str, table: str, timings: Mapping[str, Timing]) -> Iterator[Row]:
    ours = timings[GPUTREE].best
    for name, timing in timings.items():
        yield Row(case, table, name, timing.best, timing.median, timing.best / ours)


def iris(options: Options) -> Iterator[Row]:
    """A table so small that only overhead counts; kernels are compiled."""
    X, y = load_iris(return_X_y=True)
    actions = {name: partial(tree(), X, y) for name, tree in TREES.items()}
    interleave(actions, repeats=3)
    yield from _rows("iris", "iris, 150 x 4", interleave(actions, IRIS_RUNS))


def predict(options: Options) -> Iterator[Row]:
    """Classes for many rows, from trees grown on a tenth of them."""
    X, y = data.binary_table(options.size(1_000_000))
    n = max(len(X) // 10, 1)
    for name, depth in {"depth 8": DEPTH, "unlimited": None}.items():
        models = {key: tree(max_depth=depth)(X[:n], y[:n]) for key, tree in TREES.items()}
        actions = {key: partial(model.predict, X) for key, model in models.items()}
        interleave({key: partial(model.predict, X[:n]) for key, model in models.items()}, 1)
        table = f"normal, {len(X):,} x {X.shape[1]}, {name}"
        yield from _rows("predict", table, interleave(actions, options.repeats))


def memory(options: Options) -> Iterator[Row]:
    """Peak memory of `fit` above the input, as a multiple of the input's bytes."""
    X, y = data.binary_table(options.size(1_000_000))
    with tempfile.TemporaryDirectory() as folder:
        _save(folder, X, y)
        for name, depth in {"depth 8": DEPTH, "unlimited": None}.items():
            table = f"normal, {len(X):,} x {X.shape[1]}, {name}"
            peaks = {key: _peak_over_input(key, folder, depth) for key in TREES}
            for key, peak in peaks.items():
                ratio = peak / peaks[GPUTREE]
                yield Row("memory", table, key, peak, peak, ratio, unit="x")


def _peak_over_input(library: str, folder: str, depth: int | None) -> float:
    answer = _fresh_process("memory", library, folder, depth)
    return answer["peak_bytes"] / answer["input_bytes"]


def cold(options: Options) -> Iterator[Row]:
    """Import plus first fit in a fresh process: numba's cache empty, then warm."""
    tables = {f"normal, {COLD_ROWS:,} x 28": data.binary_table(COLD_ROWS)}
    tables["iris, 150 x 4"] = load_iris(return_X_y=True)
    with tempfile.TemporaryDirectory() as folder:
        for table, (X, y) in tables.items():
            _save(folder, X, y)
            with tempfile.TemporaryDirectory() as cache:
                first = {key: [_import_and_fit(key, folder, cache)] for key in TREES}
                later = {key: [] for key in TREES}
                for _ in range(options.repeats):
                    for key in TREES:
                        later[key].append(_import_and_fit(key, folder, cache))
            for kernels, seconds in {"cold": first, "warm": later}.items():
                timings = {key: Timing(runs) for key, runs in seconds.items()}
                yield from _rows("cold", f"{table}, {kernels} cache", timings)


def _import_and_fit(library: str, folder: str, cache: str) -> float:
    environment = {"NUMBA_CACHE_DIR": cache, "GPUTREE_JIT": "auto"}
    return _fresh_process("cold", library, folder, None, **environment)["seconds"]


def _save(folder: str, X: np.ndarray, y: np.ndarray) -> None:
    np.save(Path(folder, "X.npy"), X)
    np.save(Path(folder, "y.npy"), y)


def _fresh_process(
    what: str, library: str, folder: str, depth: int | None, **environment: str
) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.compare.process", what, library, folder]
    result = subprocess.run(
        [*command, json.dumps(depth)],
        env=os.environ | environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(result.stdout)
