"""Out-of-bag predictions, by trees that have not drawn a row (Breiman 2001)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import NODE, Bools, Floats
from gputree.ensemble.compact import Trees
from gputree.ensemble.draws import Origin, permutation
from gputree.prediction.descent import walk
from gputree.prediction.forest import PackedTree, mean_answers
from gputree.threads import run

# Of the rows that a thread copies at a time. Each block draws the permutations anew, which takes a
# twentieth of the time (200,000 rows x 28 columns, one block).
BLOCK_BYTES = 1 << 26

# Of the number of a tree: which rows it has drawn, a mask.
Drawn = Callable[[int], Bools]


def out_of_bag_means(trees: Trees, drawn: Drawn, values: NDArray, n_threads: int) -> Floats:
    """Mean prediction of each row by the trees that have not drawn it; NaN where all have."""
    packed = trees.packed(values.dtype, n_threads)
    sums = np.zeros((values.shape[0], packed[0].predictions.shape[1]))
    counts = np.zeros(values.shape[0], np.int64)
    for t, tree in enumerate(packed):
        rows = np.flatnonzero(~drawn(t))
        sums[rows] += mean_answers([tree], values[rows], n_threads)
        counts[rows] += 1
    with np.errstate(invalid="ignore"):
        return sums / counts[:, None]


def permutation_importances(
    trees: Trees,
    drawn: Drawn,
    origins: Sequence[Origin],
    values: NDArray,
    target: NDArray,
    weight: Floats | None,
    n_threads: int,
) -> Floats:
    """Increase of each tree's error, out of its bag, when a column is permuted there.

    Parameters
    ----------
    trees : Trees
    drawn : callable
    origins : sequence of Origin
    values : float32 or float64 array of shape (n, d)
    target : class codes, or float64 targets, of shape (n,)
        The error is the fraction of wrong classes, or the mean squared error.
    weight : float64 array of shape (n,), or None
    n_threads : int

    Returns
    -------
    float64 array of shape (d, trees)
        NaN for trees that have drawn all rows.
    """
    packed, d = trees.packed(values.dtype, n_threads), values.shape[1]
    classifies = target.dtype.kind != "f"
    at_once = max(BLOCK_BYTES // (d * values.itemsize), 1)

    def measure(t: int) -> Floats:
        out = ~drawn(t)
        rows = np.flatnonzero(out if weight is None else out & (weight > 0.0))
        if rows.size == 0:
            return np.full(d, np.nan)
        increase, whole = np.zeros(d), float(rows.size if weight is None else weight[rows].sum())
        tree = packed[t]
        said = tree.predictions.argmax(axis=1) if classifies else tree.predictions[:, 0]
        for begin in range(0, rows.size, at_once):
            part = rows[begin : begin + at_once]
            changed, true = np.ascontiguousarray(values[part]), target[part]
            weights = None if weight is None else weight[part]
            error = partial(_error, tree, said, changed, true, weights)
            before = error()
            for f in np.unique(trees[t].feature).tolist():  # others change no path
                column = changed[:, f].copy()
                order = permutation(*origins[t].key, f, rows.size)[begin : begin + at_once]
                changed[:, f] = values[rows[order], f]
                increase[f] += error() - before
                changed[:, f] = column
        return increase / whole

    return np.stack(run(n_threads, measure, [(t,) for t in range(len(packed))]), axis=1)


def _error(
    tree: PackedTree, said: NDArray, values: NDArray, true: NDArray, weight: Floats | None
) -> float:
    """Weight of wrong classes, or the sum of weighted squared errors; `said` is of nodes."""
    stop = np.empty(len(values), NODE)
    walk(values, 0, len(values), tree.nodes, tree.depths, stop)
    found = said[stop]
    losses = (found - true) ** 2 if true.dtype.kind == "f" else found != true
    return float(losses.sum() if weight is None else (losses * weight).sum())
