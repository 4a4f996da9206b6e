"""Forests of some trees of a forest, and of the trees of two."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gputree.ensemble.compact import CompactTree, Trees
from gputree.ensemble.draws import Origin
from gputree.errors import InputError, InputTypeError, warn
from gputree.inputs.targets import listed
from gputree.prediction.quantiles import LeafTargets

# What a fit with `oob_score` leaves.
OUT_OF_BAG = ("oob_score_", "oob_decision_function_", "oob_prediction_")


def cut(forest: Any, place: slice) -> Any:
    """A fitted forest of some trees of a forest, which are not copied."""
    numbers = range(len(forest._trees))[place]
    if not numbers:
        raise InputError(
            f"A forest has one tree at least, and {type(forest).__name__}[{_text(place)}] none of "
            f"{len(forest._trees)}."
        )
    origins = [forest._origins[t] for t in numbers]
    made = _of_trees(forest, [forest._trees[t] for t in numbers], origins)
    is_of_table = all(origin.of.n == forest._draws.n for origin in origins)  # of the last fit
    if hasattr(forest, "_leaf_targets") and is_of_table:
        made._leaf_targets = [of.of_trees(np.array(numbers)) for of in forest._leaf_targets]
    return made


def join(first: Any, second: Any) -> Any:
    """A fitted forest of the trees of two, with the parameters of the first one."""
    check_is_fitted(first)
    check_is_fitted(second)
    _require_alike(first, second)
    _warn_of_repeated(first, second)
    made = _of_trees(first, [*first._trees, *second._trees], [*first._origins, *second._origins])
    if hasattr(first, "_leaf_targets"):
        pairs = zip(first._leaf_targets, second._leaf_targets, strict=True)
        made._leaf_targets = [of.joined(other) for of, other in pairs]
    return made


def _of_trees(forest: Any, trees: list[CompactTree], origins: list[Origin]) -> Any:
    """Copy a forest with other trees, without attributes that depend on the former ones."""
    made = copy(forest)
    for name in (*OUT_OF_BAG, "_leaf_targets"):
        made.__dict__.pop(name, None)
    made.n_estimators = len(trees)
    made._trees, made._origins, made._draws = Trees(trees), origins, origins[-1].of
    return made


def _require_alike(first: Any, second: Any) -> None:
    """Raise an error unless two forests have the same class, columns, classes and training rows."""
    kinds = type(first).__name__, type(second).__name__
    if kinds[0] != kinds[1]:
        raise InputTypeError(f"Forests to join must be of one class, got {' + '.join(kinds)}.")
    names: list[Any] = [getattr(forest, "feature_names_in_", None) for forest in (first, second)]
    if not (first.columns_.same_as(second.columns_) and np.array_equal(names[0], names[1])):
        raise InputError(
            f"The columns of both {kinds[0]}s must have the same names and categories to join "
            "them; grow both on one data type, or on a CodedTable."
        )
    classes = [listed(getattr(forest, "classes_", [])) for forest in (first, second)]
    if classes[0] != classes[1]:
        raise InputError(
            f"Both {kinds[0]}s must have the same classes to join them: {classes[0]} and "
            f"{classes[1]}."
        )
    counts = first.n_outputs_, second.n_outputs_
    if counts[0] != counts[1]:
        raise InputError(
            f"Both {kinds[0]}s must have as many targets to join them: {counts[0]} and {counts[1]}."
        )
    targets: list[Any] = [getattr(forest, "_leaf_targets", None) for forest in (first, second)]
    if targets[0] is targets[1] is None:
        return
    if None in targets or not all(map(LeafTargets.is_of_rows_of, *targets)):
        raise InputError(
            f"Both {kinds[0]}s must have kept the targets of the same rows (quantreg=True) to "
            "join them, or neither."
        )


def _warn_of_repeated(first: Any, second: Any) -> None:
    """Warn of trees that are in both."""
    numbers = {(origin.key, origin.of.n): t for t, origin in enumerate(first._origins)}
    repeated = 0
    for t, origin in enumerate(second._origins):
        twin = numbers.get((origin.key, origin.of.n))
        if twin is None:
            continue
        one, other = first._trees[twin], second._trees[t]
        repeated += all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("is_split", "feature", "threshold")
        )
    if repeated:
        warn(
            f"{repeated} of {len(second._origins)} trees are in both forests: give each another "
            "random_state."
        )


def _text(place: slice) -> str:
    parts = [place.start, place.stop, *([] if place.step is None else [place.step])]
    return ":".join("" if part is None else str(part) for part in parts)
