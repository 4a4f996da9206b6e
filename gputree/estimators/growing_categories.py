"""From validated arrays to the `Tree` of CART where columns hold categories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree import prediction
from gputree.backends import get_cart_list_backend
from gputree.backends.cart_lists import CartTask, SubsetSearch
from gputree.branches import BranchLists, places_of
from gputree.dtypes import NO_THRESHOLD, SUBSET_SPLIT
from gputree.encoding import bin_codes, code_columns
from gputree.estimators.growing import (
    BinaryShape,
    Grown,
    Options,
    check_statistics,
    close_tree,
    grow_tree,
    missing_columns,
    new_task,
    numbered_tree,
)
from gputree.estimators.resolution import warn_if_coarse
from gputree.fixed_point import fix_targets, fix_weights
from gputree.growth.assembly import ListNodes, renumber
from gputree.growth.cart_lists import CartGrower, Neighbours
from gputree.growth.nesting import Subsets, nest
from gputree.growth.progress import Progress
from gputree.tree import Tree

CategoricalSplit = Literal["auto", "exhaustive", "ordered", "one_vs_rest"]

# Categories present in a node, with more than two classes, up to which all subsets are
# tried: by default, where they cost about as much as the orders by each class, and at most.
FEW_CATEGORIES = 10
MOST_EXHAUSTIVE = 20

# Shares of classes in fewer rows are mostly noise, and orders by them fit it: with more
# than FEW_CATEGORIES, single ones are split off instead. Of 14 tables, four have columns of
# so many categories, and two of these tell the settings apart. Test score in ten folds at 4,
# 8, 16, 32 leaves:
#     rows          cylinder_bands (429, 71, 20 categories)    auto_mpg (13)
#     no limit      0.61 0.63 0.63 0.63                        0.66 0.78 0.75 0.77
#     3             0.69 0.68 0.71 0.74                        0.66 0.78 0.75 0.77
#     5             0.69 0.69 0.72 0.74                        0.66 0.78 0.75 0.76
#     10            0.69 0.73 0.74 0.75                        0.66 0.67 0.70 0.70
#     20            0.69 0.73 0.73 0.75                        0.66 0.66 0.70 0.69
#     one-hot       0.70 0.71 0.74 0.74                        0.65 0.70 0.71 0.72
# Chosen on these very folds: what it is worth on other tables is not known.
LEAST_ROWS = 5.0


class Categories(NamedTuple):
    """What is to be known of nominal columns.

    Attributes
    ----------
    nominal : bool array of shape (d,)
    number : int64 array of shape (d,)
        Categories of each column; 0 for numeric ones.
    split : "auto", "exhaustive", "ordered" or "one_vs_rest"
    """

    nominal: NDArray[np.bool_]
    number: NDArray[np.int64]
    split: CategoricalSplit

    @property
    def search(self) -> SubsetSearch:
        """Which subsets `split` stands for."""
        if self.split == "one_vs_rest":
            return SubsetSearch(0, np.inf, 0, 0)
        if self.split == "auto":
            return SubsetSearch(FEW_CATEGORIES, LEAST_ROWS, FEW_CATEGORIES, FEW_CATEGORIES)
        if self.split == "exhaustive":
            return SubsetSearch(0, 0.0, MOST_EXHAUSTIVE, MOST_EXHAUSTIVE)
        return SubsetSearch(0, 0.0, 0, FEW_CATEGORIES)


def grow_with_categories(
    values: NDArray,
    target: NDArray,
    sample_weight: NDArray[np.float64] | None,
    categories: Categories,
    options: Options,
) -> Grown:
    """Grow a CART tree; columns of at most two categories need no lists.

    Parameters
    ----------
    values : float32 or float64 array of shape (n, d), NaN where missing
        Numbers, and codes of categories in nominal columns.
    target, sample_weight, options
        See `gputree.estimators.growing.grow_tree`.
    categories : Categories
    """
    if (categories.number <= 2).all():
        values = np.ascontiguousarray(values)
        grown = grow_tree(values, target, sample_weight, options)
        tree = _thresholds_as_subsets(grown.tree, values, categories, options.n_threads)
        return grown._replace(tree=tree)
    tree = grow_lists(values, target, sample_weight, categories, options)
    return Grown(tree, {"refined_pairs": 0, "scanned_pairs": 0})


def grow_lists(
    values: NDArray,
    target: NDArray,
    sample_weight: NDArray[np.float64] | None,
    categories: Categories,
    options: Options,
) -> Tree:
    """Grow a CART tree over attribute lists; parameters as in `grow_with_categories`."""
    n, d = values.shape
    missing_columns(values, options.n_threads)  # refuses infinity
    weights = fix_weights(sample_weight, n)
    targets = None if options.n_classes else fix_targets(target, weights)
    warn_if_coarse(sample_weight, weights, target, targets)
    task = CartTask(
        new_task(target, weights, targets, options), categories.nominal, categories.search
    )
    codes, distinct = code_columns(values, categories.nominal, options.n_threads)
    neighbours = Neighbours(distinct, distinct)
    if not options.exact:
        binned = bin_codes(codes, distinct, values, options.max_bins, options.n_threads)
        neighbours = Neighbours(*binned)
    grower = CartGrower(task, neighbours, options.max_leaf_nodes, options.key)
    kind = get_cart_list_backend(options.device)
    with Progress(n, enabled=options.verbose) as progress:
        nodes, subsets = grower.grow(kind(codes, task, options.n_threads), progress)
    check_statistics(nodes.first_child.size, options.n_classes)
    nodes, parent, depth = renumber(nodes)
    shape = BinaryShape(parent, depth, nodes.rows, nodes.sums)
    tree = numbered_tree(nodes, shape, weights, targets, options, d)
    return close_tree(_with_subsets(tree, nodes, subsets), shape, options)


def _with_subsets(tree: Tree, nodes: ListNodes, subsets: Subsets) -> Tree:
    """The tree with its tests of categories.

    Categories that a node has no rows of have no branch: they go as missing values do.
    """
    lists = nest(tree.first_child, tree.parent, tree.feature, nodes.subset, subsets)
    return _test_categories(tree, nodes.subset >= 0, lists)


def _thresholds_as_subsets(
    tree: Tree, values: NDArray, categories: Categories, n_threads: int
) -> Tree:
    """The tree with cuts of columns of at most two categories, 0 and 1, as tests of these.

    As in `_with_subsets`, categories that a node has no rows of have no branch.
    """
    inner = np.flatnonzero(~tree.is_leaf)  # leaves have no column
    at = inner[categories.nominal[tree.feature[inner]]]
    owner, code = places_of(np.zeros_like(at), categories.number[tree.feature[at]])
    seen = _categories_present(tree, values, at, n_threads)[at[owner]] >> code & 1 == 1
    owner, code = owner[seen], code[seen]
    child = tree.first_child[at][owner] + (code > tree.threshold[at][owner])
    return _test_categories(tree, at, BranchLists.of_pairs(tree.n_nodes, child, code))


def _categories_present(
    tree: Tree, values: NDArray, at: NDArray[np.int64], n_threads: int
) -> NDArray[np.uint8]:
    """Which of the categories 0 and 1 of the column that is cut the rows of each node hold.

    Bits, of shape (nodes,). A cut between the two tells that both are there; only where
    missing values alone are cut off, rows are sent down the tree to find out.
    """
    present = np.full(tree.n_nodes, 0b11, np.uint8)
    cut_off = at[tree.threshold[at] == np.inf]
    if cut_off.size == 0:
        return present
    leaf = prediction.apply(tree, values, n_threads)
    levels = np.searchsorted(tree.depth, np.arange(tree.depth[-1] + 2))
    for f in np.unique(tree.feature[cut_off]):
        known = ~np.isnan(values[:, f])
        found = np.zeros(tree.n_nodes, np.uint8)
        np.bitwise_or.at(found, leaf[known], np.uint8(1) << values[known, f].astype(np.uint8))
        for first, last in zip(levels[-2:0:-1], levels[:1:-1], strict=True):
            np.bitwise_or.at(found, tree.parent[first:last], found[first:last])
        own = cut_off[tree.feature[cut_off] == f]
        present[own] = found[own]
    return present


def _test_categories(tree: Tree, nodes: NDArray[Any], lists: BranchLists) -> Tree:
    """The tree where some nodes, by mask or place, test categories."""
    kind, threshold = tree.split_kind.copy(), tree.threshold.copy()
    kind[nodes], threshold[nodes] = SUBSET_SPLIT, NO_THRESHOLD
    return replace(tree, split_kind=kind, threshold=threshold, **lists._asdict())
