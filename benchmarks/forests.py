"""Forests beside those of other libraries: ratios of one run.

    python -m benchmarks.forests                              # 20,000 rows, 20 trees
    python -m benchmarks.forests --rows 200000 --trees 100 --seeds 3
    python -m benchmarks.forests --kinds sqrt extra --columns 400
    python -m benchmarks.forests --kinds sqrt --peers lightgbm xgboost ydf fastforest
    GPUTREE_DATA=... python -m benchmarks.forests --tables --peers intelex    # real ones

Each forest is grown in a process of its own, after one tree that compiles, so that its memory is
seen: seconds of the clock (or of processors, --cpu), of fit, of the first prediction, which some
libraries prepare for, and of a later one; the score on rows
that it was not grown on (100,000 of a generated table, half of a real one, whose rows are drawn by
seed); the most memory of the process beyond that before growth. The median over seeds.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from benchmarks.data import TEST_ROWS, binary_table, real_names, real_table, regression_table

# Name: task, `max_features`, and the estimators' names.
KINDS: dict[str, tuple[str, Any, str]] = {
    "sqrt": ("classification", "sqrt", "RandomForestClassifier"),
    "all": ("classification", None, "RandomForestClassifier"),
    "regression": ("regression", 1.0, "RandomForestRegressor"),
    "extra": ("classification", "sqrt", "ExtraTreesClassifier"),
    "extra_regression": ("regression", 1.0, "ExtraTreesRegressor"),
}
OURS, THEIRS = "gputree", "scikit-learn"
TIMES = ("fit", "first", "predict")

# Beyond scikit-learn's; they grow no extremely randomized trees. "intelex" is scikit-learn-intelex,
# which bins columns into 256 as a default.
PEERS = ("lightgbm", "xgboost", "ydf", "fastforest", "intelex")
PACKAGES = {OURS: "gputree", THEIRS: "sklearn.ensemble", "intelex": "sklearnex.ensemble"}


class Ydf:
    """YDF's forest behind the methods of the others."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def fit(self, X: NDArray, y: NDArray) -> Ydf:
        import ydf

        ydf.verbose(0)
        learner = ydf.RandomForestLearner(label="y", **self.options)
        self.model = learner.train({"x": X, "y": y})
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the model."""
        return len(self.model.serialize())

    def predict_proba(self, X: NDArray) -> NDArray:
        of_second = self.model.predict({"x": X})
        return np.column_stack((1 - of_second, of_second))

    def predict(self, X: NDArray) -> NDArray:
        found: NDArray = self.model.predict({"x": X})
        return found > 0.5 if self.options["task"].name == "CLASSIFICATION" else found


def new_forest(
    library: str, kind: str, trees: int, seed: int, threads: int, d: int, depth: int | None = None
) -> Any:
    """A forest of a library, of trees of a depth, or of full depth, or as deep as is bearable."""
    task, columns, name = KINDS[kind]
    options: dict[str, Any] = {"n_estimators": trees, "random_state": seed, "n_jobs": threads}
    classes, share = task == "classification", int(d**0.5) / d if columns == "sqrt" else 1.0
    if library == "lightgbm":
        import lightgbm

        return (lightgbm.LGBMClassifier if classes else lightgbm.LGBMRegressor)(
            boosting_type="rf", subsample=0.632, subsample_freq=1,
            num_leaves=min(2 ** (depth or 12), 4096), max_depth=depth or -1,
            feature_fraction_bynode=share, min_child_samples=1, verbose=-1, **options,
        )  # fmt: skip
    if library == "xgboost":
        import xgboost

        return (xgboost.XGBRFClassifier if classes else xgboost.XGBRFRegressor)(
            max_depth=depth or 16, subsample=0.632, colsample_bynode=share, min_child_weight=0.0,
            reg_lambda=0.0, **options,
        )  # fmt: skip
    if library == "ydf":
        import ydf

        return Ydf(
            task=ydf.Task.CLASSIFICATION if classes else ydf.Task.REGRESSION, num_trees=trees,
            num_candidate_attributes_ratio=share, max_depth=depth or -1, min_examples=1,
            winner_take_all=False, compute_oob_performances=False, random_seed=seed,
            num_threads=threads,
        )  # fmt: skip
    if library == "fastforest":  # approximate: a node looks at 320 of its rows
        import fastforest

        return (fastforest.FastForestClassifier if classes else fastforest.FastForest)(
            n_trees=trees, min_node_size=2, bootstrap_fraction=1.0, max_features=share, seed=seed
        )
    package = __import__(PACKAGES[library], fromlist=[name])
    return getattr(package, name)(max_features=columns, max_depth=depth, **options)


def generated(kind: str, rows: int, columns: int, seed: int, others: int) -> tuple[NDArray, ...]:
    """Rows to grow on with their targets, and others to score."""
    make = binary_table if KINDS[kind][0] == "classification" else regression_table
    X, y = make(rows + others, columns, seed=seed)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def real(name: str, seed: int) -> tuple[NDArray, ...]:
    """Halves of a real table, its categories as numbers."""
    table = real_table(name)
    order = np.random.default_rng(seed).permutation(len(table.y))
    grown, held = np.array_split(order, 2)
    X = table.X.astype(np.float32)
    return X[grown], table.y[grown], X[held], table.y[held]


def measure(library: str, table: str, seed: int, given: argparse.Namespace) -> None:
    """Print the figures of one forest; `table` is "rows x columns", or a real one's name."""
    kind, clock = given.kinds[0], time.process_time if given.cpu else time.perf_counter
    rows, by, columns = table.partition("x")
    is_generated = by and rows.isdigit()
    X, y, test, truth = (
        generated(kind, int(rows), int(columns), seed, given.predicted)
        if is_generated
        else real(table, seed)
    )
    options = seed, given.threads, X.shape[1]
    new_forest(library, kind, 1, *options).fit(X, y).predict(test[:100])  # compiles
    before, runs = peak(), []
    for _ in range(given.repeats):
        start = clock()
        forest = new_forest(library, kind, given.trees, *options).fit(X, y)
        grown = clock()
        forest.predict(test)
        predicted = clock()
        answers = forest.predict(test)
        runs.append((grown - start, predicted - grown, clock() - predicted))
    score = accuracy_score if KINDS[kind][0] == "classification" else r2_score
    found = dict(zip(TIMES, map(min, zip(*runs, strict=True)), strict=True))
    found |= {"memory": peak() - before, "score": float(score(truth, answers))}
    print(json.dumps(found))


def peak() -> float:
    """The most memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(library: str, kind: str, table: str, given: argparse.Namespace) -> dict[str, float]:
    """Medians over seeds of the figures of a library."""
    runs = []
    for seed in range(given.seeds):
        arguments = [library, table, seed, "--kinds", kind, "--trees", given.trees]
        arguments += ["--threads", given.threads, "--predicted", given.predicted]
        arguments += ["--repeats", given.repeats]
        arguments += ["--cpu"] if given.cpu else []
        command = [sys.executable, "-m", "benchmarks.forests", "--one", *map(str, arguments)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return {name: median(run[name] for run in runs) for name in runs[0]}


def compare(kind: str, table: str, given: argparse.Namespace) -> None:
    """Print a row for each library."""
    ours: dict[str, float] = {}
    peers = [] if kind.startswith("extra") else given.peers
    for library in (OURS, THEIRS, *peers):
        found = measured(library, kind, table, given)
        ours = ours or found
        times = [text for n in TIMES for text in (f"{found[n]:.3f}", f"{found[n] / ours[n]:.2f}")]
        print(
            f"| {table if given.tables is not None else kind} | {library} | {' | '.join(times)} | "
            f"{found['score']:.4f} | {found['memory']:.0f} |",
            flush=True,
        )


def main() -> None:
    """Print a table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=28)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1, help="fits of a process; the least time")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=[])
    parser.add_argument("--tables", nargs="*", help="real tables, by name; all of 2,000 rows")
    parser.add_argument("--predicted", type=int, default=TEST_ROWS, help="rows, of generated ones")
    parser.add_argument("--cpu", action="store_true", help="seconds of processors, of all threads")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        library, table, seed = given.one
        measure(library, table, int(seed), given)
        return
    print(f"{given.trees} trees, {given.threads} threads, {given.seeds} seeds")
    columns = "first predict, s | times | later, s | times | score | MiB |"
    print(f"| forest | library | fit, s | times gputree | {columns}")
    print("|---|---|---|---|---|---|---|---|---|---|")
    if given.tables is None:
        for kind in given.kinds:
            compare(kind, f"{given.rows}x{given.columns}", given)
        return
    for task, kind in (("classification", "sqrt"), ("regression", "regression")):
        for name in real_names(task):
            if name in given.tables or (not given.tables and len(real_table(name).y) >= 2_000):
                compare(kind, name, given)


if __name__ == "__main__":
    main()
