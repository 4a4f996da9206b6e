"""The codec of rules: the tree that they are from, and arrays of conditions and weights."""

from typing import get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree.base.dtypes import CATEGORY, Floats, Int64s
from gputree.columns import Columns
from gputree.errors import InputError
from gputree.persistence import codecs, one_tree
from gputree.persistence.container import encode
from gputree.persistence.header import field_of, marks_of, params_of, restore_marks, with_params
from gputree.persistence.model_file import Contents
from gputree.rules.conditions import Condition, Kind, Rules
from gputree.rules.estimator import C45Rules, forbid_parted_answers
from gputree.rules.learning import Learned

_KINDS: tuple[Kind, ...] = get_args(Kind)  # files number them in this order


def contents_of(rules: C45Rules) -> Contents:
    """Contents of a file of rules."""
    check_is_fitted(rules, "rules_")
    rules._validate_params()
    ruleset, tree = rules.rules_, rules.estimator
    params = rules.get_params(deep=False)
    del params["estimator"]
    tree_of, trees, _ = codecs.contents_of(rules.estimator_, "save_model", codecs.ALGORITHMS)
    header = {
        "algorithm": "C45Rules",
        "params": {key: encode(value, key) for key, value in params.items()},
        "default": int(ruleset.default),
        "tree_of": tree_of,
        "unfitted": None if tree is None else {
            "algorithm": type(tree).__name__, "params": params_of(tree, rules.classes_)
        },
        **marks_of(rules),
    }  # fmt: skip
    arrays = arrays_of(ruleset.rules) | {
        "confidence": ruleset.confidence,
        "class_weights": ruleset.class_weights,
        "decided_weights": ruleset.decided_weights,
    }
    return Contents(header, trees, arrays)


def arrays_of(rules: Rules) -> dict[str, NDArray]:
    """Conditions and rules as the arrays of a file."""
    each = rules.conditions
    codes = [np.array(one.codes, CATEGORY) for one in each]
    return {
        "feature": np.array([one.feature for one in each], np.int32),
        "kind": np.array([_KINDS.index(one.kind) for one in each], np.uint8),
        "threshold": np.array([one.threshold for one in each], np.float64),
        "code_begin": np.append(0, np.cumsum([len(one) for one in codes])).astype(np.int64),
        "code": np.concatenate([np.empty(0, CATEGORY), *codes]),
        "begin": rules.begin,
        "condition": rules.condition,
        "label": rules.label,
    }


def rebuild(contents: Contents) -> C45Rules:
    """The rules of a file."""
    header, trees, arrays = contents
    if arrays is None or len(trees) != 1:
        raise InputError("C45Rules must have one tree, and arrays of rules.")
    tree = one_tree.rebuild(Contents(field_of(header, "tree_of", dict), trees))
    rules: C45Rules = with_params(C45Rules, header)
    unfitted = field_of(header, "unfitted", dict, type(None))
    rules.estimator = None if unfitted is None else one_tree.unfitted_of(unfitted)
    rules._validate_params()
    if not hasattr(tree, "classes_"):
        raise InputError("rules must be of a tree that classifies.")
    forbid_parted_answers(tree)
    default = field_of(header, "default", int)
    if not 0 <= default < tree.n_classes_:
        raise InputError(f"default must be a class, got {default}.")
    found = rules_in(arrays, tree.columns_, tree.n_classes_)
    covered, decided = weights_in(arrays, found.label.size, 1, tree.n_classes_)
    rules._take(tree, Learned(found, arrays["confidence"], covered, default, decided))
    restore_marks(rules, header)
    return rules


def rules_in(arrays: dict[str, NDArray], columns: Columns, n_classes: int) -> Rules:
    """Conditions, and the rules that consist of them."""
    kind, feature, threshold = arrays["kind"], arrays["feature"], arrays["threshold"]
    if not kind.size == feature.size == threshold.size == arrays["code_begin"].size - 1:
        raise InputError("the arrays of conditions differ in length.")
    _check_within("kind", kind, len(_KINDS))
    _check_within("feature", feature, columns.nominal.size)
    if np.isnan(threshold).any():
        raise InputError("a condition has no number as its threshold.")
    _check_codes(arrays, columns)
    begin, condition, label = arrays["begin"], arrays["condition"], arrays["label"]
    _check_bounds("begin", begin, condition.size, label.size)
    if (np.diff(begin) < 1).any():
        raise InputError("a rule has no condition.")
    _check_within("condition", condition, kind.size)
    _check_within("label", label, n_classes)
    parts = np.split(arrays["code"], arrays["code_begin"][1:-1]) if kind.size else []
    conditions = [
        Condition(f, _KINDS[k], t, tuple(codes.tolist()))
        for f, k, t, codes in zip(
            feature.tolist(), kind.tolist(), threshold.tolist(), parts, strict=True
        )
    ]
    if len(set(conditions)) < len(conditions):
        raise InputError("a condition is repeated.")
    return Rules(conditions, begin, condition, label)


def _check_codes(arrays: dict[str, NDArray], columns: Columns) -> None:
    begin, code = arrays["code_begin"], arrays["code"]
    _check_bounds("code_begin", begin, code.size, arrays["kind"].size)
    sizes = np.diff(begin)
    owner = np.repeat(np.arange(sizes.size), sizes)
    if (arrays["kind"][owner] != _KINDS.index("in")).any():
        raise InputError("a condition without categories lists some.")
    if ((code < 0) | (code >= columns.n_categories[arrays["feature"][owner]])).any():
        raise InputError("a condition names a category that its column does not have.")
    if ((np.diff(code) <= 0) & (np.diff(owner) == 0)).any():
        raise InputError("the categories of a condition are not ascending.")


def weights_in(
    arrays: dict[str, NDArray], n_rules: int, n_sets: int, n_classes: int
) -> tuple[Floats, Floats]:
    """Weights by class that rules cover and decide, for `n_sets` sets of rules."""
    covered, decided = arrays["class_weights"], arrays["decided_weights"]
    if covered.shape != (n_rules, n_classes) or decided.shape != (n_rules + n_sets, n_classes):
        raise InputError("the weights are not those of the rules and classes.")
    if arrays["confidence"].shape != (n_rules,):
        raise InputError("confidence must have an entry for each rule.")
    for name in ("confidence", "class_weights", "decided_weights"):
        if not (np.isfinite(arrays[name]) & (arrays[name] >= 0.0)).all():
            raise InputError(f"{name} must be finite and not negative.")
    if (arrays["confidence"] > 1.0).any():
        raise InputError("confidence must be at most 1.")
    if not (decided.any() and np.isfinite(decided.sum() + covered.sum())):
        raise InputError("the weights of all rows must have a sum that is greater than 0.")
    return covered, decided


def _check_within(name: str, values: NDArray, count: int) -> None:
    if ((values < 0) | (values >= count)).any():
        raise InputError(f"{name} of rules must be from 0 to {count - 1}.")


def _check_bounds(name: str, begin: Int64s, end: int, count: int) -> None:
    """Raise ValueError unless `begin` delimits `count` parts of a list of `end` entries."""
    ends = begin.size == count + 1 and begin[0] == 0 and begin[-1] == end
    if not ends or (begin[1:] < begin[:-1]).any():
        raise InputError(f"{name} of rules does not delimit {count} parts.")
