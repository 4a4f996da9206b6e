"""Boosted trees in model files: one header, and the trees in the order of their votes.

In addition to what `gputree.estimators.header` documents, the header has

- ``errors``, ``weights``: numbers, one a tree: ``estimator_errors_`` and ``estimator_weights_``
- ``min_samples_split``: that of the trees, in rows, where the parameter may be a fraction of them
- ``stop_reason``: string, only where boosting ended early: ``stop_reason_``
"""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.errors import InputError
from gputree.estimators.boosting import BoostedC45Classifier
from gputree.estimators.c45 import C45Classifier
from gputree.estimators.header import described, with_params
from gputree.estimators.header_values import check_count, completed, field_of, refusing
from gputree.estimators.trials import ACCURATE, INACCURATE, Boosted
from gputree.estimators.winnowing import coded_grower
from gputree.persistence import Contents
from gputree.tree import Tree

# What `stop_reason` may be; None where the header has none.
STOP_REASONS = (None, ACCURATE, INACCURATE)


def contents_of(boosted: BoostedC45Classifier) -> Contents:
    """What a file holds of boosted trees.

    Raises
    ------
    sklearn.exceptions.NotFittedError, TypeError, ValueError
        As `gputree.estimators.header.header_of`.
    """
    check_is_fitted(boosted, "estimators_")
    trees = boosted.estimators_
    return Contents(header_of_trials(boosted, trees[0]), [tree.tree_ for tree in trees], None)


def header_of_trials(boosted: Boosted, first: C45Classifier) -> dict[str, Any]:
    """The header of what boosts; `first` is the tree of the first trial."""
    reason = boosted.stop_reason_
    return described(boosted) | {
        "errors": boosted.estimator_errors_.tolist(),
        "weights": boosted.estimator_weights_.tolist(),
        "min_samples_split": first.min_samples_split,
        **({} if reason is None else {"stop_reason": reason}),
    }


def rebuild(source: str, contents: Contents) -> BoostedC45Classifier:
    """The boosted trees of a file, none of which is believed.

    Raises
    ------
    ValueError
        The file does not hold boosted trees.
    """
    header, trees, _ = contents
    with refusing(source, header):
        boosted: BoostedC45Classifier = with_params(BoostedC45Classifier, header)
        boosted.estimators_ = restored_trees(boosted, header, trees)
    return boosted


def restored_trees(
    boosted: Boosted, header: dict[str, Any], trees: list[Tree]
) -> list[C45Classifier]:
    """Give what boosts all that the header has of it; the estimators of its trees."""
    _check_alike(trees)
    completed(boosted, header, trees)
    least = field_of(header, "min_samples_split", int)
    boosted.estimator_errors_ = _numbers(header, "errors", len(trees), 1.0)
    boosted.estimator_weights_ = _numbers(header, "weights", len(trees), math.inf)
    if not boosted.estimator_weights_.all():
        raise InputError("weights must be greater than 0.")
    boosted.stop_reason_ = header.get("stop_reason")
    if boosted.stop_reason_ not in STOP_REASONS:
        raise InputError("stop_reason must be one that ends boosting.")
    return _members(boosted, trees, least)


def _check_alike(trees: list[Tree]) -> None:
    """Raise ValueError unless trees have the same columns and classes."""
    kinds = {(tree.task, tree.n_features, tree.n_classes) for tree in trees}
    if len(kinds) > 1 or trees[0].task != "classification":
        raise InputError("boosted trees must classify, by the same columns and classes.")


def _numbers(header: dict[str, Any], key: str, count: int, most: float) -> NDArray[np.float64]:
    """A list of finite numbers from 0 to `most`, one a tree."""
    values = field_of(header, key, list)
    check_count(key, values, count)
    if not all(type(value) in (int, float) and 0 <= value <= most for value in values):
        raise InputError(f"{key} must be numbers from 0 to {most:g}.")
    numbers = np.array(values, np.float64)
    if not np.isfinite(numbers).all():
        raise InputError(f"{key} must be finite.")
    return numbers


def _members(boosted: Boosted, trees: list[Tree], least: int) -> list[C45Classifier]:
    """The estimators of the trees, as what boosts has them."""
    grower: C45Classifier = coded_grower(boosted, C45Classifier, 1)
    grower.min_samples_split = least
    grower._validate_params()
    found = []
    for tree in trees:
        member = copy(grower)
        member.tree_ = tree
        if hasattr(boosted, "winnowed_"):
            member.winnowed_ = boosted.winnowed_.copy()
        found.append(boosted._adopt(member))
    return found
