"""The codec of boosted rules: their trees, and all rules one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.errors import InputError
from gputree.persistence.boosted_trees import header_of_trials, restored_trees
from gputree.persistence.header import numbers_of, with_params
from gputree.persistence.model_file import Contents
from gputree.persistence.rule_sets import arrays_of, rules_in, weights_in
from gputree.rules.boosting import BoostedC45Rules
from gputree.rules.conditions import Rules, rules_of
from gputree.rules.learning import Learned
from gputree.rules.ruleset import RuleSet


# ------------------------------------------------------------------ writing
def contents_of(boosted: BoostedC45Rules) -> Contents:
    """Contents of a file of boosted rules."""
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
        ([ruleset.rules.conditions[i] for i in ruleset.rules.of(rule).tolist()], int(label))
        for ruleset in sets
        for rule, label in enumerate(ruleset.rules.label.tolist())
    )


# ------------------------------------------------------------------ reading
def rebuild(contents: Contents) -> BoostedC45Rules:
    """The boosted rules of a file."""
    header, trees, arrays = contents
    if arrays is None:
        raise InputError("BoostedC45Rules must have arrays of rules.")
    boosted: BoostedC45Rules = with_params(BoostedC45Rules, header)
    found = restored_trees(boosted, contents)
    n_rules = numbers_of(header, "n_rules", len(trees), arrays["label"].size, (int,))
    defaults = numbers_of(header, "defaults", len(trees), boosted.n_classes_ - 1, (int,))
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
