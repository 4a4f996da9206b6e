"""Rules from a tree the slow, obvious way: rows one by one, subsets one by one."""

from collections.abc import Callable
from itertools import chain, combinations
from math import isnan, log2

import numpy as np
import pandas as pd

from gputree.base.dtypes import THRESHOLD_SPLIT
from gputree.pruning.error_limit import add_errors
from gputree.rules.conditions import Condition
from gputree.tree import Tree

Test = tuple[int, str, float, tuple[int, ...]]  # as `Condition`


def meets(row: np.ndarray, test: Test) -> bool:
    """Return True if a row of coded values satisfies a condition."""
    feature, kind, threshold, codes = test
    value = float(row[feature])
    if isnan(value):
        return kind == "missing"
    if kind == "in":
        return value in codes
    return {"<=": value <= threshold, ">": value > threshold, "present": True}.get(kind, False)


def covers(row: np.ndarray, tests) -> bool:
    return all(meets(row, test) for test in tests)


def leaf_tests(tree: Tree, leaf: int) -> list[Test]:
    """Every test of the path to a leaf, from the root, for known values."""
    upwards = []
    node = leaf
    while tree.parent[node] >= 0:
        upwards.append(_test(tree, node))
        node = int(tree.parent[node])
    return upwards[::-1]


def _test(tree: Tree, node: int) -> Test:
    parent = int(tree.parent[node])
    feature, ordinal = int(tree.feature[parent]), node - int(tree.first_child[parent])
    if tree.split_kind[parent] == THRESHOLD_SPLIT:
        threshold = float(tree.threshold[parent])
        if threshold == np.inf:
            return feature, ("present", "missing")[ordinal], 0.0, ()
        return feature, ("<=", ">")[ordinal], threshold, ()
    codes = sorted(tree.categories(node).tolist())
    if not codes and tree.missing_child[parent] == ordinal:
        return feature, "missing", 0.0, ()
    return feature, "in", 0.0, tuple(codes)


def error_rate(tests, label: int, X, y, weight, quantile: str, confidence: float) -> float:
    """The pessimistic error rate of a rule."""
    covered = [i for i in range(len(y)) if covers(X[i], tests)]
    total = sum(weight[i] for i in covered)
    errors = sum(weight[i] for i in covered if y[i] != label)
    if total == 0:
        return 1.0
    return (errors + float(add_errors(total, errors, confidence, quantile))) / total


def simplified(tests, rate: Callable[[list], float]) -> tuple[list, float]:
    """Conditions without those whose loss lowers the error rate most, one at a time."""
    tests, least = list(tests), rate(tests)
    while tests:
        rates = [rate(tests[:i] + tests[i + 1 :]) for i in range(len(tests))]
        best = max(i for i in range(len(tests)) if rates[i] == min(rates))
        if rates[best] > least:
            break
        least = rates[best]
        del tests[best]
    return tests, least


def message(chosen, covered, bits, of_class, weight, rule_weight: float) -> float:
    """Bits of a class sent by some rules; `covered` is a set of rows a rule."""
    rows = set().union(*(covered[r] for r in chosen)) if chosen else set()
    total = sum(weight)
    hit = sum(weight[i] for i in rows)
    false = sum(weight[i] for i in rows if not of_class[i])
    missed = sum(weight[i] for i in range(len(of_class)) if of_class[i] and i not in rows)
    half = (false + missed) / 2
    if hit > total / 2:
        exceptions = coded(hit, false, half) + coded(total - hit, missed, missed)
    else:
        exceptions = coded(hit, false, false) + coded(total - hit, missed, half)
    orders = sum(log2(k) for k in range(1, len(chosen) + 1))
    rules = sum(bits[r] for r in chosen) - orders
    return log2(total) + exceptions + rule_weight * rules


def climbed(message: Callable[[set], float], n: int, chosen: set) -> set:
    """End of a climb by steps of one rule, added or removed: always the first that saves most."""
    value = message(chosen)
    while True:
        steps = [message(chosen ^ {rule}) for rule in range(n)]
        best = min(range(n), key=lambda rule: round(steps[rule], 7))
        if steps[best] > value - 1e-7:
            return chosen
        chosen, value = chosen ^ {best}, steps[best]


def coded(n: float, errors: float, expected: float) -> float:
    if expected <= 0 or expected >= n:
        return 0.0 if errors in (0, n) else 1e6
    rate = expected / n
    return -errors * log2(rate) - (n - errors) * log2(1 - rate)


def subsets(n: int):
    return chain.from_iterable(combinations(range(n), k) for k in range(n + 1))


def as_tests(conditions: list[Condition]) -> list[Test]:
    return [tuple(condition) for condition in conditions]  # type: ignore[misc]


def json_class(document, row):
    """Class of a row, by names of columns, that rules as JSON predict."""
    for rule in document["rules"]:
        if all(_holds(condition, row[condition["feature"]]) for condition in rule["conditions"]):
            return rule["class"]
    return document["default"]["class"]


def _holds(condition, value):
    if condition["operator"] == "missing":
        return pd.isna(value) or value not in condition.get("values", [value])
    if pd.isna(value):
        return False
    if condition["operator"] == "in":
        return value in condition["values"]
    at_most = condition["operator"] == "present" or value <= condition["threshold"]
    return at_most != (condition["operator"] == ">")
