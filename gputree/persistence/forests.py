"""The codec of forests: one header, and the trees in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree import ensemble
from gputree.ensemble.base import Draws, Forest
from gputree.ensemble.compact import CompactTree, Trees
from gputree.errors import InputError
from gputree.estimators.classification import TableClassifier
from gputree.persistence.codecs import CODECS, known_name
from gputree.persistence.header import complete, field_of, header_of, with_params
from gputree.persistence.model_file import LEAF_TARGETS, Contents
from gputree.prediction.quantiles import LeafTargets
from gputree.tree import Tree


def contents_of(forest: Forest) -> Contents:
    """What a file holds of a forest."""
    check_is_fitted(forest)
    seed, n, draws, weight = forest._draws
    of_draws = {"seed": seed, "n_rows": n, "draws": draws, "by_weight": weight is not None}
    header = header_of(forest) | {"bootstrap": of_draws}
    trees = forest._trees.expanded
    if not hasattr(forest, "_leaf_targets"):
        return Contents(header, trees)
    return Contents(
        header, trees, {name: getattr(forest._leaf_targets, name) for name in LEAF_TARGETS}
    )


def rebuild(contents: Contents) -> Forest:
    """The forest of a file; rows that it drew in proportion to weights are not known."""
    header, trees, arrays = contents
    name = known_name(header, CODECS)
    forest: Forest = with_params(getattr(ensemble, name), header)
    task = "classification" if isinstance(forest, TableClassifier) else "regression"
    kinds = {(tree.task, tree.n_features, tree.n_classes, tree.is_binary) for tree in trees}
    if kinds != {(task, trees[0].n_features, trees[0].n_classes, True)}:
        raise InputError(f"the trees of {name} must be binary, of one task, columns and classes.")
    compact = Trees(map(CompactTree.of, trees))
    if not all(own.expand().equals(tree) for own, tree in zip(compact, trees, strict=True)):
        raise InputError(f"{name} cannot have such trees: they are not as CART grows them.")
    complete(forest, header, trees)
    forest.n_outputs_ = 1
    forest._trees = compact
    forest._draws = _draws(field_of(header, "bootstrap", dict))
    if arrays is not None:
        forest._leaf_targets = _leaf_targets(arrays, trees, forest._draws.n)
    return forest


def _draws(found: dict[str, Any]) -> Draws:
    seed, n = field_of(found, "seed", int), field_of(found, "n_rows", int)
    draws = field_of(found, "draws", int, type(None))
    if not 0 <= seed < 1 << 64 or n < 1 or (draws is not None and draws < 1):
        raise InputError("bootstrap must have positive numbers.")
    return Draws(seed, n, draws, np.empty(0) if field_of(found, "by_weight", bool) else None)


def _leaf_targets(arrays: dict[str, NDArray], trees: Sequence[Tree], n_rows: int) -> LeafTargets:
    """Targets and their leaves; ValueError where they are not those of so many rows and trees."""
    found = LeafTargets(**arrays)
    n = found.row.size
    if found.leaf.shape != (len(trees), n) or not found.target.size == found.weight.size == n:
        raise InputError("the arrays of targets differ in length.")
    if n == 0 or not np.isfinite([found.target, found.weight]).all() or found.weight.min() <= 0.0:
        raise InputError("targets must be finite, and their weights greater than 0.")
    if (np.diff(found.target) < 0.0).any():
        raise InputError("targets must be ascending.")
    if found.row.min() < 0 or found.row.max() >= n_rows or np.unique(found.row).size < n:
        raise InputError("each target must be that of another row.")
    for tree, leaf in zip(trees, found.leaf, strict=True):
        if leaf.min() < 0 or leaf.max() >= tree.n_nodes or not tree.is_leaf[leaf].all():
            raise InputError("targets must be in leaves.")
    return found
