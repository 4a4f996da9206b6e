"""The codec of boosted trees and rules: one header, and the trees in the order of their votes.

Boosted rules have the rules of all trials, too, one after the other.
"""

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.base.dtypes import Floats
from gputree.errors import InputError
from gputree.estimators.boosting import (
    ACCURATE,
    CALLED_OFF,
    INACCURATE,
    Boosted,
    BoostedC45Classifier,
)
from gputree.estimators.c45 import C45Classifier
from gputree.estimators.winnowing import coded_grower
from gputree.persistence.header import complete, field_of, header_of, numbers_of, with_params
from gputree.persistence.model_file import Contents
from gputree.persistence.rule_sets import arrays_of, rules_in, weights_in
from gputree.rules.boosting import BoostedC45Rules
from gputree.rules.conditions import Rules, rules_of
from gputree.rules.learning import Learned
from gputree.rules.ruleset import RuleSet
from gputree.tree import Tree


def contents_of(boosted: Boosted) -> Contents:
    """Contents of a file of boosted trees or rules."""
    check_is_fitted(boosted, "estimators_")
    trees = [getattr(member, "estimator_", member) for member in boosted.estimators_]
    reason = boosted.stop_reason_
    header = header_of(boosted) | {
        "errors": boosted.estimator_errors_.tolist(),
        "weights": boosted.estimator_weights_.tolist(),
        "min_samples_split": trees[0].min_samples_split,
        **({} if reason is None else {"stop_reason": reason}),
    }
    arrays = None
    if isinstance(boosted, BoostedC45Rules):
        sets: list[RuleSet] = [member.rules_ for member in boosted.estimators_]
        header["n_rules"] = [len(rules) for rules in sets]
        header["defaults"] = [int(rules.default) for rules in sets]
        arrays = arrays_of(_joined(sets)) | {
            name: np.concatenate([getattr(rules, name) for rules in sets])
            for name in ("confidence", "class_weights", "decided_weights")
        }
    return Contents(header, [tree.tree_ for tree in trees], arrays)


def _joined(sets: list[RuleSet]) -> Rules:
    return rules_of(
        ([ruleset.rules.conditions[i] for i in ruleset.rules.of(rule).tolist()], int(label))
        for ruleset in sets
        for rule, label in enumerate(ruleset.rules.label.tolist())
    )


def rebuild(contents: Contents) -> Boosted:
    """The boosted trees or rules of a file."""
    header, trees, arrays = contents
    if header["algorithm"] == "BoostedC45Classifier":
        boosted: BoostedC45Classifier = with_params(BoostedC45Classifier, header)
        boosted.estimators_ = _restored_trees(boosted, contents)
        return boosted
    if arrays is None:
        raise InputError("BoostedC45Rules must have arrays of rules.")
    of_rules: BoostedC45Rules = with_params(BoostedC45Rules, header)
    found = _restored_trees(of_rules, contents)
    n_rules = numbers_of(header, "n_rules", len(trees), arrays["label"].size, (int,))
    defaults = numbers_of(header, "defaults", len(trees), of_rules.n_classes_ - 1, (int,))
    _restore(of_rules, found, n_rules, defaults, arrays)
    return of_rules


def _restored_trees(boosted: Boosted, contents: Contents) -> list[C45Classifier]:
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


def _restore(
    boosted: BoostedC45Rules,
    trees: list[Any],
    n_rules: list[int],
    defaults: list[int],
    arrays: dict[str, NDArray],
) -> None:
    rules = rules_in(arrays, boosted.columns_, boosted.n_classes_)
    if sum(n_rules) != rules.label.size:
        raise InputError(f"n_rules must add up to {rules.label.size}, the rules of all trials.")
    covered, decided = weights_in(arrays, rules.label.size, len(trees), boosted.n_classes_)
    boosted.estimators_ = []
    begin = 0
    for place, (tree, count, default) in enumerate(zip(trees, n_rules, defaults, strict=True)):
        trial = slice(begin, begin + count)
        answered = decided[begin + place : begin + place + count + 1]
        if not answered.any():
            raise InputError("the weights that a trial decides must not all be 0.")
        learned = Learned(
            rules.take(np.arange(begin, begin + count)),
            arrays["confidence"][trial],
            covered[trial],
            default,
            answered,
        )
        boosted.estimators_.append(boosted._new_member()._take(tree, learned))
        begin += count
