"""`python -m benchmarks.compare.one_hot`: CART with categories beside CART on one-hot columns.

Both trees are gputree's, opened best first to the same number of leaves, on the same folds.
The encoder is scikit-learn's; it gives missing cells a column, as well.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from benchmarks import data
from gputree import DecisionTreeClassifier, DecisionTreeRegressor

TABLES = (
    "adult",
    "titanic",
    "credit_g",
    "cylinder_bands",
    "heart_h",
    "hepatitis",
    "lymph",
    "cmc",
    "hypothyroid",
    "abalone",
    "auto_mpg",
    "servo",
    "sensory",
    "cpu_vendor",
)
LEAVES = (4, 8, 16, 32)
FOLDS = 10


class Scores(NamedTuple):
    """Mean scores over the folds: accuracy, or R^2 for regression."""

    train: float
    test: float
    leaves: float


def compare(table: data.FrameTable, leaves: int, split: str) -> tuple[Scores, Scores]:
    """Scores with categories, and with one-hot columns."""
    kind = DecisionTreeClassifier if table.classes else DecisionTreeRegressor
    nominal = [c for c in table.X if c in table.categories]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, nominal), remainder="passthrough")
    with_categories = kind(max_leaf_nodes=leaves, categorical_split=split)
    one_hot = make_pipeline(columns, kind(max_leaf_nodes=leaves))
    return mean_scores(with_categories, table), mean_scores(one_hot, table)


def mean_scores(model, table: data.FrameTable) -> Scores:
    folds = KFold(FOLDS, shuffle=True, random_state=0).split(table.X)
    return Scores(*np.mean([fold_scores(model, table, *rows) for rows in folds], axis=0))


def fold_scores(
    model, table: data.FrameTable, train: NDArray[np.int64], test: NDArray[np.int64]
) -> tuple[float, float, float]:
    X, y = table.X, table.y
    model.fit(X.iloc[train], y[train])
    tree = model[-1] if hasattr(model, "steps") else model
    return (
        model.score(X.iloc[train], y[train]),
        model.score(X.iloc[test], y[test]),
        tree.get_n_leaves(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=TABLES)
    parser.add_argument("--leaves", nargs="*", type=int, default=LEAVES)
    parser.add_argument("--split", default="auto", help="categorical_split")
    options = parser.parse_args()
    print("| table | leaves | train: categories | one-hot | test: categories | one-hot |")
    print("|---|---|---|---|---|---|")
    for name in options.tables:
        try:
            table = data.frame_table(name)
        except data.TableAbsent as absent:
            print(f"{name}: left out, {absent}")
            continue
        for leaves in options.leaves:
            ours, one_hot = compare(table, leaves, options.split)
            figures = (ours.train, one_hot.train, ours.test, one_hot.test)
            cells = " | ".join(f"{figure:.4f}" for figure in figures)
            print(f"| {name} | {leaves} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
