"""Usage of rules on labelled rows, as printed by C4.5rules and C5.0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools, Int64s, Values, Weight
from gputree.evaluation import Lines, rows_of, usage_lines
from gputree.rules.coverage import Coverage, coverage
from gputree.rules.ruleset import RuleSet


def usage_tables(rules: RuleSet, values: Values, label: Int64s, weight: Weight) -> dict[str, Lines]:
    """Make the tables of a report on rules; see `gputree.rules.C45Rules.report`.

    Labels that are unknown to the rules have the code -1.
    """
    covers = coverage(rules.rules, values)
    return {
        "each_rule": _each_rule(rules, covers, label, weight),
        "column_usage": _column_usage(rules, covers, weight),
    }


def _each_rule(rules: RuleSet, covers: Coverage, label: Int64s, weight: Weight) -> Lines:
    n, predicted = len(rules), rules.answers
    owner, first, second = covers.rules_of_pairs, covers.first_rules, _second_rules(covers)
    wrong = predicted[first] != label
    wrong_without = predicted[second] != label
    missed = rules.rules.label[owner] != label[covers.rows]
    found = {
        "covered": _sums(owner, covers.rows, None, weight, n),
        "errors": _sums(owner, covers.rows, missed, weight, n),
        "used": _sums(first, None, None, weight, n + 1),
        "wrong": _sums(first, None, wrong, weight, n + 1),
        "gained": _sums(first, None, wrong_without & ~wrong, weight, n),
        "lost": _sums(first, None, wrong & ~wrong_without, weight, n),
    }
    names = [str(label) for label in rules.classes[predicted].tolist()]
    lines: Lines = [
        {
            "rule": str(place + 1),
            "class": names[place],
            "conditions": int(rules.rules.sizes[place]),
            "confidence": float(rules.confidence[place]),
            **{name: rows_of(weight, sums[place]) for name, sums in found.items()},
        }
        for place in range(n)
    ]
    last = dict.fromkeys(("conditions", "confidence", *found))
    last |= {name: rows_of(weight, found[name][n]) for name in ("used", "wrong")}
    return [*lines, {"rule": "default", "class": names[n], **last}]


def _second_rules(covers: Coverage) -> Int64s:
    """The rule that would decide each row without its first one; R where none would."""
    found = np.full(covers.n_rows, covers.n_rules, np.int64)
    several = np.flatnonzero(np.diff(covers.row_begin) > 1)
    found[several] = covers.rules[covers.row_begin[several] + 1]
    return found


def _sums(
    owner: NDArray[np.integer],
    rows: NDArray[np.integer] | None,
    counted: Bools | None,
    weight: Weight,
    n: int,
) -> NDArray[Any]:
    """Weight by owner, shape (n,), over rows (None for all in order) that are `counted`."""
    if weight is None:
        each = None if counted is None else counted.astype(np.float64)
    else:
        each = weight if rows is None else weight[rows]
        each = each if counted is None else each * counted
    return np.bincount(owner, each, minlength=n)


def _column_usage(rules: RuleSet, covers: Coverage, weight: Weight) -> Lines:
    """Fraction of rows covered by a rule that tests a column; the largest first."""
    tested: dict[int, list[int]] = {}
    for rule in range(len(rules)):
        for feature in {rules.rules.conditions[i].feature for i in rules.rules.of(rule).tolist()}:
            tested.setdefault(feature, []).append(rule)
    share = np.zeros(len(rules.names.feature_names))
    for feature, owners in tested.items():
        mask = np.zeros(covers.n_rows, np.bool_)
        for rule in owners:
            mask[covers.of(rule)] = True
        share[feature] = mask.mean() if weight is None else weight[mask].sum() / weight.sum()
    return usage_lines(share, rules.names.feature_names)
