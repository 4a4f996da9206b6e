"""Tables of numbers and categories with missing values, drawn by Hypothesis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

NUMBERS = [-1e308, -2.0, -0.0, 0.0, 1.0, 1.0 + 2.0**-52, 2.5, 3.0, 1e308]
WEIGHTS = [0.25, 1.0, 1.0, 1.5, 3.0]


class MixedTable(NamedTuple):
    """Rows for the entropy trees: codes in nominal columns, NaN where missing."""

    X: np.ndarray  # (n, d) float64
    nominal: np.ndarray  # (d,) bool
    y: np.ndarray  # (n,) class codes
    weight: np.ndarray | None

    def take(self, rows) -> MixedTable:
        weight = None if self.weight is None else self.weight[rows]
        return self._replace(X=self.X[rows], y=self.y[rows], weight=weight)


@st.composite
def mixed_tables(draw) -> MixedTable:
    """Small tables where nearly everything ties."""
    n, d = draw(st.integers(2, 30)), draw(st.integers(1, 4))
    columns, nominal = [], []
    for _ in range(d):
        nominal.append(draw(st.booleans()))
        values = list(range(draw(st.integers(1, 5)))) if nominal[-1] else NUMBERS
        holes = draw(st.sampled_from([[], [np.nan]]))
        columns.append(draw(st.lists(st.sampled_from([*values, *holes]), min_size=n, max_size=n)))
    y = draw(st.lists(st.integers(0, draw(st.integers(1, 3))), min_size=n, max_size=n))
    weight = draw(st.lists(st.sampled_from(WEIGHTS), min_size=n, max_size=n))
    weighted = draw(st.booleans())
    table = MixedTable(
        np.array(columns, dtype=float).T,
        np.array(nominal),
        np.array(y),
        np.array(weight) if weighted else None,
    )
    return table


def random_mixed_table(seed: int, n: int, weighted: bool) -> MixedTable:
    """A larger table, with signal in the first columns."""
    rng = np.random.default_rng(seed)
    nominal = rng.random(rng.integers(2, 7)) < 0.5
    columns = [_column(rng, n, is_nominal) for is_nominal in nominal]
    X = np.stack(columns, axis=1)
    signal = np.sin(3 * X[:, 0]) + X[:, 1] % 2 + 0.4 * rng.normal(size=n)
    n_classes = int(rng.integers(2, 6))
    y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    X[rng.random(X.shape) < rng.choice([0.0, 0.03, 0.3], nominal.size)] = np.nan
    return MixedTable(X, nominal, y, rng.choice(WEIGHTS, n) if weighted else None)


def _column(rng: np.random.Generator, n: int, nominal: bool) -> np.ndarray:
    if nominal:
        return np.floor(rng.integers(2, 12) * rng.random(n) ** 2)
    return np.round(rng.normal(size=n), int(rng.integers(0, 4)))


def random_mixed_tables(max_rows: int = 400) -> st.SearchStrategy[MixedTable]:
    seeds, sizes = st.integers(0, 10**6), st.integers(20, max_rows)
    return st.builds(random_mixed_table, seeds, sizes, st.booleans())


def mixed_table(seed: int, n: int = 120):
    """Categories, numbers and missing values; three classes by both, with noise."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, 4), object)
    X[:, 0] = np.array(["red", "green", "blue"])[rng.integers(3, size=n)]
    X[:, 1:] = np.round(rng.normal(size=(n, 3)), 1)
    score = X[:, 1].astype(float) * np.where(X[:, 0] == "red", 1, -1) + X[:, 2].astype(float)
    y = np.array(["low", "middle", "high"])[np.digitize(score + rng.normal(size=n), [-0.7, 0.7])]
    X[rng.random(X.shape) < 0.08] = None
    return X, y
