"""Trees as nested dictionaries: as textbooks print them, and every branch by its key."""

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_fish, load_golf, load_iris, load_loan
from gputree.export import to_dict
from gputree.prediction import class_distributions

LOAN = load_loan()


def test_the_fish_table():
    fish = load_fish()
    model = ID3Classifier().fit(fish.data, fish.target)
    expected = {"no surfacing": {0: "no", 1: {"flippers": {0: "no", 1: "yes"}}}}
    assert to_dict(model, feature_names=fish.feature_names) == expected


def test_golf_by_c45():
    golf = load_golf()
    model = C45Classifier().fit(golf.data, golf.target)
    assert to_dict(model, feature_names=golf.feature_names) == {
        "outlook": {
            "overcast": "yes",
            "rain": {"wind": {"strong": "no", "weak": "yes"}},
            "sunny": {"humidity": {"high": "no", "normal": "yes"}},
        }
    }


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


def test_a_leaf_is_its_answer():
    model = DecisionTreeRegressor().fit([[1.0], [2.0]], [0.1, 0.1])
    assert to_dict(model, decimals=None) == 0.1


def test_subsets_are_tuples():
    words = np.array(["a", "b", "c", "d"] * 3, object)[:, None]
    model = DecisionTreeClassifier().fit(
        words,
        [0, 1, 0, 1] * 3,
    )
    assert to_dict(model) == {"x0": {("a", "c"): 0, ("b", "d"): 1}}


def walk(nested, row):
    """The answer of a row of known values; None where no branch has a value."""
    while isinstance(nested, dict):
        ((name, branches),) = nested.items()
        nested = next((below for key, below in branches.items() if holds(key, row[name])), None)
    return nested


def holds(key, x):
    if isinstance(key, str):
        sign, _, bound = key.partition(" ")
        return sign == "present" or (x <= float(bound) if sign == "<=" else x > float(bound))
    return x in key if isinstance(key, tuple) else x == key


@given(multiway_cases(policies=["stops", "child"]))
def test_known_values_find_their_answers(case):
    tree, values = case
    nested = to_dict(tree, decimals=None)
    values = values[~np.isnan(values).any(axis=1)]
    expected = class_distributions(tree, values).argmax(axis=1)
    for row, label in zip(values, expected, strict=True):
        found = walk(nested, {f"x{j}": x for j, x in enumerate(row.tolist())})  # in float64
        assert found is None or found == label


def test_names_are_counted():
    model = ID3Classifier().fit(LOAN.data, LOAN.target)
    with pytest.raises(ValueError, match="feature_names must contain 4 elements, got 1"):
        to_dict(model, feature_names=["age"])
