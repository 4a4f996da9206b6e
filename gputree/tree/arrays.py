"""Arrays of a tree: sizes, levels, lists of categories, and invariants."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    LEAF,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_CHILD,
    NO_FEATURE,
    SUBSET_SPLIT,
    THRESHOLD_SPLIT,
    Bools,
    Floats,
    Int32s,
    Int64s,
)
from gputree.criteria.named import CRITERIA
from gputree.errors import InputError
from gputree.tree.branches import BranchLists, Spans

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class TreeArrays:
    """Arrays of a tree, and the check that they form one; `gputree.tree.Tree` documents them."""

    task: Task
    criterion: str
    n_features: int
    first_child: Int32s
    n_children: Int32s
    parent: Int32s
    depth: Int32s
    split_kind: NDArray[np.uint8]
    feature: Int32s
    threshold: Floats
    missing_child: Int32s
    weight: Floats
    n_rows: Int64s
    statistics: Floats
    impurity: Floats
    gain: Floats
    branch_begin: Int64s = None  # type: ignore[assignment]
    branch_end: Int64s = None  # type: ignore[assignment]
    branch_code: Int32s = None  # type: ignore[assignment]
    lower: Floats | None = None
    upper: Floats | None = None
    smoothing: float = 0.0
    soft_lower: Floats | None = None
    soft_upper: Floats | None = None
    target_classes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.branch_begin is None:
            for name, empty in BranchLists.none(self.n_nodes)._asdict().items():
                object.__setattr__(self, name, empty)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_derived"}

    @property
    def n_nodes(self) -> int:
        return self.first_child.size

    @property
    def is_leaf(self) -> Bools:
        return self.n_children == 0

    @property
    def n_leaves(self) -> int:
        return int(np.count_nonzero(self.is_leaf))

    @property
    def max_depth(self) -> int:
        return int(self.depth.max(initial=0))

    @property
    def n_classes(self) -> int:
        """Number of classes, those of several targets added up; of regression, of targets."""
        return self.statistics.shape[1]

    @property
    def n_outputs(self) -> int:
        if self.task == "regression":
            return self.statistics.shape[1]
        return len(self.target_classes) or 1

    @property
    def target_ends(self) -> tuple[int, ...]:
        """Columns of `statistics` before each target, and all of them; shape (n_outputs + 1,)."""
        widths = self.target_classes or (self.n_classes,)
        if self.task == "regression":
            widths = (1,) * self.n_classes
        return (0, *accumulate(widths))

    @property
    def is_binary(self) -> bool:
        return bool(np.isin(self.n_children, (0, 2)).all())

    def levels(self) -> list[slice]:
        """The nodes of each depth, root first, as slices of node indices."""
        bounds = np.searchsorted(self.depth, np.arange(self.max_depth + 2))
        return [slice(int(a), int(b)) for a, b in zip(bounds, bounds[1:], strict=False)]

    @property
    def branch_lists(self) -> BranchLists:
        """The fields that say which categories lead to each node."""
        return BranchLists(self.branch_begin, self.branch_end, self.branch_code)

    @property
    def tests_categories(self) -> Bools:
        """Mark nodes that test categories, rather than a number or nothing."""
        return (self.split_kind == BRANCH_SPLIT) | (self.split_kind == SUBSET_SPLIT)

    @property
    def branch_spans(self) -> Spans:
        """Ranges of each node's categories in `branch_code`, and the nodes that share them."""
        is_subset = self.split_kind == SUBSET_SPLIT
        return self.branch_lists.spans(self.first_child, self.n_children, self.parent, is_subset)

    def check(self) -> None:
        """Raise ValueError unless the arrays form one valid breadth-first tree."""
        for problem, wrong in self._problems():
            if np.any(wrong):
                raise InputError(f"Invalid tree: {problem}.")

    def _problems(self) -> Iterator[tuple[str, Any]]:
        """Yield descriptions of invariants, with True, or a mask of nodes, where one is broken."""
        n = self.n_nodes
        wrong: Any = self.criterion not in CRITERIA.get(self.task, ())
        yield f"the criterion {self.criterion!r} is none of {self.task}", wrong
        arrays = {f.name: getattr(self, f.name) for f in fields(self)}
        per_node = [v for k, v in arrays.items() if isinstance(v, np.ndarray) and "branch" not in k]
        wrong = n == 0 or any(len(v) != n for v in per_node)
        yield "it has no nodes, or arrays differ in length", wrong
        for name in ("weight", "statistics", "impurity", "gain"):
            yield f"{name} is not finite", ~np.isfinite(arrays[name]).all()
        yield "target_classes are not those of several targets", self._wrong_targets()
        yield "smoothing is negative or no number", not 0.0 <= self.smoothing < np.inf
        yield "predictions are smoothed and clipped to bounds", self.smoothing and self._is_held
        yield "soft thresholds are incomplete, or do not lie around theirs", self._wrong_soft()
        yield "bounds of predictions are incomplete, or empty", self._wrong_bounds()
        yield from self._shape_problems()
        yield from self._split_problems()

    @property
    def _is_held(self) -> bool:
        return self.lower is not None

    def _wrong_targets(self) -> bool:
        if self.statistics.ndim != 2 or not self.target_classes:
            return self.statistics.ndim != 2
        counts, total = self.target_classes, self.statistics.shape[1]
        wrong = self.task == "regression" or len(counts) < 2 or min(counts) < 1
        return wrong or sum(counts) != total or self.smoothing != 0.0

    def _wrong_soft(self) -> Any:
        """Mark thresholds not within the soft bounds; True if only one bound is set."""
        if self.soft_lower is None or self.soft_upper is None:
            return (self.soft_lower is None) != (self.soft_upper is None)
        around = (self.soft_lower <= self.threshold) & (self.threshold <= self.soft_upper)
        spread = self.soft_lower < self.soft_upper
        numeric = self.split_kind == THRESHOLD_SPLIT
        return ~around | (spread & ~numeric) | self._is_held

    def _wrong_bounds(self) -> Any:
        """Mark nodes whose `lower` and `upper` are no bounds; True if only one is set."""
        if self.lower is None or self.upper is None:
            return (self.lower is None) != (self.upper is None)
        two = self.n_classes == (2 if self.task == "classification" else 1)
        two = two and self.n_outputs == 1
        return ~(self.lower <= self.upper) | (not two)

    def _shape_problems(self) -> Iterator[tuple[str, Any]]:
        """Breadth-first order: children, parents, depths."""
        inner = np.flatnonzero(~self.is_leaf)
        wrong: Any = (self.n_children < 0) | (self.n_children == 1)
        yield "a node has one child, or fewer than none", wrong
        first = 1 + np.cumsum(self.n_children) - self.n_children
        wrong = self.n_children.sum() != self.n_nodes - 1
        wrong = wrong or (self.first_child[inner] != first[inner]).any()
        yield "children are not contiguous in breadth-first order", wrong
        owner = np.repeat(inner, self.n_children[inner])
        yield "a child does not name its parent", self.parent[1:] != owner
        yield "the root has a parent", self.parent[0] != NO_CHILD
        wrong = self.depth[0] != 0 or (self.depth[1:] != self.depth[owner] + 1).any()
        yield "depth is not the parent's plus one", wrong

    def _split_problems(self) -> Iterator[tuple[str, Any]]:
        """Splits: kinds, features, thresholds, branches, missing values."""
        leaf = self.is_leaf
        inner = ~leaf
        numeric, subset = self.split_kind == THRESHOLD_SPLIT, self.split_kind == SUBSET_SPLIT
        yield "a split is of no known kind", self.split_kind > SUBSET_SPLIT
        yield "a leaf has a split, or an inner node none", leaf != (self.split_kind == LEAF)
        yield "a leaf has a child", self.first_child[leaf] != NO_CHILD
        yield "a leaf has a feature", self.feature[leaf] != NO_FEATURE
        wrong = inner & ((self.feature < 0) | (self.feature >= self.n_features))
        yield "a feature is out of range", wrong
        yield "a threshold is NaN", np.isnan(self.threshold)
        yield "a threshold split is not binary", self.n_children[numeric] != 2
        yield "a subset split is not binary", self.n_children[subset] != 2
        lists, by_category = self.branch_lists, self.tests_categories
        yield from lists.problems(self.parent, by_category)
        yield from lists.span_problems(self.branch_spans, self.feature, by_category)
        wrong = (self.missing_child >= 0) & (self.missing_child >= self.n_children)
        yield "missing_child names no child", wrong | (self.missing_child < MISSING_STOPS)
        yield "a leaf sends missing values on", self.missing_child[leaf] >= MISSING_TO_ALL
