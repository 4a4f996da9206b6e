"""C4.5 on columns of many categories with many holes, which multiply rows.

    python -m benchmarks.holes                     # 100,000 rows, 2 columns of 500 categories
    python -m benchmarks.holes 10000 100 3         # rows, categories, columns

30% of each column is missing, so that a row that lacks both of two columns is in 250,000 branches
at depth 2. One process grows one tree; processor seconds, and the greatest memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from gputree import C45Classifier

SHARE = 0.3


def main() -> None:
    """Grow with and without pruning, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=int, metavar="N")
    given = parser.parse_args().numbers
    n, categories, columns = [*given, *(100_000, 500, 2)[len(given) :]]
    random = np.random.default_rng(0)
    X = random.integers(0, categories, (n, columns)).astype(float)
    y = (X % 7).sum(axis=1) + random.normal(scale=2.0, size=n) > 3 * columns
    X[random.random(X.shape) < SHARE] = np.nan
    nominal = list(range(columns))
    C45Classifier(categorical_features=nominal).fit(X[:300], y[:300])  # compiles
    for pruning in (None, "pessimistic"):
        tree = C45Classifier(categorical_features=nominal, pruning=pruning)
        begin = time.process_time()
        tree.fit(X, y)
        seconds = time.process_time() - begin
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{n:,} rows, {columns} columns of {categories} categories, pruning {pruning}: "
            f"{seconds:.2f} s, {tree.tree_.n_nodes:,} nodes, {most:,.0f} MB"
        )


if __name__ == "__main__":
    main()
