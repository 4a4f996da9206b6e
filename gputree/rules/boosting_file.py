"""Boosted rules in model files: the trees that they are from, and all rules one after the other.

In addition to what `gputree.estimators.boosting_file` documents, the header has

- ``n_rules``: list of integers, how many rules each trial has
- ``defaults``: list of integers, code of the class of rows without a rule, of each trial
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.errors import InputError
from gputree.estimators.boosting_file import header_of_trials, restored_trees
from gputree.estimators.header import with_params
from gputree.estimators.header_values import check_count, field_of, refusing
from gputree.persistence import Contents
from gputree.rules.boosting import BoostedC45Rules
from gputree.rules.conditions import Rules, rules_of
from gputree.rules.model_file import arrays_of, rules_in, weights_in
from gputree.rules.ruleset import RuleSet


# ------------------------------------------------------------------ writing
def contents_of(boosted: BoostedC45Rules) -> Contents:
    """What a file holds of boosted rules.

    Raises
    ------
    sklearn.exceptions.NotFittedError, TypeError, ValueError
        As `gputree.estimators.header.header_of`.
    """
    check_is_fitted(boosted, "estimators_")
    members = boosted.estimators_
    sets: list[RuleSet] = [member.rules_ for member in members]
    header = header_of_trials(boosted, members[0].estimator_) | {
        "n_rules": [len(rules) for rules in sets],
        "defaults": [int(rules.default) for rules in sets],
    }
    arrays = arrays_of(_joined(sets)) | {
        "confidence": np.concatenate([rules.confidence for rules in sets]),
        "class_weights": np.concatenate([rules.class_weights for rules in sets]),
        "decided_weights": np.concatenate([rules.decided_weights for rules in sets]),
    }
    return Contents(header, [member.estimator_.tree_ for member in members], arrays)


def _joined(sets: list[RuleSet]) -> Rules:
    """The rules of all trials, over one list of conditions."""
    return rules_of(
        ([own.rules.conditions[i] for i in own.rules.of(rule).tolist()], int(label))
        for own in sets
        for rule, label in enumerate(own.rules.label.tolist())
    )


# ------------------------------------------------------------------ reading
def rebuild(source: str, contents: Contents) -> BoostedC45Rules:
    """The boosted rules of a file, none of which is believed.

    Raises
    ------
    ValueError
        The file does not hold boosted rules of its trees.
    """
    header, trees, arrays = contents
    with refusing(source, header):
        if arrays is None:
            raise InputError("BoostedC45Rules must have arrays of rules.")
        boosted: BoostedC45Rules = with_params(BoostedC45Rules, header)
        found = restored_trees(boosted, header, trees)
        n_rules = _counts(header, "n_rules", len(trees), arrays["label"].size)
        defaults = _counts(header, "defaults", len(trees), boosted.n_classes_ - 1)
        _restore(boosted, found, n_rules, defaults, arrays)
    return boosted


def _restore(
    boosted: BoostedC45Rules,
    trees: list[Any],
    n_rules: list[int],
    defaults: list[int],
    arrays: dict[str, NDArray],
) -> None:
    """Give the trials their rules."""
    rules = rules_in(arrays, boosted.columns_, boosted.n_classes_)
    if sum(n_rules) != rules.label.size:
        raise InputError(f"n_rules must add up to {rules.label.size}, the rules of all trials.")
    covered, decided = weights_in(arrays, rules.label.size, len(trees), boosted.n_classes_)
    boosted.estimators_ = []
    begin = 0
    for place, (tree, count, default) in enumerate(zip(trees, n_rules, defaults, strict=True)):
        own = slice(begin, begin + count)
        answered = decided[begin + place : begin + place + count + 1]
        if not answered.any():
            raise InputError("the weights that a trial decides must not all be 0.")
        member = boosted._new_member()._take(
            tree,
            rules.take(np.arange(begin, begin + count)),
            arrays["confidence"][own],
            covered[own],
            default,
            answered,
        )
        boosted.estimators_.append(member)
        begin += count


def _counts(header: dict[str, Any], key: str, count: int, most: int) -> list[int]:
    """A list of integers from 0 to `most`, one a trial."""
    values: list[Any] = field_of(header, key, list)
    check_count(key, values, count)
    if not all(type(value) is int and 0 <= value <= most for value in values):
        raise InputError(f"{key} must be integers from 0 to {most}.")
    return values
