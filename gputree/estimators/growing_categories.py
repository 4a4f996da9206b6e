"""Columns of categories in CART: subsets to search, and conversion of splits to tests."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Backend, SubsetSearch
from gputree.base.dtypes import NO_THRESHOLD, SUBSET_SPLIT
from gputree.columns import Columns
from gputree.growth.assembly import GrownNodes, list_subsets
from gputree.tree import Tree
from gputree.tree.branches import BranchLists, nest

CategoricalSplit = Literal["auto", "exhaustive", "ordered", "one_vs_rest"]

# Categories present in a node, with more than two classes, up to which all subsets are
# tried: by default, where they cost about as much as the orders by each class, and at most.
FEW_CATEGORIES = 10
MOST_EXHAUSTIVE = 20

# Class proportions in fewer rows are mostly noise, and orders by them fit it: with more
# than FEW_CATEGORIES, single ones are split off instead. Of 14 tables, four have columns of
# so many categories, and the settings differ on two of these. Test score in ten folds at 4,
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


def search_of(split: CategoricalSplit) -> SubsetSearch:
    """Limits of the search of subsets that `split` stands for."""
    if split == "one_vs_rest":
        return SubsetSearch(0, np.inf, 0, 0)
    if split == "auto":
        return SubsetSearch(FEW_CATEGORIES, LEAST_ROWS, FEW_CATEGORIES, FEW_CATEGORIES)
    if split == "exhaustive":
        return SubsetSearch(0, 0.0, MOST_EXHAUSTIVE, MOST_EXHAUSTIVE)
    return SubsetSearch(0, 0.0, 0, FEW_CATEGORIES)


def add_category_tests(tree: Tree, nodes: GrownNodes, backend: Backend, columns: Columns) -> Tree:
    """The tree, whose splits are all thresholds, with its tests of categories.

    Categories that a node has no rows of have no branch: they go as missing values do. `nodes` are
    the tree's, breadth-first, as the `backend` has grown them.
    """
    if not columns.grown_categories.any():
        return _thresholds_as_subsets(tree, nodes, backend, columns)
    listed = np.append(columns.nominal, False)[np.maximum(tree.feature, -1)]
    subset = np.where(listed, np.cumsum(listed) - 1, -1)
    subsets = list_subsets(backend, nodes, tree.parent, subset)
    lists = nest(tree.first_child, tree.parent, tree.feature, subset, subsets)
    return as_tests(tree, listed, lists)


def _thresholds_as_subsets(
    tree: Tree, nodes: GrownNodes, backend: Backend, columns: Columns
) -> Tree:
    """The tree with cuts of columns of at most two categories, 0 and 1, as tests of these."""
    inner = np.flatnonzero(~tree.is_leaf)  # leaves have no column
    tested = inner[columns.nominal[tree.feature[inner]]]
    # a cut between the two shows that both are there, one before missing values does not
    cut_off = np.flatnonzero(tree.threshold[tested] == np.inf)
    chosen = tested[cut_off]
    counts, codes = backend.categories(nodes.begin[chosen], nodes.end[chosen], tree.feature[chosen])
    between = np.delete(np.arange(tested.size), cut_off)
    owner = np.concatenate([np.repeat(cut_off, counts), np.repeat(between, 2)])
    code = np.concatenate([codes, np.tile([0, 1], between.size)])
    child = tree.first_child[tested][owner] + (code > tree.threshold[tested][owner])
    return as_tests(tree, tested, BranchLists.of_pairs(tree.n_nodes, child, code))


def as_tests(tree: Tree, nodes: NDArray[Any], lists: BranchLists) -> Tree:
    """The tree where some nodes, by mask or place, test categories."""
    kind, threshold = tree.split_kind.copy(), tree.threshold.copy()
    kind[nodes], threshold[nodes] = SUBSET_SPLIT, NO_THRESHOLD
    return replace(tree, split_kind=kind, threshold=threshold, **lists._asdict())
