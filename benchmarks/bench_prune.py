"""Pruning a grown tree: each method, and the cost-complexity path against scikit-learn's.

The trees are grown to single rows on one noisy column, so they have about twice
as many nodes as rows; growing is not timed.
"""

from time import perf_counter

import numpy as np
from sklearn.tree import DecisionTreeRegressor as ScikitLearnRegressor
from sklearn.tree._tree import ccp_pruning_path

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.pruning import (
    CostComplexity,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    RoutedRows,
    TrainingRows,
    ValidationPrePruning,
    cost_complexity_path,
)

METHODS = {
    "cost complexity": CostComplexity(1e-4),
    "penalized loss": PenalizedLoss(5.0),
    "pessimistic": Pessimistic(),
    "pessimistic, no raising": Pessimistic(subtree_raising=False),
    "reduced error": ReducedError(),
    "validation pre-pruning": ValidationPrePruning(),
}


def noisy_column(rows):
    """One uniform column, a target that is half signal, all values distinct."""
    rng = np.random.default_rng(0)
    x = rng.random((rows, 1))
    return x, x[:, 0] + rng.normal(size=rows)


class Path:
    """The whole weakest-link sequence; time should grow near-linearly."""

    params = ([10_000, 100_000, 1_000_000],)
    param_names = ("rows",)

    def setup(self, rows):
        self.tree = DecisionTreeRegressor(device="cpu").fit(*noisy_column(rows)).tree_
        cost_complexity_path(self.tree)

    def time_path(self, rows):
        cost_complexity_path(self.tree)

    def peakmem_path(self, rows):
        cost_complexity_path(self.tree)

    def track_nodes(self, rows):
        return self.tree.n_nodes


class AgainstScikitLearn:
    """scikit-learn's time over ours, on trees grown from the same rows."""

    params = ([10_000, 100_000],)
    param_names = ("rows",)
    unit = "times faster"

    def setup(self, rows):
        x, y = noisy_column(rows)
        self.tree = DecisionTreeRegressor(device="cpu").fit(x, y).tree_
        self.theirs = ScikitLearnRegressor(random_state=0).fit(x, y).tree_
        cost_complexity_path(self.tree)

    def track_speedup(self, rows):
        return _seconds(ccp_pruning_path, self.theirs) / min(
            _seconds(cost_complexity_path, self.tree) for _ in range(5)
        )


class Prune:
    """One pruning of an unlimited tree."""

    params = ([20_000], list(METHODS))
    param_names = ("rows", "method")

    def setup(self, rows, method):
        x, y = noisy_column(rows)
        label = (y > np.median(y)).astype(np.int32)
        model = DecisionTreeClassifier(device="cpu").fit(x, label)
        self.tree, self.pruner = model.tree_, METHODS[method]
        weight = np.ones(rows)
        if method == "pessimistic":
            self.rows = TrainingRows(x, label, weight)
        else:  # as good as unseen: each row's neighbour in the table
            self.rows = RoutedRows(model.apply(x), np.roll(label, 1), weight)
        self.pruner.prune_tree(self.tree, self.rows)

    def time_prune(self, rows, method):
        self.pruner.prune_tree(self.tree, self.rows)


def _seconds(function, tree):
    begin = perf_counter()
    function(tree)
    return perf_counter() - begin
