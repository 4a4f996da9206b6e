"""The codec of forests: one header, and the trees in their order."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree import ensemble
from gputree.base.dtypes import MOST_ROWS
from gputree.ensemble.base import Forest
from gputree.ensemble.compact import CompactTree, Trees
from gputree.ensemble.draws import Draws, Origin, count_drawn
from gputree.errors import InputError
from gputree.estimators.classification import TableClassifier
from gputree.persistence.codecs import CODECS, known_name
from gputree.persistence.header import check_count, complete, field_of, header_of, with_params
from gputree.persistence.model_file import LEAF_TARGETS, Contents
from gputree.prediction.quantiles import LeafTargets
from gputree.tree import Tree

# Maximum number of rows that are drawn again, to be compared with the trees: 0.1 s.
MOST_DRAWN_AGAIN = 1 << 18

# Of more draws, by how many standard deviations the rows of a tree may be off.
MOST_DEVIATIONS = 10.0

# Of the weight of a tree, which classes that are balanced within it round.
WEIGHT_ERROR = 1e-6


def contents_of(forest: Forest) -> Contents:
    """Contents of a file of a forest."""
    check_is_fitted(forest)
    header = header_of(forest) | {"bootstrap": bootstrap_of(forest._origins)}
    trees = forest._trees.expanded
    if not hasattr(forest, "_leaf_targets"):
        return Contents(header, trees)
    arrays = {
        name: np.concatenate([getattr(of, name) for of in forest._leaf_targets], axis=-1)
        for name in LEAF_TARGETS
    }
    return Contents(header, trees, arrays)


def bootstrap_of(origins: Sequence[Origin]) -> dict[str, Any] | list[dict[str, Any]]:
    """Header of the draws: of one fit, or of several with the numbers of their trees."""
    found: list[dict[str, Any]] = []
    for _, group in groupby(origins, lambda origin: id(origin.of)):
        part = list(group)
        seed, n, draws, weight, strata = part[0].of
        uneven = weight is not None or strata is not None  # of rows that the file does not have
        line = {"seed": seed, "n_rows": n, "draws": draws, "by_weight": uneven}
        found.append(line | {"trees": [origin.number for origin in part]})
    if len(found) == 1 and found[0]["trees"] == list(range(len(origins))):
        del found[0]["trees"]
        return found[0]
    return found


def rebuild(contents: Contents) -> Forest:
    """The forest of a file; rows that it drew in proportion to weights are not known."""
    header, trees, arrays = contents
    name = known_name(header, CODECS)
    forest: Forest = with_params(getattr(ensemble, name), header)
    task = "classification" if isinstance(forest, TableClassifier) else "regression"
    kinds = {
        (tree.task, tree.n_features, tree.n_classes, tree.target_classes, tree.is_binary)
        for tree in trees
    }
    if kinds != {(task, *next(iter(kinds))[1:4], True)}:
        raise InputError(f"the trees of {name} must be binary, of one task, columns and classes.")
    compact = Trees(map(CompactTree.of, trees))
    if not all(packed.expand().equals(tree) for packed, tree in zip(compact, trees, strict=True)):
        raise InputError(f"{name} cannot have such trees: they are not as CART grows them.")
    complete(forest, header, trees)
    forest.n_outputs_ = trees[0].n_outputs
    forest._trees = compact
    forest._origins = _origins(field_of(header, "bootstrap", dict, list), trees)
    forest._draws = forest._origins[-1].of
    if arrays is not None:
        forest._leaf_targets = [
            _leaf_targets(of_target, trees, forest._draws.n)
            for of_target in _by_target(arrays, forest.n_outputs_)
        ]
    return forest


def _origins(found: dict[str, Any] | list[Any], trees: Sequence[Tree]) -> list[Origin]:
    """Origin of each tree; ValueError where draws do not fit the trees."""
    lines = [found | {"trees": list(range(len(trees)))}] if isinstance(found, dict) else found
    if not all(isinstance(line, dict) for line in lines):
        raise InputError("bootstrap must be an object, or a list of them.")
    origins: list[Origin] = []
    for line in lines:
        of, numbers = _draws(line), field_of(line, "trees", list)
        if not all(type(number) is int and 0 <= number <= MOST_ROWS for number in numbers):
            raise InputError(f"trees of bootstrap must be integers from 0 to {MOST_ROWS}.")
        origins += [Origin(of, number) for number in numbers]
    check_count("bootstrap", origins, len(trees))
    check_drawn(origins, trees)
    return origins


def _draws(found: dict[str, Any]) -> Draws:
    seed, n = field_of(found, "seed", int), field_of(found, "n_rows", int)
    draws = field_of(found, "draws", int, type(None))
    if not 0 <= seed < 1 << 64 or not 1 <= n <= MOST_ROWS or (draws is not None and draws < 1):
        raise InputError(
            f"bootstrap must have a seed from 0 to 2**64 - 1, from 1 to {MOST_ROWS} n_rows, and "
            "draws greater than 0."
        )
    return Draws(seed, n, draws, np.empty(0) if field_of(found, "by_weight", bool) else None)


def check_drawn(origins: Sequence[Origin], trees: Sequence[Tree]) -> None:
    """Raise ValueError unless the roots have as many rows, and as much weight, as were drawn."""
    left = MOST_DRAWN_AGAIN
    all_rows: dict[int, int] = {}  # of trees that draw none, by their fit
    for t, ((of, number), tree) in enumerate(zip(origins, trees, strict=True)):
        rows, weight = int(tree.n_rows[0]), float(tree.weight[0])
        if rows > of.n or (of.draws is not None and rows > of.draws):
            raise InputError(
                f"tree {t} has {rows} rows, more than the {of.n} n_rows or {of.draws} draws of "
                "bootstrap."
            )
        if of.draws is None:
            if all_rows.setdefault(id(of), rows) != rows:
                raise InputError(f"tree {t} must have all rows, {all_rows[id(of)]}; it has {rows}.")
            continue
        if abs(weight - of.draws) > WEIGHT_ERROR * of.draws:
            raise InputError(f"tree {t} has the weight {weight:g}, and {of.draws} draws.")
        if of.weight is not None:
            continue
        if of.draws <= left:
            left -= of.draws
            expected, most = count_drawn(of.seed, number, of.n, of.draws), 0.0
        else:  # the number of different rows varies less than the number of draws
            never = of.draws * math.log1p(-1.0 / of.n) if of.n > 1 else -math.inf  # drawn, its log
            expected = round(-of.n * math.expm1(never))
            most = MOST_DEVIATIONS * math.sqrt(of.draws)
        if abs(rows - expected) > most:
            raise InputError(
                f"tree {t} has {rows} rows; {of.draws} draws of {of.n} n_rows give {expected}."
            )


def _by_target(arrays: dict[str, NDArray], k: int) -> Iterator[dict[str, NDArray]]:
    """Arrays of each of k targets, whose rows follow one another."""
    if any(array.shape[-1] % k for array in arrays.values()):
        raise InputError("the arrays of targets differ in length.")
    for part in zip(*(np.split(array, k, axis=-1) for array in arrays.values()), strict=True):
        yield dict(zip(arrays, part, strict=True))


def _leaf_targets(arrays: dict[str, NDArray], trees: Sequence[Tree], n_rows: int) -> LeafTargets:
    """Targets and their leaves; ValueError if their number does not fit the rows and trees."""
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
