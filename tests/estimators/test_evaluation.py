"""`report`: a tree and its predictions compared with the true values."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.datasets import load_golf, load_iris


def golf(**given) -> C45Classifier:
    X, y = load_golf(return_X_y=True)
    return C45Classifier(**given).fit(X, y)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=30))
def test_kappa_and_errors_are_those_of_the_definition(pairs):
    """The tree predicts its column; two of three classes may be missing."""
    answer, truth = np.array(pairs).T
    X = np.arange(3.0)[:, None]
    model = DecisionTreeClassifier().fit(X, [0, 1, 2])
    found = model.report(answer[:, None].astype(float), truth).measures
    agreement = float(np.mean(answer == truth))
    chance = sum(np.mean(answer == k) * np.mean(truth == k) for k in range(3))
    expected = 1.0 if agreement == 1.0 else (agreement - chance) / (1 - chance)
    assert found["kappa"] == pytest.approx(expected)
    wrong = 1 - agreement
    assert found["mean_absolute_error"] == pytest.approx(2 * wrong / 3)
    assert found["root_mean_squared_error"] == pytest.approx(np.sqrt(2 * wrong / 3))


def test_errors_of_regression_are_those_of_the_definition():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 0.0, 1.0, 4.0, 5.0, 9.0])
    model = DecisionTreeRegressor(max_depth=1).fit(X, y)
    found = model.report(X, y + 1.0).measures
    off = model.predict(X) - (y + 1.0)
    apart = y + 1.0 - y.mean()  # of the training rows
    assert found["mean_absolute_error"] == pytest.approx(np.abs(off).mean())
    assert found["root_mean_squared_error"] == pytest.approx(np.sqrt((off**2).mean()))
    relative = np.abs(off).sum() / np.abs(apart).sum()
    assert found["relative_absolute_error"] == pytest.approx(relative)
    relative = np.sqrt((off**2).sum() / (apart**2).sum())
    assert found["root_relative_squared_error"] == pytest.approx(relative)
    assert found["correlation"] == pytest.approx(np.corrcoef(model.predict(X), y)[0, 1])


def test_the_text_has_all_of_it():
    X, y = load_golf(return_X_y=True)
    lines = str(golf(pruning=None).report(X, y)).splitlines()
    assert lines[0].split() == ["leaves", "5"]
    assert "right                    14 (100.00%)" in lines
    assert "errors                   0 (0.00%)" in lines
    assert "kappa                    1.0000" in lines
    at = lines.index("true class \\ predicted  no  yes")
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["no", "5", "0"],
        ["yes", "0", "9"],
    ]


def test_reports_may_be_keys_of_a_dict():
    X, y = load_golf(return_X_y=True)
    one, other = (golf().report(X, y) for _ in range(2))
    assert {one: 1, other: 2}[one] == 1


def test_the_numbers_are_json():
    X, y = load_iris(return_X_y=True)
    found = DecisionTreeClassifier(max_depth=2).fit(X, y).report(X, y).as_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["confusion_matrix"] == [[50, 0, 0], [0, 49, 1], [0, 5, 45]]
    assert found["recall"] == [1.0, 0.98, 0.9]
    assert found["support"] == [50, 50, 50]
    constant = DecisionTreeRegressor().fit([[0.0], [1.0]], [1.0, 1.0]).report([[0.0]], [1.0])
    assert constant.as_dict()["correlation"] is None
    assert "relative absolute error      -" in str(constant)


def test_classes_without_rows_and_labels_not_known():
    X, y = load_golf(return_X_y=True)
    model = clone(golf()).set_params(classes=["maybe", "no", "yes"]).fit(X, y)
    found = model.report(X[:4], ["no", "no", "never", "yes"])
    assert found.classes.labels.tolist() == ["maybe", "never", "no", "yes"]
    assert found.as_dict()["support"] == [0, 1, 2, 1]
    assert found.measures["errors"] >= 1


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0]], [0, 1], "inconsistent numbers of samples"),
        ([[0.0]], ["a"], "y must hold labels of the kind in fit, such as 0; got others"),
        ([[0.0], [1.0]], [0.0, np.nan], "Input y contains NaN"),
        ([[0.0, 1.0]], [0], "X has 2 features"),
    ],
)
def test_rows_that_cannot_be(X, y, message):
    with pytest.raises(ValueError, match=message):
        DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]).report(X, y)
