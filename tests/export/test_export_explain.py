"""Rows' paths in words: the nodes that they pass, and the answers that they get."""

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases, visit

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_auto_mpg, load_golf
from gputree.export import explain
from gputree.export.describe import describe
from gputree.export.explanation import _explanation
from gputree.export.model import model_of
from gputree.prediction import class_distributions

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
        assert list(told.shares.values()) == answer.tolist()
        above = {step.node: step.share for step in told.steps}
        for step in told.steps[1:]:
            parent = int(tree.parent[step.node])
            assert step.share <= above[parent]
            assert (step.share < above[parent]) <= (
                "missing" in step.note or "unknown" in step.note
            )


@pytest.mark.parametrize("kind", [C45Classifier, ID3Classifier, DecisionTreeClassifier])
def test_answers_are_those_of_predict(kind):
    model = kind().fit(GOLF.data, GOLF.target)
    told = explain(model, ROWS, feature_names=GOLF.feature_names)
    assert [item.answer for item in told] == model.predict(np.array(ROWS, object)).tolist()


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
    assert told.shares == {}
    assert float(told.answer) == model.predict(cars.data[:1])[0]
    assert "mean" in str(told)


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
