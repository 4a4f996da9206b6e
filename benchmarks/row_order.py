"""Fits of C4.5 on the same rows in other orders: how many trees differ in any field.

    python -m benchmarks.row_order 400        # tables; three orders each

Weights that are no sums of powers of two, and cells missing in every column, so that rows
are divided between branches: what is summed anywhere in the order of the rows shows.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree import C45Classifier
from gputree.tree import Tree

ORDERS = 3


class Table(NamedTuple):
    """Rows, their classes and weights, and which columns are categories."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    weight: NDArray[np.float64]
    nominal: list[int]


def random_table(seed: int) -> Table:
    """900 to 3,000 rows of 2 to 5 columns, numbers and categories, and 2 to 4 classes."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(900, 3001)), int(rng.integers(2, 6))
    nominal = np.flatnonzero(rng.random(d) < 0.4).tolist()
    X = np.round(rng.normal(size=(n, d)), 1)
    for j in nominal:
        X[:, j] = rng.integers(0, rng.integers(2, 6), n)
    signal = X @ rng.normal(size=d) + rng.normal(size=n) * rng.choice([0.3, 1.0, 3.0])
    k = int(rng.integers(2, 5))
    y = np.searchsorted(np.quantile(signal, np.arange(1, k) / k), signal)
    X[rng.random((n, d)) < rng.choice([0.02, 0.1, 0.3], d)] = np.nan
    weights = (rng.random(n) * 10, rng.choice([0.1, 0.3, 0.7, 1.1], n), rng.exponential(size=n))
    return Table(X, y, weights[int(rng.integers(3))], nominal)


def grown(table: Table, order: NDArray | None = None) -> Tree:
    """C4.5's pruned tree of the rows in an order."""
    model = C45Classifier(device="cpu", n_jobs=1, categorical_features=table.nominal or None)
    rows = slice(None) if order is None else order
    return model.fit(table.X[rows], table.y[rows], table.weight[rows]).tree_


def differing(a: Tree, b: Tree) -> list[str]:
    """Fields that are not equal to the last bit."""
    arrays = (f.name for f in fields(a) if isinstance(getattr(a, f.name), np.ndarray))
    return [n for n in arrays if getattr(a, n).tobytes() != getattr(b, n).tobytes()]


def main(n_tables: str = "100") -> None:
    """Print every table whose tree depends on the order of its rows, and how many there are."""
    n_differ = 0
    for seed in range(int(n_tables)):
        table = random_table(seed)
        rng, tree = np.random.default_rng(seed), grown(table)
        for _ in range(ORDERS):
            found = differing(tree, grown(table, rng.permutation(table.y.size)))
            if found:
                n_differ += 1
                print(f"table {seed}, {tree.n_nodes} nodes: {', '.join(found)} differ", flush=True)
    print(f"{int(n_tables) * ORDERS} fits in another order, {n_differ} differ")


if __name__ == "__main__":
    main(*sys.argv[1:])
