"""Cases that time `fit`, end to end from a NumPy array."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.compare.libraries import (
    GPUTREE,
    HIST_GRADIENT_BOOSTING,
    SCIKIT_LEARN,
    Fit,
    Fitted,
    gputree,
    one_tree_of_each,
    scikit_learn,
    trees_with_categories,
)
from benchmarks.compare.report import Row
from benchmarks.compare.timing import interleave

DEPTH = 8
CLASSES = 100
WARM_ROWS = 5_000  # enough to leave the path of small nodes, so that every kernel is compiled
REAL_TABLES = ("kddcup99_corrected", "flights_nyc13", "skin", "letter", "cal_housing")

# What a library takes of an array.
Form = Callable[[NDArray], Any]


@dataclass(frozen=True)
class Options:
    """`rows` replaces the size of every generated table."""

    repeats: int = 3
    rows: int | None = None

    def size(self, default: int) -> int:
        return self.rows or default


@dataclass(frozen=True)
class Sample:
    """A table to fit, and rows held out from it."""

    name: str
    X: Any
    y: NDArray
    X_test: Any
    y_test: NDArray

    @classmethod
    def held_out(cls, name: str, X: NDArray, y: NDArray, n_test: int) -> Sample:
        n = len(X) - n_test
        return cls(f"{name}, {n:,} x {X.shape[1]}", X[:n], y[:n], X[n:], y[n:])

    @classmethod
    def whole(cls, name: str, X: NDArray, y: NDArray) -> Sample:
        return cls.held_out(name, X, y, n_test=0)

    def given(self, form: Form) -> Sample:
        """The same rows in another form."""
        return replace(self, X=form(self.X), X_test=form(self.X_test))


def compare(
    case: str,
    sample: Sample,
    fits: Mapping[str, Fit],
    repeats: int,
    forms: Mapping[str, Form] = MappingProxyType({}),
) -> Iterator[Row]:
    """Rows for all libraries on one table; the first of `fits` is gputree.

    Libraries named in `forms` are given the table in that form, which is not timed.
    """
    few = np.linspace(0, len(sample.X) - 1, min(WARM_ROWS, len(sample.X))).astype(int)
    samples = {name: sample.given(forms.get(name, np.asarray)) for name in fits}
    for name, fit in fits.items():
        fit(samples[name].X.take(few, axis=0), sample.y[few])
    actions = {name: partial(fit, samples[name].X, sample.y) for name, fit in fits.items()}
    timings = interleave(actions, repeats)
    for name, timing in timings.items():
        yield Row(
            case,
            sample.name,
            name,
            timing.best,
            timing.median,
            timing.best / timings[GPUTREE].best,
            quality(timing.result, samples[name]),
            notes(timing.result),
        )


def quality(model: Fitted, sample: Sample) -> str:
    """Accuracy or R2 on the rows held out, if any."""
    if not len(sample.X_test):
        return ""
    predicted = model.predict(sample.X_test)
    if sample.y.dtype.kind != "f":
        return f"accuracy {np.mean(predicted == sample.y_test):.4f}"
    residual = np.mean((predicted - sample.y_test) ** 2)
    return f"R2 {1 - residual / np.var(sample.y_test):.4f}"


def notes(model: Fitted) -> str:
    """Size of the tree and the share of (row, feature) pairs that were refined."""
    found = []
    if hasattr(model, "get_n_leaves"):
        found.append(f"{model.get_n_leaves():,} leaves")
    if (share := refined_share(model)) is not None:
        found.append(f"{share:.2%} refined")
    return ", ".join(found)


def refined_share(model: Fitted) -> float | None:
    """Share of (row, feature) pairs that had to be sorted, where a model reports it."""
    report = getattr(model, "growth_report_", None)
    if report is None or not report["scanned_pairs"]:
        return None
    return report["refined_pairs"] / report["scanned_pairs"]


def _trees(regression: bool = False, **parameters: object) -> dict[str, Fit]:
    return {
        GPUTREE: gputree(regression, **parameters),
        SCIKIT_LEARN: scikit_learn(regression, **parameters),
    }


# ------------------------------------------------------------------ cases
def depth8(options: Options) -> Iterator[Row]:
    """One tree of depth 8 in every library."""
    X, y = data.binary_table(options.size(1_000_000) + data.TEST_ROWS)
    sample = Sample.held_out("normal", X, y, data.TEST_ROWS)
    yield from compare("depth8", sample, one_tree_of_each(DEPTH), options.repeats)


def wide(options: Options) -> Iterator[Row]:
    """Depth 8 on 1,000 columns, in every library."""
    X, y = data.binary_table(options.size(100_000) + data.TEST_ROWS, 1_000)
    sample = Sample.held_out("normal", X, y, data.TEST_ROWS)
    yield from compare("wide", sample, one_tree_of_each(DEPTH), options.repeats)


def classes(options: Options) -> Iterator[Row]:
    """Depth 8, 100 classes, in every library; those that boost grow a tree a class."""
    X, y = data.classes_table(options.size(100_000) + data.TEST_ROWS, 28, CLASSES)
    sample = Sample.held_out(f"{CLASSES} classes", X, y, data.TEST_ROWS)
    yield from compare("classes", sample, one_tree_of_each(DEPTH, CLASSES), options.repeats)


def mixed(options: Options) -> Iterator[Row]:
    """Depth 8 on numbers and categories, codes in an array; HistGradientBoosting from a frame."""
    X, y, nominal = data.mixed_codes(options.size(1_000_000) + data.TEST_ROWS)
    sample = Sample.held_out("numbers and categories", X, y, data.TEST_ROWS)
    fits = trees_with_categories(DEPTH, nominal)
    forms = {HIST_GRADIENT_BOOSTING: partial(data.coded_frame, nominal=nominal)}
    yield from compare("mixed", sample, fits, options.repeats, forms)


def unlimited(options: Options) -> Iterator[Row]:
    """Grown until the leaves are pure."""
    for n in [options.rows] if options.rows else [100_000, 1_000_000]:
        X, y = data.binary_table(n + data.TEST_ROWS)
        sample = Sample.held_out("normal", X, y, data.TEST_ROWS)
        yield from compare("unlimited", sample, _trees(), options.repeats)


def covertype(options: Options) -> Iterator[Row]:
    """Unlimited depth on a generated table shaped like covertype."""
    sample = Sample.whole("covertype-like", *data.covertype_like(options.size(580_000)))
    yield from compare("covertype", sample, _trees(), options.repeats)


def regression(options: Options) -> Iterator[Row]:
    """Squared error, depth 8."""
    X, y = data.regression_table(options.size(1_000_000) + data.TEST_ROWS)
    sample = Sample.held_out("normal", X, y, data.TEST_ROWS)
    fits = _trees(regression=True, max_depth=DEPTH)
    yield from compare("regression", sample, fits, options.repeats)


def absolute_error(options: Options) -> Iterator[Row]:
    """Absolute error, depth 8 and unlimited."""
    X, y = data.regression_table(options.size(100_000) + data.TEST_ROWS)
    sample = Sample.held_out("normal", X, y, data.TEST_ROWS)
    for depth in (DEPTH, None):
        fits = _trees(regression=True, max_depth=depth, criterion="absolute_error")
        yield from compare("absolute_error", sample, fits, options.repeats)


def real(options: Options) -> Iterator[Row]:
    """Unlimited depth on the real tables of GPUTREE_DATA; none there, no rows."""
    for name in REAL_TABLES:
        try:
            table = data.real_table(name)
        except data.TableAbsent as absent:
            print(f"{name} is left out: {absent}", file=sys.stderr)
            continue
        sample = Sample.whole(name, table.X, table.y)
        yield from compare("real", sample, _trees(table.is_regression), options.repeats)


def exactness(options: Options) -> Iterator[Row]:
    """Share of bins refined, from easy tables to pure noise, at nodes above the finish."""
    n = options.size(100_000)
    noise = np.random.default_rng(1)
    X, y = data.binary_table(n)
    tables = {
        "normal": (X, y),
        "covertype-like": data.covertype_like(n),
        "noise, 2 classes": (X, noise.integers(2, size=n)),
        "noise, 7 classes": (X, noise.integers(7, size=n)),
    }
    for name, table in tables.items():
        fits = {GPUTREE: gputree(max_depth=DEPTH)}
        yield from compare("exactness", Sample.whole(name, *table), fits, repeats=1)
    fits = {GPUTREE: gputree(regression=True, max_depth=DEPTH)}
    targets = Sample.whole("regression", *data.regression_table(n))
    yield from compare("exactness", targets, fits, repeats=1)
