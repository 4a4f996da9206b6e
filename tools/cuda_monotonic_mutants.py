"""Seeded bugs in what holds trees to be monotonic, and the trees that show them."""

from __future__ import annotations

import numpy as np
from strategies import make_task, random_sample
from twins import assert_same_tree

from gputree.backends.base import Monotonic

# Name, old, new.
MONOTONIC_MUTANTS = [
    ("monotonic: sign", "if (sign < 0) {", "if (sign > 0) {"),
    ("monotonic: order", "return low <= high && lower <= low", "return lower <= low"),
    ("monotonic: lower bound", "low <= high && lower <= low &&", "low <= high &&"),
    ("monotonic: upper bound", "lower <= low && high <= upper;", "lower <= low;"),
    ("monotonic: column", "signs[column], lower[node]", "signs[0], lower[node]"),
    ("monotonic: node", "lower[node], upper[node]};", "lower[0], upper[node]};"),
    ("monotonic: boundaries", "admitted && constraint.admits(", "admitted || constraint.admits("),
    (
        "monotonic: sorted slots",
        "if (!constraint.admits(criterion, state, left, total)) continue;\n        found.score",
        "found.score",
    ),
    (
        "monotonic: root",
        "nodes.bound(0, monotonic.lower[j], monotonic.upper[j]);",
        "nodes.bound(0, 0, 0);",
    ),
    (
        "monotonic: first child",
        "nodes.bound(child, sign < 0 ? between : lower, sign > 0 ? between : upper);",
        "nodes.bound(child, lower, upper);",
    ),
    (
        "monotonic: second child",
        "nodes.bound(child + 1, sign > 0 ? between : lower, sign < 0 ? between : upper);",
        "nodes.bound(child + 1, sign < 0 ? between : lower, sign > 0 ? between : upper);",
    ),
    ("monotonic: middle", "mean_of(sum - total[1], weight - left)", "mean_of(sum, weight)"),
]


def compare_monotonic() -> None:
    """Columns that means rise and fall with; refined, finished, in bins and in cells of rows."""
    signs = np.array([1, -1, 0, 1], np.int8)
    for criterion, weighted in (("gini", False), ("squared_error", True)):
        n_classes = 2 if criterion == "gini" else 0
        for seed in (2, 3, 4):
            sample = random_sample(seed, 150, 4, n_classes, weighted)
            task = make_task(
                criterion,
                sample,
                n_classes=n_classes or None,
                monotonic=Monotonic(signs),
                max_depth=6,
            )
            for finish_rows, max_bins in ((1, 4), (30, 40), (None, 4)):
                assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=max_bins)
