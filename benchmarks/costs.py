"""`python -m benchmarks.costs`: what test errors cost, with the costs given and without.

Classification tables of the folder that GPUTREE_DATA names whose largest class is at least three
times the smallest, as `benchmarks.boosting` draws and divides them. Costs are drawn once a table:
an error of a class of n rows costs N / n, N those of the largest class, times a whole number of 1
to 5 for each pair of classes. Figures are the mean costs of a test row, by plain trees and
by those that know the costs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.boosting import drawn, folds, table_names, versions
from benchmarks.compare.report import table_line
from gputree import BoostedC45Classifier, C45Classifier, DecisionTreeClassifier

# How much larger the largest class is than the smallest, at least.
LEAST_RATIO = 3.0

LEARNERS: dict[str, Callable[..., Any]] = {
    "C4.5": C45Classifier,
    "CART, pruned": lambda **params: DecisionTreeClassifier(ccp_alpha=0.002, **params),
    "boosted": BoostedC45Classifier,
}


def cost_matrix(y: NDArray) -> NDArray[np.float64]:
    """Costs of (true, predicted), for the classes in ascending order."""
    count = np.unique(y, return_counts=True)[1]
    pairs = np.random.default_rng(0).integers(1, 6, (count.size, count.size))
    costs = (count.max() / count)[:, None] * pairs
    np.fill_diagonal(costs, 0.0)
    return costs


def mean_cost(learner: Any, X: NDArray, y: NDArray, costs: NDArray[np.float64]) -> float:
    """What a test row costs."""
    classes, paid = np.unique(y), 0.0
    for train, test in folds(y):
        found = learner.fit(X[train], y[train]).predict(X[test])
        paid += costs[np.searchsorted(classes, y[test]), np.searchsorted(classes, found)].sum()
    return paid / len(y)


def measured(rows: int) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Tables, and mean costs of shape (learners, 2): plain, and with costs."""
    for name in table_names():
        X, y, nominal = drawn(data.frame_table(name), rows)
        count = np.unique(y, return_counts=True)[1]
        if count.size < 2 or count.max() < LEAST_RATIO * count.min():
            continue
        costs = cost_matrix(y)
        found = [
            [
                mean_cost(new(categorical_features=nominal, **given), X, y, costs)
                for given in ({}, {"misclassification_costs": costs})
            ]
            for new in LEARNERS.values()
        ]
        yield f"{name}, {len(y):,} x {X.shape[1]}, {count.size} classes", np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000, help="rows drawn of longer tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # columns that name rows
    names = [f"{label}{told}" for label in LEARNERS for told in ("", ", costs")]
    print(f"{versions()}\n")
    print(table_line(["table", *names]))
    print(table_line(["---"] * (len(names) + 1)))
    found = []
    for name, costs in measured(options.rows):
        found.append(costs)
        print(table_line([name, *(f"{cost:.3f}" for cost in costs.ravel())]), flush=True)
    print()
    for label, (plain, told) in zip(LEARNERS, np.moveaxis(np.array(found), 0, 2), strict=True):
        ratio = np.exp(np.mean(np.log((told + 1e-3) / (plain + 1e-3))))
        print(
            f"{label}: with costs {ratio:.2f} times the cost (geometric mean of {len(found)} "
            f"tables); less on {sum(told < plain)}, more on {sum(told > plain)}."
        )


if __name__ == "__main__":
    main()
