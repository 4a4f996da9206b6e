"""Paths as rules: the rows of a leaf are those that its rule tells of."""

import re

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.datasets import load_auto_mpg, load_iris
from gputree.export import path_rules
from gputree.prediction import apply

NUMBER = r"-?[\d.e+-]+|inf"


def holds(condition: str, row: np.ndarray) -> bool | None:
    """Whether a row of known values fulfils a condition."""
    text = condition.strip("()").removesuffix(" or missing")
    if found := re.fullmatch(rf"({NUMBER}) < x(\d) <= ({NUMBER})", text):
        lower, j, upper = found.groups()
        return float(lower) < row[int(j)] <= float(upper)
    name, operator, operand = text.split(" ", 2)
    x = float(row[int(name[1:])])  # trees compare float64
    if operator == "is":
        return operand == "present"
    if operator in ("=", "in"):
        return x in map(float, operand.strip("{}").split(", "))
    return bool(x <= float(operand)) if operator == "<=" else bool(x > float(operand))


@given(multiway_cases(policies=["stops", "child"]))
def test_rows_of_a_leaf_are_those_of_its_rule(case):
    tree, values = case
    rules = path_rules(tree, decimals=None)
    assert [rule.node for rule in rules] == leaves_from_left_to_right(tree)
    values = values[~np.isnan(values).any(axis=1)]
    for row, leaf in zip(values, apply(tree, values), strict=True):
        for rule in rules:
            told = all(holds(condition, row) for condition in rule.conditions)
            # A category without a branch follows missing values, of which rules tell apart.
            assert told <= (rule.node == leaf) or impossible(tree, rule.node)
            if rule.node == leaf and all(0 <= row[j] < 2 for j in (1, 2, 3)):
                assert told or unlisted(tree, leaf, row)


def leaves_from_left_to_right(tree) -> list[int]:
    found, rest = [], [0]
    while rest:
        node = rest.pop()
        rest += reversed(tree.children(node))
        found += [node] if tree.is_leaf[node] else []
    return found


def path(tree, node):
    while node:
        yield int(tree.parent[node]), node
        node = int(tree.parent[node])


def impossible(tree, leaf) -> bool:
    """Whether a later test of a column asks for categories that an earlier one sent elsewhere."""
    seen: dict[int, set] = {}
    for parent, node in path(tree, leaf):
        codes = set(tree.categories(node).tolist())
        feature = int(tree.feature[parent])
        if tree.split_kind[parent] != 1 and feature in seen and not seen[feature] <= codes:
            return True
        seen[feature] = codes
    return False


def unlisted(tree, leaf, row) -> bool:
    """Whether the row came by a value that no branch names."""
    return any(
        tree.split_kind[parent] != 1
        and row[tree.feature[parent]] not in tree.categories(node).tolist()
        for parent, node in path(tree, leaf)
    )


def test_iris_in_words():
    iris = load_iris()
    model = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target)
    lines = list(map(str, path_rules(model, feature_names=iris.feature_names)))
    assert lines[0] == "if petal length <= 2.45 then setosa (support 50, confidence 1)"
    assert lines[1].startswith("if 2.45 < petal length <= 4.95 and petal width <= 1.75 then")
    assert sum(rule.coverage for rule in path_rules(model)) == pytest.approx(1.0)


def test_missing_values_are_named_where_they_take_the_lesser_side():
    values = np.array([[1.0], [2.0], [3.0], [4.0], [5.0], [np.nan]])
    model = DecisionTreeClassifier().fit(values, [0, 1, 1, 1, 1, 0])
    rules = path_rules(model)
    assert [rule.conditions for rule in rules] == [("(x0 <= 1.5 or missing)",), ("x0 > 1.5",)]


def test_missing_values_alone():
    values = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    rules = path_rules(DecisionTreeClassifier().fit(values, [0, 0, 1, 1]))
    assert [rule.conditions for rule in rules] == [("x0 is present",), ("x0 is missing",)]


def test_regression_and_a_leaf_alone():
    cars = load_auto_mpg()
    rules = path_rules(DecisionTreeRegressor(max_depth=2).fit(cars.data, cars.target))
    assert all(rule.confidence is None and rule.error >= 0 for rule in rules)
    assert "mse" in str(rules[0])
    (rule,) = path_rules(DecisionTreeRegressor().fit([[1.0], [2.0]], [3.0, 3.0]))
    assert str(rule) == "then 3 (support 2, mse 0)"


@given(multiway_cases(max_rows=0))
def test_only_leaves_without_rows_have_no_confidence(case):
    tree, _ = case
    for rule in path_rules(tree):
        assert (rule.confidence is None) == (tree.weight[rule.node] == 0)
        assert rule.confidence is None or 0 < rule.confidence <= 1
