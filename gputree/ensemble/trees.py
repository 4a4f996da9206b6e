"""Rows that the trees of a forest are grown on; forests of some trees, or of those of two."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.backends.devices import within_memory
from gputree.base.dtypes import Floats
from gputree.base.threads import n_threads
from gputree.ensemble.compact import CompactTree, Trees
from gputree.ensemble.draws import Origin, tree_seed
from gputree.errors import InputError, InputTypeError, warn
from gputree.estimators.cart import column_count
from gputree.estimators.growing_ranked import is_ranked
from gputree.growth.frontier import FEWEST_ROWS
from gputree.inputs.tables import Table
from gputree.inputs.targets import listed
from gputree.prediction.quantiles import LeafTargets
from gputree.tree import Tree

Weight = NDArray[Any] | None  # float64, or how often rows are drawn


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
    stacked: int = 1  # number of trees that a device grows together

    @property
    def n_rows(self) -> int:
        """Number of all rows."""
        return self.table.shape[0]

    @property
    def dtype(self) -> Any:
        """Type of the values, for which trees are packed."""
        return self.table.source.dtype

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
            if not (ranks and on_device.rank_for(n_columns, n_trees, threads)):
                on_device.prepare(bins, threads, exact, n_columns)
            return device

        device = grower.device = table.within_memory(forest.device, device, code)
        others = table.other_devices(forest.device, device, threads, bool(forest.verbose))
        self.devices = deque([device] * threads if device == "cpu" else [device, *others])
        at_once = min(len(self.devices), n_trees)
        self.grows_whole = device == "cpu" and whole
        if device != "cpu" and grower._grows_stacked(table):
            on_device: Any = table.on(device, threads)
            self.stacked = on_device.stacked_trees(forest.max_device_memory)
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

    def grow_stacked(self, trees: list[Any], numbers: Sequence[int]) -> list[CompactTree] | None:
        """Grow trees by their estimators on a device, together; None where its memory lacks."""
        device = self.devices.popleft()
        for tree in trees:
            tree.device = device

        def grow(_: str) -> list[CompactTree]:
            trees[0]._grow_stacked(self.table, self.target, map(self._weight, numbers), trees)
            return [CompactTree.of(tree.tree_) for tree in trees]

        try:
            is_device = device != "cpu"
            return within_memory("cuda", device, grow, lambda _: None) if is_device else None
        except MemoryError:
            return None
        finally:
            self.devices.append(device)

    def grow_whole(self, tree: Any, numbers: Sequence[int]) -> list[CompactTree] | None:
        """Grow trees by a copy of `tree` in one call; None where they need others."""
        drawn, origins = self.forest._counts_of(numbers), self.forest._origins
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


# What a fit with `oob_score` leaves.
OUT_OF_BAG = ("oob_score_", "oob_decision_function_", "oob_prediction_")


def cut(forest: Any, place: slice) -> Any:
    """A fitted forest of some trees of a forest, which are not copied."""
    numbers = range(len(forest._trees))[place]
    if not numbers:
        raise InputError(
            f"A forest has one tree at least, and {type(forest).__name__}[{_text(place)}] none of "
            f"{len(forest._trees)}."
        )
    origins = [forest._origins[t] for t in numbers]
    made = _of_trees(forest, [forest._trees[t] for t in numbers], origins)
    is_of_table = all(origin.of.n == forest._draws.n for origin in origins)  # of the last fit
    if hasattr(forest, "_leaf_targets") and is_of_table:
        made._leaf_targets = [of.of_trees(np.array(numbers)) for of in forest._leaf_targets]
    return made


def join(first: Any, second: Any) -> Any:
    """A fitted forest of the trees of two, with the parameters of the first one."""
    check_is_fitted(first)
    check_is_fitted(second)
    _require_alike(first, second)
    _warn_of_repeated(first, second)
    made = _of_trees(first, [*first._trees, *second._trees], [*first._origins, *second._origins])
    if hasattr(first, "_leaf_targets"):
        pairs = zip(first._leaf_targets, second._leaf_targets, strict=True)
        made._leaf_targets = [of.joined(other) for of, other in pairs]
    return made


def _of_trees(forest: Any, trees: list[CompactTree], origins: list[Origin]) -> Any:
    """Copy a forest with other trees, without attributes that depend on the former ones."""
    made = copy(forest)
    for name in (*OUT_OF_BAG, "_leaf_targets"):
        made.__dict__.pop(name, None)
    made.n_estimators = len(trees)
    made._trees, made._origins, made._draws = Trees(trees), origins, origins[-1].of
    return made


def _require_alike(first: Any, second: Any) -> None:
    """Raise an error unless two forests have the same class, columns, classes and training rows."""
    kinds = type(first).__name__, type(second).__name__
    if kinds[0] != kinds[1]:
        raise InputTypeError(f"Forests to join must be of one class, got {' + '.join(kinds)}.")
    names: list[Any] = [getattr(forest, "feature_names_in_", None) for forest in (first, second)]
    if not (first.columns_.same_as(second.columns_) and np.array_equal(names[0], names[1])):
        raise InputError(
            f"The columns of both {kinds[0]}s must have the same names and categories to join "
            "them; grow both on one data type, or on a CodedTable."
        )
    classes = [listed(getattr(forest, "classes_", [])) for forest in (first, second)]
    if classes[0] != classes[1]:
        raise InputError(
            f"Both {kinds[0]}s must have the same classes to join them: {classes[0]} and "
            f"{classes[1]}."
        )
    counts = first.n_outputs_, second.n_outputs_
    if counts[0] != counts[1]:
        raise InputError(
            f"Both {kinds[0]}s must have as many targets to join them: {counts[0]} and {counts[1]}."
        )
    targets: list[Any] = [getattr(forest, "_leaf_targets", None) for forest in (first, second)]
    if targets[0] is targets[1] is None:
        return
    if None in targets or not all(map(LeafTargets.is_of_rows_of, *targets)):
        raise InputError(
            f"Both {kinds[0]}s must have kept the targets of the same rows (quantreg=True) to "
            "join them, or neither."
        )


def _warn_of_repeated(first: Any, second: Any) -> None:
    """Warn of trees that are in both."""
    numbers = {(origin.key, origin.of.n): t for t, origin in enumerate(first._origins)}
    repeated = 0
    for t, origin in enumerate(second._origins):
        twin = numbers.get((origin.key, origin.of.n))
        if twin is None:
            continue
        one, other = first._trees[twin], second._trees[t]
        repeated += all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("is_split", "feature", "threshold")
        )
    if repeated:
        warn(
            f"{repeated} of {len(second._origins)} trees are in both forests: give each another "
            "random_state."
        )


def _text(place: slice) -> str:
    parts = [place.start, place.stop, *([] if place.step is None else [place.step])]
    return ":".join("" if part is None else str(part) for part in parts)
