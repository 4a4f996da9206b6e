"""Ratios of processor time that hold on a busy machine, one use beside another.

    python -m benchmarks.ratios                    # all, which takes a while
    python -m benchmarks.ratios grid float64       # some of the cases
    python -m benchmarks.ratios predict --rows 100000

The two uses run in turn in one process, and the best of each counts. The time of all threads is
added up, so that a library that uses one is not at a disadvantage.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV

from benchmarks import data
from benchmarks.compare.fits import DEPTH
from benchmarks.compare.libraries import gputree, scikit_learn
from benchmarks.compare.timing import THREADS, interleave
from gputree import CodedTable, DecisionTreeClassifier

Y = NDArray[np.integer]

# Twenty candidates, and the folds of each.
GRID = {"max_depth": [4, 6, 8, 10, 12], "min_samples_leaf": [1, 10, 100, 1000]}
FOLDS = 3

CATEGORIES = 100_000


class Pair(NamedTuple):
    """Two uses: the ratio is the time of the second over that of the first."""

    name: str
    first: tuple[str, Callable[[], Any]]
    second: tuple[str, Callable[[], Any]]
    repeats: int = 5


def predict(rows: int | None) -> Iterator[Pair]:
    """Classes of all rows, by trees grown from all of them."""
    X, y = data.binary_table(rows or 1_000_000)
    for name, depth in {"depth 8": DEPTH, "grown out": None}.items():
        ours, theirs = (tree(max_depth=depth)(X, y) for tree in (gputree, scikit_learn))
        for method in ("predict", "predict_proba"):
            yield Pair(
                f"{method}, {len(X):,} x {X.shape[1]}, {name}",
                ("gputree", partial(getattr(ours, method), X)),
                ("scikit-learn", partial(getattr(theirs, method), X)),
                repeats=9,
            )


def grid(rows: int | None) -> Iterator[Pair]:
    """A grid search over twenty candidates, on a table that is coded once and on an array."""
    X, y = data.binary_table(rows or 200_000)
    search = GridSearchCV(DecisionTreeClassifier(n_jobs=THREADS, device="cpu"), GRID, cv=FOLDS)
    yield Pair(
        f"GridSearchCV, 20 candidates, {FOLDS} folds, {len(X):,} x {X.shape[1]}",
        ("CodedTable", lambda: search.fit(CodedTable(X, device="cpu"), y)),
        ("array", lambda: search.fit(X, y)),
        repeats=2,
    )


def float64(rows: int | None) -> Iterator[Pair]:
    """The same values in float64; then float64 values that float32 does not hold."""
    X, y = data.binary_table(rows or 1_000_000)
    shift = np.random.default_rng(1).uniform(-1e-9, 1e-9, X.shape)
    fit = gputree(max_depth=DEPTH)
    for name, wide in {"as they are": X.astype(np.float64), "of 52 bits": X + shift}.items():
        yield Pair(
            f"fit, {len(X):,} x {X.shape[1]}, depth {DEPTH}, values {name}",
            ("float32", partial(fit, X, y)),
            ("float64", partial(fit, wide, y)),
        )


def iris(rows: int | None) -> Iterator[Pair]:
    """A fit that is all overhead."""
    X, y = load_iris(return_X_y=True)
    first, second = (lambda tree=tree: tree()(X, y) for tree in (gputree, scikit_learn))
    yield Pair("fit, iris", ("gputree", first), ("scikit-learn", second), repeats=500)


def categories(rows: int | None) -> Iterator[Pair]:
    """A column of very many categories beside 14 of numbers, and these alone."""
    n = rows or 1_000_000
    for depth in (DEPTH, None):
        for kind, skewed in {"common and rare": True, "equally frequent": False}.items():
            X, y, nominal = data.coded_categories(n, 14, (CATEGORIES,), skewed=skewed)
            fits = [
                partial(gputree(max_depth=depth, categorical_features=listed), numbers, y)
                for numbers, listed in ((np.ascontiguousarray(X[:, :14]), []), (X, nominal))
            ]
            yield Pair(
                f"fit, {n:,} x 14 and {CATEGORIES:,} categories, {kind}, max_depth={depth}",
                ("without", fits[0]),
                ("with", fits[1]),
                repeats=3,
            )


def mixed(rows: int | None) -> Iterator[Pair]:
    """Columns of 3 to 200 categories beside 14 of numbers, and their codes as numbers."""
    X, y, nominal = data.mixed_codes(rows or 1_000_000)
    yield Pair(
        f"fit, {len(X):,} x {X.shape[1] - len(nominal)} and {len(nominal)} of codes, depth {DEPTH}",
        ("as numbers", partial(gputree(max_depth=DEPTH, categorical_features=[]), X, y)),
        ("as categories", partial(gputree(max_depth=DEPTH, categorical_features=nominal), X, y)),
    )


CASES: dict[str, Callable[[int | None], Iterator[Pair]]] = {
    "predict": predict,
    "grid": grid,
    "float64": float64,
    "iris": iris,
    "categories": categories,
    "mixed": mixed,
}


def measure(pair: Pair) -> str:
    """A line that tells both times and their ratio."""
    actions = dict([pair.first, pair.second])
    interleave(actions, 1, time.process_time)  # compiles
    timings = interleave(actions, pair.repeats, time.process_time)
    first, second = (timings[name].best for name in actions)
    times = ", ".join(f"{name} {timings[name].best * 1e3:,.2f} ms" for name in actions)
    return f"{pair.name}: {times}: {second / first:.2f}"


def main() -> None:
    """Print one line a pair."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rows", type=int)
    chosen = parser.parse_args()
    for name in chosen.cases or CASES:
        for pair in CASES[name](chosen.rows):
            print(measure(pair), flush=True)


if __name__ == "__main__":
    main()
