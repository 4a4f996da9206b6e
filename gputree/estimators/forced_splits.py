"""Forced splits: the top of a tree as a user writes it; below, the same search as without.

Both are made as in the editor of trees: each forced split replaces a leaf, then each leaf the
subtree that growth makes of its rows.
"""

import json
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.errors import InputError, warn
from gputree.estimators.arguments import cut_of, names_of, place_of
from gputree.estimators.growing import Options, grow_tree
from gputree.estimators.subtrees import CartSubtrees
from gputree.growth.assembly import graft
from gputree.growth.frontier import best_first_leaves
from gputree.inputs.tables import Table
from gputree.tree import Tree

_KEYS = {"feature", "threshold", "categories", "left", "right"}
_SIDES = ("left", "right")


def grow_forced(
    estimator: Any, table: Table, target: NDArray, weight: NDArray | None, options: Options
) -> Tree:
    """Grow a tree that begins with the ``forced_splits`` of an estimator of CART.

    Splits that leave a side without rows, or that limits exclude, are left out with a warning,
    and what is below them: growth splits such nodes.
    """
    _check_kind(estimator, table, options)
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        table, target, weight = table.take(kept), target[kept], weight[kept]
    rows = {"min_samples_leaf": options.min_samples_leaf}
    rows |= {"min_samples_split": options.min_samples_split}  # fractions are of all rows
    grower = copy(estimator).set_params(**rows)
    table = table.compact()
    leaf = grow_tree(table, target, weight, options._replace(max_depth=0)).tree
    subtrees = CartSubtrees(grower, table, target, weight)
    tree, forced = _force(subtrees, leaf, _read(estimator.forced_splits), options)
    for path in forced:
        for ordinal in range(2):
            tree = _grow_leaf(subtrees, tree, (*path, ordinal), options.max_depth)
    if not forced:
        tree = _grow_leaf(subtrees, tree, (), options.max_depth)
    if options.max_leaf_nodes is not None:
        gain = tree.gain * tree.weight
        gain[[_node(tree, path) for path in forced]] = np.inf  # first
        tree = tree.collapse(best_first_leaves(tree.first_child, gain, options.max_leaf_nodes))
    return tree


def _check_kind(estimator: Any, table: Table, options: Options) -> None:
    """Raise ValueError for what excludes forced splits."""
    for name in ("monotonic_cst", "interaction_cst"):
        if getattr(estimator, name) is not None:
            raise InputError(f"A tree takes 'forced_splits' or {name!r}, not both.")
    in_memory = table.sharding is None and isinstance(table.stored, np.ndarray)
    if options.device != "cpu" or not in_memory:
        raise InputError(
            "Splits are forced on the CPU, in tables in memory: forced_splits takes neither "
            "device='cuda' nor a table in batches or in partitions."
        )


def _read(given: Any) -> dict[str, Any]:
    """Return forced splits, from the JSON file that they may be in."""
    if isinstance(given, dict):
        return given
    try:
        found = json.loads(Path(given).read_text("utf-8"))
    except (OSError, ValueError) as error:
        name = str(given)
        raise InputError(f"forced_splits: {name!r} is no JSON file of splits: {error}") from error
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise InputError(f"forced_splits: {str(given)!r} has no object, but {kind}.")
    return found


def _node(tree: Tree, path: tuple[int, ...]) -> int:
    node = 0
    for ordinal in path:
        node = int(tree.first_child[node]) + ordinal
    return node


def _force(
    subtrees: CartSubtrees, tree: Tree, split: dict[str, Any], options: Options
) -> tuple[Tree, list[tuple[int, ...]]]:
    """Split the leaves of a tree that are to be; returns it, and the paths of those that were."""
    waiting: list[tuple[tuple[int, ...], Any]] = [((), split)] if split else []
    forced: list[tuple[int, ...]] = []
    for path, described in waiting:  # grows by the splits below
        where = "".join(f"['{_SIDES[ordinal]}']" for ordinal in path)
        _check_keys(described, where)
        names = names_of(subtrees.estimator)
        feature = place_of(names, described["feature"])
        cut = _cut(subtrees.table, feature, names[feature], described)
        problem = ""
        if options.max_depth is not None and len(path) >= options.max_depth:
            problem = f"it is at depth {len(path)}, and max_depth={options.max_depth}"
        else:
            try:
                stump = subtrees.split(tree, _node(tree, path), feature, *cut)
            except InputError:
                problem = "all rows of the node would go to one side"
            else:
                problem = _broken_limit(stump, options, float(tree.weight[0]))
        if problem:
            warn(
                f"forced_splits{where} of column {names[feature]!r} is left out, and what is below "
                f"it: {problem}."
            )
            continue
        tree = graft(tree, _node(tree, path), stump).tree
        forced.append(path)
        waiting += [((*path, k), described[s]) for k, s in enumerate(_SIDES) if described.get(s)]
    # growth goes on where there is no forced split: at children of those that are
    return tree, forced


def _check_keys(split: Any, where: str) -> None:
    """Raise ValueError unless a split is described as one."""
    if not isinstance(split, dict) or "feature" not in split:
        raise InputError(f"forced_splits{where} must be a dict with 'feature', got {split!r}.")
    if unknown := sorted(split.keys() - _KEYS, key=str):
        raise InputError(
            f"forced_splits{where} has {unknown[0]!r}; a split has 'feature', 'threshold' or "
            "'categories', 'left' and 'right'."
        )


def _cut(table: Table, feature: int, name: Any, split: dict[str, Any]) -> tuple[float | None, Any]:
    """Return the threshold or codes of a split; the threshold of a nominal column is a category."""
    threshold, categories = split.get("threshold"), split.get("categories")
    if table.columns.nominal[feature] and categories is None and threshold is not None:
        threshold, categories = None, [threshold]
    return cut_of(table.columns, feature, name, threshold, categories)


def _broken_limit(stump: Tree, options: Options, total: float) -> str:
    """Return the limit that a split does not keep, or nothing."""
    if (rows := int(stump.n_rows.min())) < options.min_samples_leaf:
        return f"a side has {rows} rows, and min_samples_leaf is {options.min_samples_leaf}"
    if float(stump.weight.min()) < options.min_weight_fraction_leaf * total:
        return "a side has less weight than min_weight_fraction_leaf of all"
    return ""


def _grow_leaf(
    subtrees: CartSubtrees, tree: Tree, path: tuple[int, ...], max_depth: int | None
) -> Tree:
    """Grow the subtree of a leaf, unless it is at the limit of depth or is split already."""
    node = _node(tree, path)
    if not tree.is_leaf[node] or (max_depth is not None and len(path) >= max_depth):
        return tree
    return graft(tree, node, subtrees.grow(tree, node, {"max_leaf_nodes": None})).tree
