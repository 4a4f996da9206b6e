"""A tree as flat tables of numbers, for programs that walk it without this library."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import BRANCH_SPLIT, MISSING_STOPS, MISSING_TO_ALL, SUBSET_SPLIT
from gputree.export.model import Model
from gputree.prediction.shares import portions


class Flat(NamedTuple):
    """One entry a node, except where noted; a node stands for itself where a row stays.

    Attributes
    ----------
    feature : int array
        -1 at leaves.
    threshold : float64 array
        ``x <= threshold`` goes to `first`, other numbers to the node after it; NaN where
        categories decide.
    first, missing, unseen : int arrays
        Nodes: the first child, and where missing values and unknown categories go.
    begin : int array of shape (N + 1,)
        Categories of node t are ``code[begin[t]:begin[t + 1]]``, ascending.
    code, target : int arrays
        A category's code, and the node it goes to.
    n_children : int array
    spreads : bool array
        Whether the node sends what it cannot place to all children, with fractional weights.
    portion : float64 array
        The fraction of a node among its siblings.
    value : float64 array of shape (N, K)
        Class shares, or the mean target.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    first: NDArray[np.int64]
    missing: NDArray[np.int64]
    unseen: NDArray[np.int64]
    begin: NDArray[np.int64]
    code: NDArray[np.int64]
    target: NDArray[np.int64]
    n_children: NDArray[np.int64]
    spreads: NDArray[np.bool_]
    portion: NDArray[np.float64]
    value: NDArray[np.float64]


def flatten(model: Model) -> Flat:
    """The tables of a model."""
    tree = model.tree
    itself = np.arange(tree.n_nodes)
    leaf = tree.is_leaf
    by_code = np.isin(tree.split_kind, (BRANCH_SPLIT, SUBSET_SPLIT))
    missing, unseen = itself.copy(), itself.copy()
    codes: list[NDArray] = [np.empty(0, np.int64)]
    targets: list[NDArray] = [np.empty(0, np.int64)]
    sizes = np.zeros(tree.n_nodes, np.int64)
    for node in np.flatnonzero(~leaf).tolist():
        split = model.split(node)
        missing[node] = _place(node, split.children, split.missing)
        unseen[node] = _place(node, split.children, split.unseen)
        if split.codes:
            code = np.concatenate(split.codes)
            target = np.repeat(np.array(split.children), [c.size for c in split.codes])
            order = np.argsort(code)
            codes.append(code[order])
            targets.append(target[order])
            sizes[node] = code.size
    parts = portions(tree)
    return Flat(
        feature=np.where(leaf, -1, tree.feature).astype(np.int64),
        threshold=np.where(leaf, 0.0, np.where(by_code, np.nan, tree.threshold)),
        first=np.where(leaf, itself, tree.first_child),
        missing=missing,
        unseen=unseen,
        begin=np.append(0, np.cumsum(sizes)),
        code=np.concatenate(codes),
        target=np.concatenate(targets),
        n_children=tree.n_children.astype(np.int64),
        spreads=parts.spreads,
        portion=parts.portion,
        value=np.ascontiguousarray(tree.value[:, 0]),
    )


def _place(node: int, children: range, ordinal: int) -> int:
    return node if ordinal in (MISSING_STOPS, MISSING_TO_ALL) else children[ordinal]
