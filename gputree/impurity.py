"""Impurity of groups of rows times their weight, in NumPy: what score functions add up.

Each target gives it for branches (``of_branches``: a code and a weight a row, one impurity
a code) and for all prefixes of an order of the rows (``of_prefixes``: every cut of a sorted
column). Both take O(n log n) time and O(n) memory, for any number of labels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class Impurity(Protocol):
    """Impurity times weight, of branches or of all prefixes of an order of the rows."""

    def of_branches(self, branch: Codes, weight: Floats) -> Floats:
        """Impurity times weight of the rows of each code in `branch`."""

    def of_prefixes(self, rows: Codes, weight: Floats) -> Floats:
        """Impurity times weight of ``rows[:1]``, ``rows[:2]`` and so on."""


class Entropy(NamedTuple):
    """``W log W - sum w_k log w_k``."""

    label: Codes

    def of_branches(self, branch: Codes, weight: Floats) -> Floats:
        total, cells = _cell_sums(branch, self.label, weight, _xlog2x)
        return _xlog2x(total) - cells

    def of_prefixes(self, rows: Codes, weight: Floats) -> Floats:
        total, cells = _running_cells(self.label[rows], weight[rows], _xlog2x)
        return _xlog2x(total) - cells


class Gini(NamedTuple):
    """``W - sum w_k**2 / W``."""

    label: Codes

    def of_branches(self, branch: Codes, weight: Floats) -> Floats:
        total, cells = _cell_sums(branch, self.label, weight, np.square)
        return total - _share(cells, total)

    def of_prefixes(self, rows: Codes, weight: Floats) -> Floats:
        total, cells = _running_cells(self.label[rows], weight[rows], np.square)
        return total - _share(cells, total)


class Variance(NamedTuple):
    """``sum w y**2 - (sum w y)**2 / W``, of targets around their mean."""

    target: Floats

    def of_branches(self, branch: Codes, weight: Floats) -> Floats:
        first = _sum(branch, weight * self.target)
        second = _sum(branch, weight * self.target**2)
        return second - _share(first**2, _sum(branch, weight))

    def of_prefixes(self, rows: Codes, weight: Floats) -> Floats:
        w, y = weight[rows], self.target[rows]
        first, second = np.cumsum(w * y), np.cumsum(w * y**2)
        return second - _share(first**2, np.cumsum(w))


def _cell_sums(
    branch: Codes, label: Codes, weight: Floats, cell: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Weight of each branch, and the sum of ``cell(weight)`` over its labels.

    Only the pairs that occur take memory: both codes may have as many values as rows.
    """
    n_labels = int(label.max()) + 1
    pairs, place = np.unique(branch * n_labels + label, return_inverse=True)
    return _sum(branch, weight), _sum(pairs // n_labels, cell(_sum(place, weight)))


def _running_cells(
    label: Codes, weight: Floats, cell: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Weight of each prefix, and the sum of ``cell(weight)`` over its labels.

    Each row moves the weight of its own label only, so the cost is free of their number.
    """
    by_label = np.argsort(label, kind="stable")
    after = np.cumsum(weight[by_label])
    starts = np.flatnonzero(np.diff(label[by_label], prepend=-1))
    after -= np.repeat(
        np.append(0.0, after[starts[1:] - 1]), np.diff(np.append(starts, label.size))
    )
    before = after - weight[by_label]
    step = np.empty(label.size)
    step[by_label] = cell(after) - cell(before)
    return np.cumsum(weight), np.cumsum(step)


def _sum(group: Codes, values: Floats) -> Floats:
    """Sum of the values of each group."""
    return np.bincount(group, values).astype(np.float64, copy=False)


def _xlog2x(x: Floats) -> Floats:
    """``x log2 x``, and 0 at 0."""
    return x * np.log2(np.where(x > 0, x, 1.0))


def _share(part: Floats, whole: Floats) -> Floats:
    """``part / whole``, and 0 where the whole is 0."""
    return part / np.where(whole > 0, whole, 1.0)
