"""Importances of columns, and the check that the numbers of a tree fit each other."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import MISSING_TO_ALL, Bools, Floats
from gputree.errors import InputError
from gputree.tree import Tree

# Of sums of rounded numbers, relative to what is added up; a tree's own are off by 1e-12.
SLACK = 1e-6

# Minimum units of weight in the root: parts of rows are rounded to whole units.
UNITS = 2.0**48


def bounded_gains(tree: Tree) -> Tree:
    """The tree with its gains bounded by `bound_gains`."""
    gain = bound_gains(tree.gain, tree.impurity, tree.impurity[0], tree.missing_child)
    return tree if gain is tree.gain else replace(tree, gain=gain)


def bound_gains(
    gain: Floats, impurity: Floats, whole: float | Floats, missing_child: NDArray[Any]
) -> Floats:
    """Set gains that rounding has put below 0 to 0, and those above their node's impurity to that.

    The impurity of their root is `whole`. Without any such gain, the same array is returned.

    Where weights span many decades, gains of the lightest nodes are rounded in steps that are
    large relative to them; so are those by Poisson deviance of large targets that differ little.
    """
    parted = missing_child == MISSING_TO_ALL
    # less than `check_statistics` allows of this tree and of its pruned trees
    slack = 0.5 * SLACK * (whole + impurity)
    above = ~parted & (gain > impurity + slack)
    below = gain < -slack
    if (above | below).any():
        gain = np.where(below, 0.0, np.where(above, impurity, gain))
    return gain


def check_statistics(tree: Tree) -> None:
    """Raise ValueError unless weights, rows, statistics, impurities and gains fit each other.

    The tree must have passed `Tree.check`. The error names the field and the first wrong node.
    """
    for field, problem, wrong in _problems(tree):
        nodes = np.flatnonzero(wrong)
        if nodes.size:
            value = getattr(tree, field)[nodes[0]].tolist()
            raise InputError(f"Invalid tree: {field} of node {nodes[0]} {problem}, got {value!r}.")


def _problems(tree: Tree) -> Iterator[tuple[str, str, Bools]]:
    """Yield the field of each fault, the text of the error, and the nodes that have it."""
    weight, statistics = tree.weight, tree.statistics
    yield "weight", "is negative", weight < 0
    yield "weight", "is 0, and a tree is grown on rows", (weight <= 0) & (tree.parent < 0)
    yield "n_rows", "is negative", tree.n_rows < 0
    up = np.maximum(tree.parent, 0)
    yield "n_rows", "is more than its parent has", tree.n_rows > tree.n_rows[up]
    below = np.bincount(up[1:], weight[1:], tree.n_nodes)
    unit = weight[0] / UNITS
    most = weight * (1 + SLACK) + tree.n_children * unit
    yield "weight", "is less than its children have", below > most
    if tree.task == "classification":
        yield "statistics", "is negative for a class", statistics.min(axis=1) < 0
        sums = np.stack([statistics[:, a:b].sum(axis=1) for a, b in pairwise(tree.target_ends)])
        apart = np.abs(sums - weight).max(axis=0)
        yield "statistics", "does not add up to its weight", apart > SLACK * weight
    impurity, slack = tree.impurity, SLACK * float(np.abs(tree.impurity).max())
    yield "impurity", "is negative", impurity < -slack
    yield "gain", "is negative", tree.gain < -slack
    # Fractional weights are rounded, and weights may span many decades.
    parted = tree.missing_child == MISSING_TO_ALL
    yield "gain", "is more than its impurity", ~parted & (tree.gain > impurity + slack)


def impurity_importances(tree: Tree, normalize: bool = True) -> Floats:
    """Total decrease of impurity by the splits on each column (Breiman et al. 1984, 5.3.4).

    Normalized, they add up to 1 where there are splits.
    """
    inner = ~tree.is_leaf
    decrease = tree.gain[inner] * tree.weight[inner] / tree.weight[0]
    total = np.zeros(tree.n_features)
    np.add.at(total, tree.feature[inner], decrease)
    whole = total.sum()
    return total / whole if normalize and whole > 0 else total


def mean_importances(trees: Iterable[Tree]) -> Floats:
    """Mean of the normalized importances of trees, normalized again: those without splits add none.

    Zeros where no tree has splits.
    """
    mean: Floats = np.mean([impurity_importances(tree) for tree in trees], axis=0)
    return mean / (mean.sum() or 1.0)
