"""Collapse of subtrees that save no training error, as C4.5 and J48 do before they prune."""

from __future__ import annotations

from gputree.errors import InputError
from gputree.pruning.bottom_up import sum_over_subtrees
from gputree.tree import Tree

LEAST_SAVING = 1e-3  # a subtree must save more errors than this, in C4.5 and J48 alike


def collapse_splits(tree: Tree) -> Tree:
    """The tree without subtrees that reduce no training errors.

    A subtree whose leaves make as many training errors as its root would as a leaf, less at
    most 0.001, becomes a leaf. Every subtree is evaluated as grown, as in J48; C4.5 Release 8
    evaluates it with those below it collapsed, so that the 0.001 adds up.

    Parameters
    ----------
    tree : Tree
        Classification tree.

    Returns
    -------
    Tree
        Renumbered breadth-first.

    Raises
    ------
    ValueError
        If `tree` is a regression tree.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993.
    """
    if tree.task != "classification":
        raise InputError(
            "collapse_splits counts misclassified rows and needs a classification tree. "
            f"Got a {tree.task} tree."
        )
    errors = tree.weight - tree.statistics.max(axis=1)
    return tree.collapse(sum_over_subtrees(tree, errors) >= errors - LEAST_SAVING)
