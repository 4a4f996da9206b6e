"""Paths in words: rules of leaves, nested dictionaries, and the nodes that a row passes."""

import re

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases, visit
from programs import walk_nested

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_auto_mpg, load_golf, load_iris, load_loan
from gputree.export import explain, path_rules, to_dict
from gputree.export.describe import describe
from gputree.export.explanation import _explanation
from gputree.export.model import model_of
from gputree.prediction import apply, class_distributions

NUMBER = r"-?[\d.e+-]+|inf"


def holds(condition: str, row: np.ndarray) -> bool | None:
    """Return whether a row without missing values satisfies a condition."""
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
            # A category without a branch follows missing values, which rules distinguish.
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
    """Return whether a later test of a column needs categories sent elsewhere before."""
    seen: dict[int, set] = {}
    for parent, node in path(tree, leaf):
        codes = set(tree.categories(node).tolist())
        feature = int(tree.feature[parent])
        if tree.split_kind[parent] != 1 and feature in seen and not seen[feature] <= codes:
            return True
        seen[feature] = codes
    return False


def unlisted(tree, leaf, row) -> bool:
    """Return whether a value that no branch names led the row to the leaf."""
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


# ----------------------------------------------------------------------------- nested dictionaries
LOAN = load_loan()


def test_numbers_and_their_digits():
    iris = load_iris()
    model = DecisionTreeClassifier(max_depth=1).fit(iris.data[:, 2:3], iris.target)
    threshold = float(model.tree_.threshold[0])
    whole = to_dict(model, feature_names=["length"], decimals=None)
    assert list(whole["length"]) == [f"<= {threshold!r}", f"> {threshold!r}"]
    assert whole["length"][f"<= {threshold!r}"] == "setosa"


def test_missing_values_apart():
    values = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = DecisionTreeClassifier().fit(values, ["a", "a", "b", "b"])
    assert to_dict(model) == {"x0": {"present": "a", None: "b"}}
    words = np.array(["u", "u", None], object)[:, None]
    model = ID3Classifier().fit(words, [0, 0, 1])
    assert to_dict(model) == {"x0": {"u": 0, None: 1}}


def test_subsets_are_tuples():
    words = np.array(["a", "b", "c", "d"] * 3, object)[:, None]
    model = DecisionTreeClassifier().fit(words, [0, 1, 0, 1] * 3)
    assert to_dict(model) == {"x0": {("a", "c"): 0, ("b", "d"): 1}}


@given(multiway_cases(policies=["stops", "child"]))
def test_known_values_find_their_answers(case):
    tree, values = case
    nested = to_dict(tree, decimals=None)
    values = values[~np.isnan(values).any(axis=1)]
    expected = class_distributions(tree, values).argmax(axis=1)
    for row, label in zip(values, expected, strict=True):
        found = walk_nested(nested, {f"x{j}": x for j, x in enumerate(row.tolist())})  # in float64
        assert found is None or found == label


# -------------------------------------------------------------------------------- paths of rows
GOLF = load_golf()
ROWS = [
    ["sunny", "mild", "high", "weak"],
    [None, "mild", "high", "weak"],
    ["fog", "hot", None, "x"],
]


@given(multiway_cases(max_rows=10))
def test_steps_are_the_nodes_that_a_row_visits(case):
    tree, values = case
    description, model = describe(tree, decimals=None), model_of(tree)
    expected = class_distributions(tree, values)
    for row, answer in zip(values, expected, strict=True):
        told = _explanation(description, model, row)
        assert {step.node for step in told.steps} == set(visit(tree, row))
        assert list(told.probabilities.values()) == answer.tolist()
        above = {step.node: step.share for step in told.steps}
        for step in told.steps[1:]:
            parent = int(tree.parent[step.node])
            assert step.share <= above[parent]
            assert (step.share < above[parent]) <= (
                "missing" in step.note or "unknown" in step.note
            )


def test_a_known_row_in_words():
    model = C45Classifier().fit(GOLF.data, GOLF.target)
    known, missing, unknown = map(str, explain(model, ROWS, feature_names=GOLF.feature_names))
    assert known.splitlines() == [
        "no (no 1)",
        "  no 5, yes 9",
        "    outlook = sunny: no 3, yes 2",
        "      humidity = high: no 3",
    ]
    assert "with weight 0.286, outlook = overcast: yes 4 (outlook is missing)" in missing
    assert "(outlook is unknown)" in unknown


def test_a_row_that_ends_above_the_leaves():
    model = ID3Classifier().fit(GOLF.data, GOLF.target)
    told = str(explain(model, ROWS[1:2], feature_names=GOLF.feature_names)[0])
    why = "outlook is missing: no branch, the node predicts"
    assert told.splitlines()[1:] == [f"  no 5, yes 9 ({why})"]


def test_regression():
    cars = load_auto_mpg()
    model = DecisionTreeRegressor(max_depth=1).fit(cars.data, cars.target)
    (told,) = explain(model, cars.data[:1], decimals=None)
    assert told.probabilities == {}
    assert float(told.prediction) == model.predict(cars.data[:1])[0]
    assert "mean" in str(told)


@pytest.mark.parametrize("criterion", ["absolute_error", "quantile"])
def test_steps_name_what_leaves_predict(criterion):
    cars = load_auto_mpg()
    model = DecisionTreeRegressor(max_depth=1, criterion=criterion)
    (found,) = explain(model.fit(cars.data, cars.target), cars.data[:1])
    word = "median" if criterion == "absolute_error" else "quantile"
    assert str(found).count(f"{word} ") == 2
    assert "mean" not in str(found)


def test_a_bare_tree_knows_no_columns():
    model = C45Classifier().fit(GOLF.data, GOLF.target)
    with pytest.raises(TypeError, match="explain takes a fitted estimator of gputree, got Tree"):
        explain(model.tree_, ROWS)


def test_a_prompt_shows_the_text():
    tree = C45Classifier().fit(GOLF.data, GOLF.target)
    told = explain(tree, ROWS)
    assert isinstance(told, list)
    assert repr(told[1]) == str(told[1])
    assert repr(told) == "\n\n".join(map(str, told))
