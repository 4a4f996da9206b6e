"""Rows in memory that the trees of a forest are grown on."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Weight
from gputree.base.threads import n_threads
from gputree.ensemble.compact import CompactTree
from gputree.ensemble.draws import tree_seed
from gputree.estimators.cart import column_count
from gputree.estimators.growing_ranked import is_ranked
from gputree.growth.frontier import FEWEST_ROWS
from gputree.inputs.tables import Table
from gputree.tree import Tree


@dataclass
class TableRows:
    """A table in memory with targets and weights; `gputree.distributed` has one in partitions."""

    forest: Any
    given: Any  # the table that `fit` was called with
    table: Table
    target: NDArray[Any]
    weight: Weight
    devices: deque[str] = field(default_factory=deque)  # free ones; a tree takes the first
    grows_whole: bool = False  # some trees are grown in one call, each as a small node

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return self.table.shape[0]

    @property
    def dtype(self) -> Any:
        """Type of the values, for which trees are packed."""
        return self.table.values.dtype

    def total_and_weight(self) -> tuple[float, Weight]:
        """Total weight, and the weights that rows are drawn in proportion to."""
        total = float(self.n_rows) if self.weight is None else float(self.weight.sum())
        return total, self.weight

    def grower(self, n_trees: int) -> tuple[Any, int]:
        """Code the table; return the estimator that trees are copies of, and how many at once."""
        forest, table = self.forest, self.table
        device, threads = "cpu", n_threads(forest.n_jobs)
        searches_bins = not (forest._draws_cuts or is_ranked(forest) or self.target.ndim == 2)
        grower = forest._new_tree()
        if not forest._draws_cuts:
            device = table.device or grower._device()
        grower.verbose = 0
        counted = (forest.bootstrap or self.weight is None) and not forest._balances_subsamples
        whole = counted and grower._grows_whole(table)

        def code(device: str) -> str:
            on_device: Any = table.on(device, threads)
            if self.n_rows <= FEWEST_ROWS or not searches_bins:
                return device
            n_columns = column_count(forest.max_features, table.shape[1])
            bins, exact = table.max_bins or int(grower.max_bins), forest.splitter != "binned"
            ranks = whole and exact and device == "cpu" and threads < 2 * n_trees
            if not (ranks and on_device.rank_for(n_columns, threads)):
                on_device.prepare(bins, threads, exact, n_columns)
            return device

        device = grower.device = table.within_memory(forest.device, device, code)
        others = table.other_devices(forest.device, device, threads, bool(forest.verbose))
        self.devices = deque([device] * threads if device == "cpu" else [device, *others])
        at_once = min(len(self.devices), n_trees)
        self.grows_whole = device == "cpu" and whole
        return grower, at_once

    def grow(self, tree: Any, t: int) -> Tree:
        """Grow tree t by its estimator, on the rows that it has drawn."""
        weight = self._weight(t)

        def grow(device: str) -> Tree:
            tree.device = device
            grown: Tree = tree._grow_tree(self.table, self.target, weight, self.n_rows)
            return grown

        device = self.devices.popleft()
        found = self.table.within_memory(self.forest.device, device, grow)
        self.devices.append(tree.device)  # the CPU, where the memory of a device did not suffice
        return found

    def grow_whole(self, tree: Any, numbers: Sequence[int]) -> list[CompactTree] | None:
        """Grow trees by a copy of `tree` in one call; None where they need others."""
        drawn, origins = [self._weight(t) for t in numbers], self.forest._origins
        seeds = [tree_seed(*origins[t].key) for t in numbers]
        found = tree._grow_whole(self.table, self.target, drawn, seeds)
        if found is not None:
            criterion, d = tree._formula, self.table.shape[1]
            return [CompactTree.of_whole(whole, criterion, d) for whole in found]
        self.grows_whole = len(numbers) > 1
        return None

    def _weight(self, t: int) -> Weight:
        """Weights of the rows in tree t, their numbers of draws among them."""
        counts = self.forest._counts(t)
        weight = self.weight if counts is None else counts
        if self.forest._balances_subsamples:
            weight = np.ones(self.n_rows) if weight is None else weight
            weight = balanced(self.target, weight)
        return weight


def balanced(target: NDArray[Any], weight: NDArray[Any]) -> Floats:
    """Weights of rows with which all classes have the same; of several targets, by their product.

    The total weight is that before, as far as classes have weight.
    """
    if target.ndim == 1:
        return weight * balancing(np.bincount(target, weight))[target]
    factors = [balancing(np.bincount(of_one, weight))[of_one] for of_one in target.T]
    found = weight * np.prod(factors, axis=0)
    scaled: Floats = found * (weight.sum() / found.sum())
    return scaled


def balancing(of_class: NDArray[Any]) -> Floats:
    """Factors that give all classes with weight the same total weight; 0 for the others."""
    present = of_class > 0
    found = np.zeros(of_class.size)
    found[present] = of_class.sum() / (np.count_nonzero(present) * of_class[present])
    return found
