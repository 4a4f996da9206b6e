"""Pruning a grown tree: each method, and the cost-complexity path against scikit-learn's.

The trees are grown to single rows on one noisy column, so they have about twice
as many nodes as rows; growing is not timed.

``python -m benchmarks.bench_prune path`` prints the time of whole paths beside scikit-learn's
for some sizes; ``python -m benchmarks.bench_prune cv 1000000`` how many fits of the full tree
a `CostComplexityCV` of ten folds takes on so many rows of 28 columns.
"""

import sys
from time import perf_counter, process_time

import numpy as np
from sklearn.tree import DecisionTreeRegressor as ScikitLearnRegressor
from sklearn.tree._tree import ccp_pruning_path

from benchmarks.common import timer as timer
from benchmarks.data import binary_table, mixed_table
from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.pruning import (
    CostComplexity,
    CostComplexityCV,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    RoutedRows,
    TrainingRows,
    ValidationPrePruning,
    cost_complexity_path,
)

PATH_NODES = (25_000, 50_000, 100_000, 200_000)
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


class CrossValidation:
    """Ten folds' trees, their pruning and the held-out rows' descent, in fits of the full tree."""

    params = ([20_000, 100_000],)
    param_names = ("rows",)
    unit = "fits"

    def setup(self, rows):
        X, y = binary_table(1000)
        CostComplexityCV(cv=2, random_state=0).prune(DecisionTreeClassifier().fit(X, y), X, y)

    def track_fits(self, rows):
        return fits_of_cross_validation(rows)[1]


class Prune:
    """One pruning of an unlimited tree."""

    params = ([20_000, 100_000], list(METHODS))
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


class PruneInParts:
    """C4.5's pruning of its own tree: rows with holes in several leaves, many branches a node."""

    params = ([10_000, 100_000], [True, False])
    param_names = ("rows", "subtree_raising")

    def setup(self, rows, subtree_raising):
        X, y = mixed_table(rows)
        model = C45Classifier(pruning=None, device="cpu").fit(X, y)
        target = np.searchsorted(model.classes_, y)
        values = model.columns_.encode(X)
        self.tree, self.rows = model.tree_, TrainingRows(values, target, np.ones(rows))
        self.pruner = Pessimistic(subtree_raising=subtree_raising)
        self.pruner.prune_tree(self.tree, self.rows)

    def time_prune(self, rows, subtree_raising):
        self.pruner.prune_tree(self.tree, self.rows)

    def peakmem_prune(self, rows, subtree_raising):
        self.pruner.prune_tree(self.tree, self.rows)


def fits_of_cross_validation(rows, repeat=3):
    """How many fits a fit pruned by `CostComplexityCV` takes: on the clock, by processor time.

    The clock is at the mercy of other work on the machine for longer than one fit takes.
    """
    X, y = binary_table(rows)
    grown = DecisionTreeClassifier()
    once = [_both_clocks(lambda: grown.fit(X, y)) for _ in range(repeat)]
    pruned = DecisionTreeClassifier(pruning=CostComplexityCV(random_state=0))
    whole = _both_clocks(lambda: pruned.fit(X, y))
    return tuple(whole / np.min(once, axis=0))


def print_paths():
    print("| nodes | gputree | scikit-learn | ratio |\n|---|---|---|---|")
    for nodes in PATH_NODES:
        x, y = noisy_column(nodes // 2)
        ours = DecisionTreeRegressor().fit(x, y).tree_
        theirs = ScikitLearnRegressor(random_state=0).fit(x, y).tree_
        fast = min(_seconds(cost_complexity_path, ours) for _ in range(5))
        slow = _seconds(ccp_pruning_path, theirs)
        print(f"| {ours.n_nodes:,} | {fast * 1e3:.1f} ms | {slow:.2f} s | {slow / fast:,.0f} |")


def main(what, rows="100000"):
    if what == "path":
        print_paths()
        return
    CrossValidation().setup(0)
    clock, processor = fits_of_cross_validation(int(rows))
    print(f"{int(rows):,} rows: {clock:.1f} fits on the clock, {processor:.1f} by processor time")


def _both_clocks(function):
    begin = np.array([perf_counter(), process_time()])
    function()
    return np.array([perf_counter(), process_time()]) - begin


def _seconds(function, tree):
    """Processor time: both paths run on one thread, scikit-learn's for longer than others rest."""
    begin = process_time()
    function(tree)
    return process_time() - begin


if __name__ == "__main__":
    main(*sys.argv[1:])
