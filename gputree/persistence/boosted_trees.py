"""The codec of boosted trees: one header, and the trees in the order of their votes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gputree.base.dtypes import Floats
from gputree.errors import InputError
from gputree.estimators.boosting import BoostedC45Classifier
from gputree.estimators.c45 import C45Classifier
from gputree.estimators.trials import ACCURATE, CALLED_OFF, INACCURATE, Boosted
from gputree.estimators.winnowing import coded_grower
from gputree.persistence.header import complete, field_of, header_of, numbers_of, with_params
from gputree.persistence.model_file import Contents
from gputree.tree import Tree


def contents_of(boosted: BoostedC45Classifier) -> Contents:
    """Contents of a file of boosted trees."""
    check_is_fitted(boosted, "estimators_")
    trees = boosted.estimators_
    return Contents(header_of_trials(boosted, trees[0]), [tree.tree_ for tree in trees])


def header_of_trials(boosted: Boosted, first: C45Classifier) -> dict[str, Any]:
    """Header of a boosted estimator; `first` is the tree of the first trial."""
    reason = boosted.stop_reason_
    return header_of(boosted) | {
        "errors": boosted.estimator_errors_.tolist(),
        "weights": boosted.estimator_weights_.tolist(),
        "min_samples_split": first.min_samples_split,
        **({} if reason is None else {"stop_reason": reason}),
    }


def rebuild(contents: Contents) -> BoostedC45Classifier:
    """The boosted trees of a file."""
    boosted: BoostedC45Classifier = with_params(BoostedC45Classifier, contents.header)
    boosted.estimators_ = restored_trees(boosted, contents)
    return boosted


def restored_trees(boosted: Boosted, contents: Contents) -> list[C45Classifier]:
    """Restore a boosted estimator from its header; return the estimators of its trees."""
    header, trees, _ = contents
    kinds = {(tree.task, tree.n_features, tree.n_classes) for tree in trees}
    if len(kinds) > 1 or trees[0].task != "classification":
        raise InputError("boosted trees must classify, by the same columns and classes.")
    complete(boosted, header, trees)
    min_rows = field_of(header, "min_samples_split", int)
    rows = [int(tree.n_rows[0]) for tree in trees if tree.n_children[0]]
    if rows and min_rows > max(rows):
        raise InputError(f"min_samples_split is {min_rows}; trees of {max(rows)} rows are split.")
    boosted.estimator_errors_ = _numbers(header, "errors", len(trees), 1.0)
    boosted.estimator_weights_ = _numbers(header, "weights", len(trees), math.inf)
    if not boosted.estimator_weights_.all():
        raise InputError("weights must be greater than 0.")
    boosted.stop_reason_ = header.get("stop_reason")
    if boosted.stop_reason_ not in (None, ACCURATE, INACCURATE, CALLED_OFF):
        raise InputError(f"stop_reason must be {ACCURATE!r}, {INACCURATE!r} or {CALLED_OFF!r}.")
    return _members(boosted, trees, min_rows)


def _numbers(header: dict[str, Any], key: str, count: int, most: float) -> Floats:
    """A list of finite numbers from 0 to `most`, one a tree."""
    numbers = np.array(numbers_of(header, key, count, most, (int, float)), np.float64)
    if not np.isfinite(numbers).all():
        raise InputError(f"{key} must be finite.")
    return numbers


def _members(boosted: Boosted, trees: Sequence[Tree], min_rows: int) -> list[C45Classifier]:
    """Estimators of the trees of a boosted estimator."""
    grower: C45Classifier = coded_grower(boosted, C45Classifier, 1)
    grower.min_samples_split = min_rows
    grower._validate_params()
    found = []
    for tree in trees:
        member = copy(grower)
        member.tree_ = tree
        if hasattr(boosted, "winnowed_"):
            member.winnowed_ = boosted.winnowed_.copy()
        found.append(boosted._adopt(member))
    return found
