"""Variants of kernels that numba compiles apart, and the few fits that cover every pair of them.

A kernel is compiled for each combination of types that it is called with: of the criterion, the
values, weights, constraints. Tests marked `full` compile those of `COVER`, in which every value
of an axis occurs with every value of each other axis. A new value needs a row here.
"""

from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from gputree import DecisionTreeClassifier, DecisionTreeRegressor


class Variant(NamedTuple):
    """Types of one fit; `AXES` has the values of each."""

    criterion: str
    dtype: str
    weighted: bool
    monotonic: bool
    categories: bool
    missing: bool
    binned: bool


AXES = Variant(
    # The types of `criteria.kinds`, as the number of classes and of units choose them.
    criterion=(
        "Gini", "TwoClassGini", "WideGini", "Entropy", "ManyClassEntropy",
        "SquaredError", "Poisson",
    ),
    dtype=("float32", "float64"),
    weighted=(False, True),
    monotonic=(False, True),
    categories=(False, True),
    missing=(False, True),
    binned=(False, True),
)  # fmt: skip

# Constraints are for two classes or targets, and only weights have so many units.
IMPOSSIBLE = (
    {"criterion": "Gini", "monotonic": True},
    {"criterion": "ManyClassEntropy", "monotonic": True},
    {"criterion": "WideGini", "weighted": False},
)

COVER = [
    Variant("Gini", "float64", False, False, False, True, False),
    Variant("Gini", "float32", True, False, True, False, True),
    Variant("TwoClassGini", "float32", True, True, True, True, False),
    Variant("TwoClassGini", "float64", False, False, False, False, True),
    Variant("WideGini", "float64", True, False, True, False, False),
    Variant("WideGini", "float32", True, True, False, True, True),
    Variant("Entropy", "float32", True, True, True, False, False),
    Variant("Entropy", "float64", False, False, False, True, True),
    Variant("ManyClassEntropy", "float32", False, False, True, False, True),
    Variant("ManyClassEntropy", "float64", True, False, False, True, False),
    Variant("SquaredError", "float64", True, True, False, True, True),
    Variant("SquaredError", "float32", False, False, True, False, False),
    Variant("Poisson", "float32", False, True, False, False, True),
    Variant("Poisson", "float64", True, False, True, True, False),
]

CLASSES = {"Gini": 3, "TwoClassGini": 2, "WideGini": 2, "Entropy": 2, "ManyClassEntropy": 70}
NAMES = {
    "Entropy": "entropy", "ManyClassEntropy": "entropy",
    "SquaredError": "squared_error", "Poisson": "poisson",
}  # fmt: skip
N_ROWS = 150


def possible_pairs() -> set[frozenset[tuple[str, Any]]]:
    """Every pair of values of two axes that a fit may have."""
    every = {
        frozenset([(one, a), (other, b)])
        for one, other in combinations(Variant._fields, 2)
        for a, b in product(getattr(AXES, one), getattr(AXES, other))
    }
    return every - {frozenset(pair.items()) for pair in IMPOSSIBLE}


def pairs_of(variant: Variant) -> set[frozenset[tuple[str, Any]]]:
    """Pairs of values of two axes that a fit covers."""
    return {frozenset(pair) for pair in combinations(variant._asdict().items(), 2)}


def estimator_of(variant: Variant) -> Any:
    """An unfitted tree whose growth has the types of the variant."""
    kind = DecisionTreeClassifier if variant.criterion in CLASSES else DecisionTreeRegressor
    return kind(
        criterion=NAMES.get(variant.criterion, "gini"),
        monotonic_cst=[1, -1, 0, 0, 0] if variant.monotonic else None,
        categorical_features=[3, 4] if variant.categories else None,
        splitter="binned" if variant.binned else "exact",
        max_bins=16,
        device="cpu",
        n_jobs=1,
    )


def table_of(variant: Variant) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """X, y and weights of some rows, most of which a tree can separate."""
    rng = np.random.default_rng(COVER.index(variant))
    X = np.round(rng.normal(size=(N_ROWS, 5)), 1)
    if variant.categories:
        X[:, 3:] = rng.integers(0, (5, 30), (N_ROWS, 2))
    signal = X[:, 0] - X[:, 1] + X[:, 3] % 3 + 0.3 * rng.normal(size=N_ROWS)
    if variant.missing:
        X[rng.random(X.shape) < 0.05] = np.nan
    n_classes = CLASSES.get(variant.criterion, 0)
    if n_classes:
        y = np.argsort(np.argsort(signal)) * n_classes // N_ROWS
    else:
        y = np.maximum(np.round(signal), 0.0) if variant.criterion == "Poisson" else signal
    # Few units for `Gini`: its weights are integers.
    shares = [0.1, 0.7, 1.3] if variant.criterion == "WideGini" else [1.0, 2.0, 3.0]
    return X.astype(variant.dtype), y, rng.choice(shares, N_ROWS) if variant.weighted else None
