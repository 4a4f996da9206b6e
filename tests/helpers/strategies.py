"""Tables and tasks for tests, and the Hypothesis strategies that draw them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends.base import Limits, Rows, Task
from gputree.criteria import Entropy, Gini, WideGini
from gputree.criteria.named import CRITERIA, fix, new_criterion

CLASS_CRITERIA = {"gini": Gini, "wide_gini": WideGini, "entropy": Entropy}

# Few criteria x weights: each pair is compiled once, which takes some seconds.
PROBLEMS = (
    ("gini", False),
    ("gini", True),
    ("entropy", False),
    ("wide_gini", True),
    ("squared_error", False),
    ("squared_error", True),
    ("poisson", False),
    ("poisson", True),
)
NO_LIMITS = {
    "max_depth": 2**31 - 1,
    "min_samples_split": 2,
    "min_samples_leaf": 1,
    "min_weight_leaf": 0,
    "min_decrease": -np.inf,
}


class Sample(NamedTuple):
    """A table with its targets: class indices, or floats."""

    values: np.ndarray  # (n, d), C-contiguous
    y: np.ndarray  # (n,)
    weight: np.ndarray | None  # (n,) float64

    def take(self, rows) -> Sample:
        """Return the given rows, in that order."""
        weight = None if self.weight is None else self.weight[rows]
        return Sample(np.ascontiguousarray(self.values[rows]), self.y[rows], weight)

    @property
    def missing(self) -> np.ndarray:
        """Columns that hold missing values."""
        return np.isnan(self.values).any(axis=0)


def make_task(criterion: str, sample: Sample, *, exact=True, n_classes=None, **limits) -> Task:
    """The task of growing a tree on `sample`; limits as in `Limits`, none by default."""
    weights = fix_weights(sample.weight, len(sample.y))
    limits = {"max_features": sample.values.shape[1], "rounded": False} | NO_LIMITS | limits
    if not is_regression(criterion):
        kind = CLASS_CRITERIA[criterion](n_classes or int(sample.y.max()) + 1, weights.unit)
        target = sample.y.astype(np.uint8)
        return Task(kind, Limits(**limits), Rows(target, weights.weight, None, None), exact)
    targets = fix(criterion, suit(criterion, sample.y.astype(np.float64)), weights)
    limits["rounded"] = targets.rounded
    rows = Rows(targets.target, weights.weight, targets.square, targets.square_rest)
    return Task(new_criterion(criterion, 0, weights, targets), Limits(**limits), rows, exact)


def is_regression(criterion: str) -> bool:
    """Return True for a criterion of targets, False for one of classes."""
    return criterion in CRITERIA["regression"]


def suit(criterion: str, y: np.ndarray) -> np.ndarray:
    """Targets that the criterion takes, made of `y`: many zeros and ties for Poisson."""
    if criterion != "poisson":
        return y
    return np.maximum(np.floor(4.0 * np.abs(y)) / 4.0 - 0.25, 0.0)


def examples(n: int, **others: Any) -> settings:
    """Hypothesis draws `n` examples where its profile says 25, and fewer where that says less."""
    return settings(max_examples=max(1, n * settings.default.max_examples // 25), **others)


# -------------------------------------------------------------- random tables
def _column(rng: np.random.Generator, n: int) -> np.ndarray:
    """One column: normal, skewed, tied, rounded, heavy on one value, extreme or constant."""
    kind = rng.integers(8)
    normal = rng.normal(size=n)
    if kind == 0:
        return np.exp(6.0 * normal)
    if kind == 1:
        return rng.integers(0, 3, n).astype(float)
    if kind == 2:
        return np.round(normal, 1)
    if kind == 3:
        return np.where(rng.random(n) < 0.7, 0.0, normal)
    if kind == 4:
        return rng.choice([-3e38, -1e-40, -0.0, 0.0, 1e-40, 1.5, np.nextafter(1.5, 2), 3e38], n)
    if kind == 5:
        return np.full(n, 2.5)
    return normal


def random_sample(seed: int, n: int, d: int, n_classes: int, weighted=False) -> Sample:
    """A table of columns of all kinds; `n_classes` 0 for regression. Rows may repeat."""
    rng = np.random.default_rng(seed)
    values = np.stack([_column(rng, n) for _ in range(d)], axis=1)
    signal = np.tanh(values[:, 0]) + np.tanh(values[:, -1]) * np.tanh(values[:, d // 2])
    share = rng.choice([0.0, 0.1, 0.6], d)
    values[rng.random((n, d)) < share] = np.nan
    noisy = signal + 0.5 * rng.normal(size=n)
    y = noisy if n_classes == 0 else _classes(noisy, n_classes)
    if n_classes == 0 and rng.random() < 0.5:
        y = np.round(noisy, 1)
    weight = rng.choice([0.25, 1.0, 1.0, 2.5, 7.0], n) if weighted else None
    rows = np.arange(n) if rng.random() < 0.5 else rng.integers(0, n, n)
    return Sample(values, y, weight).take(rows)


def _classes(signal: np.ndarray, n_classes: int) -> np.ndarray:
    places = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return np.searchsorted(places, signal).astype(np.uint8)


# ----------------------------------------------------------------- strategies
# Ties, neighbours in floating point, both zeros, denormals, extremes and missing values.
ELEMENTS = st.sampled_from(
    [0.0, -0.0, 1.0, 2.0, 3.0, 4.0, 1.0 + 2.0**-52, 5e-324, -1e308, 1e308, float("nan")]
)
WEIGHTS = st.sampled_from([0.25, 0.5, 1.0, 1.5, 3.0])


@st.composite
def samples(draw, n_classes: int, weighted: bool) -> Sample:
    """Small tables where everything ties; regression targets are eighths."""
    n, d = draw(st.integers(2, 24)), draw(st.integers(1, 3))
    values = draw(arrays(np.float64, (n, d), elements=ELEMENTS))
    if n_classes:
        y = draw(arrays(np.uint8, n, elements=st.integers(0, n_classes - 1)))
    else:
        y = draw(arrays(np.int64, n, elements=st.integers(-9, 9))) / 8.0
    weight = draw(arrays(np.float64, n, elements=WEIGHTS)) if weighted else None
    return Sample(values, y, weight)


@st.composite
def problems(draw, kinds=PROBLEMS) -> tuple[str, Sample]:
    """A criterion and a table for it."""
    criterion, weighted = draw(st.sampled_from(kinds))
    n_classes = 0 if is_regression(criterion) else draw(st.integers(1, 4))
    return criterion, draw(samples(n_classes, weighted))


@st.composite
def monotonic_problems(draw, max_rows: int = 200, kinds=PROBLEMS) -> tuple[str, Sample, np.ndarray]:
    """A criterion, a table of two classes or of targets for it, and a sign of each column."""
    criterion, weighted = draw(st.sampled_from(kinds))
    n_classes = 0 if is_regression(criterion) else 2
    if draw(st.booleans()):
        sample = draw(samples(n_classes, weighted))
    else:
        n, d = draw(st.integers(3, max_rows)), draw(st.integers(1, 5))
        sample = random_sample(draw(st.integers(0, 10**6)), n, d, n_classes, weighted)
    signs = draw(arrays(np.int8, sample.values.shape[1], elements=st.sampled_from([1, -1, 0])))
    return criterion, sample, signs


@st.composite
def random_problems(draw, max_rows: int = 300, kinds=PROBLEMS) -> tuple[str, Sample]:
    """A criterion and a larger random table, drawn from a seed."""
    criterion, weighted = draw(st.sampled_from(kinds))
    n_classes = 0 if is_regression(criterion) else draw(st.integers(2, 12))
    n, d = draw(st.integers(3, max_rows)), draw(st.integers(1, 5))
    return criterion, random_sample(draw(st.integers(0, 10**6)), n, d, n_classes, weighted)
