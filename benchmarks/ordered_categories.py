"""`python -m benchmarks.ordered_categories FILE --target COL --ordered "A=x<y"`: its worth.

Trees and forests on the same rows of repeated five folds, with the categories of the
named columns as categories without an order, and in their order. Figures are test accuracies, or
mean absolute errors, with the standard error of the mean difference; and leaves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedKFold

from gputree import (
    C45Classifier,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from gputree.cli.cells import parse_order
from gputree.datasets import infer_task, read_table

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "CART": DecisionTreeClassifier,
    "CART, 16 leaves": lambda: DecisionTreeClassifier(max_leaf_nodes=16),
    "C4.5": C45Classifier,
    "random forest, 50 trees": lambda: RandomForestClassifier(50, random_state=0),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "CART, 5 rows a leaf": lambda: DecisionTreeRegressor(min_samples_leaf=5),
    "CART, 64 leaves": lambda: DecisionTreeRegressor(max_leaf_nodes=64),
    "random forest, 50 trees": lambda: RandomForestRegressor(50, max_features=0.5, random_state=0),
}


def loss(model: Any, X: CodedTable, y: NDArray, is_classifier: bool) -> float:
    """The error rate, or the mean absolute error."""
    found = model.predict(X)
    return float(np.mean(found != y) if is_classifier else np.abs(found - y).mean())


def leaves(model: Any) -> float:
    """Leaves of a tree; the mean of a forest."""
    trees = getattr(model, "estimators_", [model])
    return float(np.mean([tree.tree_.n_leaves for tree in trees]))


def main() -> None:
    """Print a line for each learner."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--target", required=True)
    parser.add_argument("--ordered", action="extend", type=parse_order, required=True)
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    orders = dict(given.ordered)
    table = read_table(given.file, given.target, text=list(orders))
    is_classifier = infer_task(table.target) == "classification"
    ways = [CodedTable(table.columns), CodedTable(table.columns, ordered_categories=orders)]
    folds = RepeatedKFold(n_splits=5, n_repeats=given.repeats, random_state=0)
    for name, new in (CLASSIFIERS if is_classifier else REGRESSORS).items():
        losses, sizes = [], []
        for train, test in folds.split(np.empty((table.n_rows, 1))):
            models = [new().fit(way[train], table.target[train]) for way in ways]
            pairs = zip(models, ways, strict=True)
            losses.append([loss(m, w[test], table.target[test], is_classifier) for m, w in pairs])
            sizes.append([leaves(model) for model in models])
        unordered, ordered = np.mean(losses, axis=0)
        spread = np.std(np.diff(losses, axis=1)) / np.sqrt(len(losses))
        before, after = np.mean(sizes, axis=0)
        print(  # as it comes: forests take long
            f"{name:24} {unordered:.4f} -> {ordered:.4f} (+-{spread:.4f}), "
            f"{ordered / unordered - 1:+.1%}; leaves {before:.0f} -> {after:.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
