"""Weights of rows by ranges or categories of a column, and by class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Int64s


class Counted(NamedTuple):
    """Rows that are counted."""

    values: NDArray[Any]  # (n,), of one column; NaN where missing
    label: Int64s  # (n,), 0 of targets
    weight: Floats  # (n,)
    n_classes: int  # 1 of targets

    def sums(self, place: Int64s, n_places: int) -> Floats:
        """Weights of the rows with a value at each place, (n_places, n_classes)."""
        present = np.isfinite(self.values)
        key, shape = place * self.n_classes + self.label[present], (n_places, self.n_classes)
        sums: Any = np.bincount(key, self.weight[present], n_places * self.n_classes)
        found: Floats = sums.reshape(shape)
        return found

    @property
    def present(self) -> NDArray[Any]:
        """Values that are not missing."""
        return self.values[np.isfinite(self.values)]

    @property
    def missing(self) -> float:
        """Weight of the rows without a value."""
        return float(self.weight[~np.isfinite(self.values)].sum())


def of_ranges(rows: Counted, bins: int) -> dict[str, Any]:
    """Count rows in ranges of equal width; a value at an edge is below it, as at a threshold."""
    values = rows.present
    ends = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    edges = np.linspace(ends[0], ends[1], bins + 1)
    weights = rows.sums(np.searchsorted(edges[1:-1], values, side="left"), bins)
    found = {"edges": edges.tolist(), "weights": weights.tolist()}
    return {**found, "missing": rows.missing, "others": 0.0}


def of_categories(rows: Counted, words: NDArray[Any] | None, most: int) -> dict[str, Any]:
    """Count rows of the categories with the largest weights, in the order of their codes."""
    code = rows.present.astype(np.int64)
    n_codes = int(code.max(initial=-1)) + 1 if words is None else len(words)
    weights = rows.sums(code, n_codes)
    heaviest = np.sort(np.argsort(-weights.sum(axis=1), kind="stable")[:most])
    return {
        "categories": heaviest.tolist() if words is None else words[heaviest].tolist(),
        "weights": weights[heaviest].tolist(),
        "missing": rows.missing,
        "others": float(weights.sum() - weights[heaviest].sum()),
    }
