"""Trees of a forest in little memory: only fields that others cannot be computed from.

Of a binary tree numbered breadth-first, the k-th node that is split has the children 2 k + 1 and
2 k + 2, the rows and class weights of a node are those of the leaves below it, and impurities are
a function of class weights. What is left takes 13 to 15 bytes a node of two classes; a `Tree` takes
about a hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import (
    LEAF,
    MISSING_STOPS,
    NO_CHILD,
    NO_FEATURE,
    NO_THRESHOLD,
    NODE,
    SUBSET_SPLIT,
    THRESHOLD_SPLIT,
)
from gputree.base.threads import run
from gputree.criteria.named import class_impurity
from gputree.errors import place_in
from gputree.growth.assembly import WholeTrees, breadth_first, over_leaves
from gputree.prediction.descent import NARROW, WIDE, TreeSplits
from gputree.prediction.forest import JoinedTrees, PackedForest, SplitTree
from gputree.tree import Tree
from gputree.tree.branches import BranchLists

T = TypeVar("T")

# Types of integers, the narrowest first: the lowest value, and the first that is too high.
_NARROW = [
    (dtype, np.iinfo(dtype).min, float(np.iinfo(dtype).max) + 1)
    for dtype in (np.uint8, np.uint16, np.uint32, np.int64)
]


class CompactTree(NamedTuple):
    """Binary tree of N nodes, S of them splits and L leaves."""

    task: Any  # "classification" or "regression"
    criterion: str
    n_features: int
    is_split: NDArray[np.bool_]  # (N,)
    feature: NDArray[np.int32]  # (S,)
    threshold: NDArray[np.float64]  # (S,)
    missing_child: NDArray[np.int8]  # (S,)
    is_subset: NDArray[np.bool_] | None  # (S,) None where all splits are thresholds
    gain: NDArray[np.float64]  # (S,)
    n_rows: NDArray  # (L,)
    # (L,); (N,) where sums over leaves are rounded; None where it is the sum of class weights, and
    # greater than 0: not of several targets
    weight: NDArray | None
    statistics: NDArray  # (L, K); (N, K) where sums over leaves are rounded, and of means
    impurity: NDArray[np.float64] | None  # (N,) None where class weights give it
    lower: NDArray[np.float64] | None  # (N,)
    upper: NDArray[np.float64] | None
    lists: BranchLists | None  # None where all splits are thresholds
    target_classes: tuple[int, ...] = ()  # earlier pickles lack it

    @classmethod
    def of(cls, tree: Tree) -> CompactTree:
        """A tree of CART."""
        split = ~tree.is_leaf
        subset = tree.split_kind[split] == SUBSET_SPLIT
        statistics = tree.statistics
        impurity: NDArray | None = tree.impurity
        classifies = tree.task == "classification"
        if classifies:
            statistics = _of_leaves(tree, statistics)
            of_one = not tree.target_classes
            if of_one and _same(impurity, _impurity(tree.criterion, tree.statistics)):
                impurity = None
        weight = None
        if not (classifies and tree.weight.all() and _same(tree.weight, _sums(tree.statistics))):
            weight = _of_leaves(tree, tree.weight[:, None])[:, 0]
        return cls(
            task=tree.task,
            criterion=tree.criterion,
            n_features=tree.n_features,
            is_split=split,
            feature=tree.feature[split],
            threshold=tree.threshold[split],
            missing_child=tree.missing_child[split].astype(np.int8),
            is_subset=subset if subset.any() else None,
            gain=tree.gain[split],
            n_rows=_narrow(tree.n_rows[~split]),
            weight=weight,
            statistics=statistics,
            impurity=impurity,
            lower=tree.lower,
            upper=tree.upper,
            lists=tree.branch_lists if subset.any() else None,
            target_classes=tree.target_classes,
        )

    @classmethod
    def of_whole(cls, tree: WholeTrees, criterion: str, n_features: int) -> CompactTree:
        """A tree whose cuts are thresholds, with class weights or means of targets."""
        classifies = tree.mean.size == 0
        kinds = [_narrowest(0, highest) for highest in tree.highest[0].tolist()]
        n_rows, weight = tree.n_rows.astype(kinds[0]), tree.weight.astype(kinds[1])
        return cls(
            task="classification" if classifies else "regression",
            criterion=criterion,
            n_features=n_features,
            is_split=tree.is_split,
            feature=tree.feature,
            threshold=tree.threshold,
            missing_child=tree.missing_child,
            is_subset=None,
            gain=tree.gain,
            n_rows=n_rows,
            weight=None if classifies else weight[:, 0],
            statistics=weight if classifies else tree.mean,
            impurity=None if classifies else tree.impurity,
            lower=None,
            upper=None,
            lists=None,
        )

    @property
    def n_nodes(self) -> int:
        """Splits and leaves."""
        return self.is_split.size

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [*self, *(self.lists or ())]
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))

    def expand(self) -> Tree:
        """The tree, field by field."""
        inner = np.flatnonzero(self.is_split)
        first_child = np.full(self.n_nodes, NO_CHILD, NODE)
        first_child[inner] = 2 * np.arange(inner.size) + 1
        parent = np.full(self.n_nodes, NO_CHILD, NODE)
        parent[1:] = inner.repeat(2)
        kind = np.where(self.is_split, THRESHOLD_SPLIT, LEAF).astype(np.uint8)
        if self.is_subset is not None:
            kind[inner[self.is_subset]] = SUBSET_SPLIT

        def of_splits(values: NDArray, dtype: Any, at_leaf: float) -> NDArray:
            spread = np.full(self.n_nodes, at_leaf, dtype)
            spread[inner] = values
            return spread

        statistics = _over(first_child, self.statistics)
        impurity = self.impurity
        if impurity is None:
            impurity = _impurity(self.criterion, statistics)
            assert impurity is not None
        weight = _sums(statistics)
        if self.weight is not None:
            weight = _over(first_child, self.weight[:, None])[:, 0]
        lists = BranchLists.none(self.n_nodes) if self.lists is None else self.lists
        return Tree(
            task=self.task,
            criterion=self.criterion,
            n_features=self.n_features,
            first_child=first_child,
            n_children=np.where(self.is_split, 2, 0).astype(NODE),
            parent=parent,
            depth=breadth_first(first_child)[1],
            split_kind=kind,
            feature=of_splits(self.feature, np.int32, NO_FEATURE),
            threshold=of_splits(self.threshold, np.float64, NO_THRESHOLD),
            missing_child=of_splits(self.missing_child, NODE, MISSING_STOPS),
            weight=weight,
            n_rows=over_leaves(first_child, self.n_rows.astype(np.int64)[:, None])[:, 0],
            statistics=statistics,
            impurity=impurity,
            gain=of_splits(self.gain, np.float64, 0.0),
            lower=self.lower,
            upper=self.upper,
            target_classes=self.target_classes,
            **lists._asdict(),
        )

    def before_packing(self) -> SplitTree:
        """The tree, if its splits are thresholds; without `expand` if it is a usual one."""
        answers, weight, of_weights = self.statistics, self.weight, self.task == "classification"
        all_weigh = weight is None or weight.all()
        if self.lower is not None or not all_weigh or self.missing_child.min(initial=0) < 0:
            return SplitTree.of(self.expand())
        leaf = ~self.is_split
        if len(answers) > self.n_rows.size:
            answers = answers[leaf]
        if of_weights and weight is not None:
            weight = weight if weight.size == self.n_rows.size else weight[leaf]
            answers, of_weights = answers / weight.astype(np.float64)[:, None], False
        child = np.arange(1, self.n_nodes, 2, dtype=NODE)
        splits = self.is_split, child, self.feature, self.threshold, self.missing_child
        return SplitTree(TreeSplits(*splits), answers, of_weights)


class LazySequence(Sequence[T]):
    """The results of `make` for each item, computed on access."""

    def __init__(self, items: list[Any], make: Callable[[Any], T], what: str) -> None:
        self._items, self._make, self._what = items, make, what

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return list(map(self._make, self._items[place]))
        return self._make(self._items[place_in(place, len(self), self._what)])

    def __repr__(self) -> str:
        return f"<{len(self)} {self._what}>"


class Trees(Sequence[CompactTree]):
    """The trees of a forest; also as rows descend them, made when they are needed."""

    # (trees, trees) of `gputree.ensemble.out_of_bag`, once needed; earlier pickles lack it
    common_draws: NDArray[np.float64] | None = None

    def __init__(self, trees: Iterable[CompactTree]) -> None:
        self._trees = list(trees)
        self._packed: tuple[Any, PackedForest] | None = None

    def __len__(self) -> int:
        return len(self._trees)

    @overload
    def __getitem__(self, place: int) -> CompactTree: ...
    @overload
    def __getitem__(self, place: slice) -> list[CompactTree]: ...
    def __getitem__(self, place: int | slice) -> CompactTree | list[CompactTree]:
        return self._trees[place]

    def __getstate__(self) -> dict[str, Any]:
        return {"_trees": self._trees, "_packed": None}

    @property
    def expanded(self) -> LazySequence[Tree]:
        """The trees, field by field."""
        return LazySequence(self._trees, CompactTree.expand, "trees")

    @property
    def target_ends(self) -> tuple[int, ...]:
        """Columns of predictions before each target, and all of them."""
        return self._trees[0].expand().target_ends

    @property
    def node_ends(self) -> NDArray[np.int64]:
        """Nodes of all trees before each, and of all: of shape (trees + 1,)."""
        return np.cumsum([0, *(tree.n_nodes for tree in self._trees)])

    def packed(self, dtype: Any, n_threads: int) -> PackedForest:
        """The trees for rows of float32 values, or of others."""
        narrow = NARROW if dtype == NARROW else WIDE
        kept = self._packed  # read once: another thread may replace it by that of another type
        if kept is None or kept[0] != narrow:

            def pack(some: list[CompactTree]) -> JoinedTrees:
                if some[0].is_subset is not None:
                    return JoinedTrees.of_one(some[0].expand(), narrow)
                return JoinedTrees.of([tree.before_packing() for tree in some], narrow, n_threads)

            if any(tree.is_subset is not None for tree in self._trees):
                joined = run(n_threads, pack, [([tree],) for tree in self._trees])
            else:
                joined = [pack(self._trees)]
            kept = self._packed = narrow, PackedForest(joined)
        return kept[1]


def _of_leaves(tree: Tree, values: NDArray[np.float64]) -> NDArray:
    """Values of leaves if they add up to the values of all other nodes; else values of all nodes.

    Sums are rounded, and those of integers may exceed the largest one.
    """
    leaves = _narrow(values[tree.is_leaf])
    return leaves if _same(values, _over(tree.first_child, leaves)) else values


def _over(first_child: NDArray, values: NDArray) -> NDArray[np.float64]:
    """Values of all nodes, from stored values of all nodes or of leaves."""
    if len(values) == first_child.size and first_child.size > 1:
        return values
    kind = np.int64 if values.dtype.kind in "iu" else np.float64
    return over_leaves(first_child, values.astype(kind)).astype(np.float64)


def _sums(statistics: NDArray) -> NDArray:
    """Sums over classes, in the same order for any layout."""
    return np.ascontiguousarray(statistics).sum(axis=1)


def _impurity(criterion: str, statistics: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Impurities of class weights; None of weights that are not integers."""
    whole = _narrow(statistics)
    if whole.dtype.kind == "f":
        return None
    return class_impurity(criterion, whole.astype(np.int64))


def _narrow(values: NDArray) -> NDArray:
    """Convert integers to the narrowest type that can represent them; leave others as they are."""
    dtype = _narrowest(values.min(), values.max())
    if dtype is None:
        return values
    narrow = values.astype(dtype)
    whole = values.dtype.kind in "iu" or (narrow == values).all()
    return narrow if whole else values


def _narrowest(lowest: float, highest: float) -> Any:
    """The narrowest type of integers in this range, None if there is none."""
    kinds = (dtype for dtype, lowest_of, end in _NARROW if lowest_of <= lowest and highest < end)
    return next(kinds, None)


def _same(a: NDArray | None, b: NDArray | None) -> bool:
    return a is not None and b is not None and np.array_equal(a, b)
