"""Weights of rows by ranges or categories of a column, and by class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Int64s
from gputree.base.threads import even_spans, run
from gputree.compilation import kernel

# Rows that a thread takes at least.
FEW_ROWS = 1 << 16


class Counted(NamedTuple):
    """Rows that are counted."""

    values: NDArray[Any]  # (n,), of one column; NaN where missing
    label: Int64s | None  # (n,); None of targets
    weight: Floats | None  # (n,); None where each is 1
    n_classes: int  # 1 of targets
    n_threads: int

    def sums(self, n_places: int, edges: Floats) -> tuple[Floats, float]:
        """Weights of the rows with a value at each place, (n_places, n_classes); of those without.

        The place is the range between `edges`, or the category where there are none.
        """

        def add_up(begin: int, end: int) -> Floats:
            sums = np.zeros((n_places + 1, self.n_classes))
            add_weights(self.values, self.label, self.weight, edges, sums, begin, end)
            return sums

        parts = even_spans(self.values.size, 1, self.n_threads, FEW_ROWS)
        sums = np.sum(run(self.n_threads, add_up, parts), axis=0)
        return sums[:-1], float(sums[-1].sum())


@kernel
def add_weights(values, label, weight, edges, sums, begin, end):
    """Add the weights of rows ``begin .. end`` to `sums`, those without a value at its end.

    Range k is ``edges[k] < value <= edges[k + 1]``, the first one with its lower edge.
    """
    last, width = edges.size - 2, 0.0
    if edges.size and edges[-1] > edges[0]:
        width = (last + 1) / (edges[-1] - edges[0])
    for i in range(begin, end):
        value = np.float64(values[i])
        if value != value:
            k = sums.shape[0] - 1
        elif edges.size == 0:
            k = np.int64(value)
        else:  # near, then by comparison, as rounding may have led to its neighbour
            k = min(np.int64((value - edges[0]) * width), last)
            while k > 0 and value <= edges[k]:
                k -= 1
            while k < last and value > edges[k + 1]:
                k += 1
        of_class = 0 if label is None else label[i]
        sums[k, of_class] += 1.0 if weight is None else weight[i]


def of_ranges(rows: Counted, bins: int) -> dict[str, Any]:
    """Count rows in ranges of equal width; a value at an edge is below it, as at a threshold."""
    low = float(np.fmin.reduce(rows.values, initial=np.inf))
    high = float(np.fmax.reduce(rows.values, initial=-np.inf))
    edges = np.linspace(low, high, bins + 1) if low <= high else np.zeros(bins + 1)
    weights, missing = rows.sums(bins, edges)
    found = {"edges": edges.tolist(), "weights": weights.tolist()}
    return {**found, "missing": missing, "others": 0.0}


def of_categories(rows: Counted, words: NDArray[Any] | None, most: int) -> dict[str, Any]:
    """Count rows of the categories with the largest weights, in the order of their codes."""
    largest = np.fmax.reduce(rows.values, initial=-1)
    n_codes = int(largest) + 1 if words is None else len(words)
    weights, missing = rows.sums(n_codes, np.empty(0))
    heaviest = np.sort(np.argsort(-weights.sum(axis=1), kind="stable")[:most])
    return {
        "categories": heaviest.tolist() if words is None else words[heaviest].tolist(),
        "weights": weights[heaviest].tolist(),
        "missing": missing,
        "others": float(weights.sum() - weights[heaviest].sum()),
    }
