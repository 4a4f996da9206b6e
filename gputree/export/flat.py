"""Trees as flat tables of numbers, for programs that walk them without this library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.dtypes import (
    BRANCH_SPLIT,
    MISSING_STOPS,
    MISSING_TO_ALL,
    SUBSET_SPLIT,
    Bools,
    Floats,
    Int64s,
)
from gputree.export.model import Model
from gputree.prediction.shares import portions


class Flat(NamedTuple):
    """One entry a node, except where noted; a node stands for itself where a row stays."""

    feature: Int64s  # -1 at leaves
    # ``x <= threshold`` goes to `first`, other numbers to the node after it; NaN where
    # categories decide
    threshold: Floats
    # nodes: the first child, and where missing values and unknown categories go
    first: Int64s
    missing: Int64s
    unseen: Int64s
    begin: Int64s  # (N + 1,): categories of node t are ``code[begin[t]:begin[t + 1]]``, ascending
    # a category's code, and the node it goes to
    code: Int64s
    target: Int64s
    n_children: Int64s
    # whether the node sends what it cannot place to all children, with fractional weights
    spreads: Bools
    portion: Floats  # the fraction of a node among its siblings
    value: Floats  # (N, K): class shares, or the mean target
    root: Int64s  # (trees,): nodes; what trees predict is added in this order, and averaged


_NODES = ("first", "missing", "unseen", "target", "root")  # what numbers those of all trees


def flatten(models: Sequence[Model]) -> Flat:
    """The tables of some trees, one after the other."""
    each = [_flatten(model)._asdict() for model in models]
    nodes = np.cumsum([0, *(flat["feature"].size for flat in each)])
    places = np.cumsum([0, *(flat["code"].size for flat in each)])
    for flat, node, place in zip(each, nodes, places, strict=False):
        flat |= {name: flat[name] + node for name in _NODES}
        flat["begin"] = flat["begin"][:-1] + place
    whole = {name: np.concatenate([flat[name] for flat in each]) for name in Flat._fields}
    return Flat(**whole | {"begin": np.append(whole["begin"], places[-1])})


def _flatten(model: Model) -> Flat:
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
        root=np.zeros(1, np.int64),
    )


def _place(node: int, children: range, ordinal: int) -> int:
    return node if ordinal in (MISSING_STOPS, MISSING_TO_ALL) else children[ordinal]
