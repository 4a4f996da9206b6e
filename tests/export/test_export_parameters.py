"""What every export takes, and refuses, alike."""

import inspect

import pytest

import gputree.export
from gputree import DecisionTreeClassifier, rank_features
from gputree.datasets import load_iris

IRIS = load_iris()
MODEL = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
NAMED = [
    (name, parameter)
    for name in gputree.export.__all__
    if inspect.isfunction(getattr(gputree.export, name))
    for parameter in ("feature_names", "class_names")
    if parameter in inspect.signature(getattr(gputree.export, name)).parameters
]


@pytest.mark.parametrize(("name", "parameter"), NAMED)
@pytest.mark.parametrize("kind", [set, frozenset, dict.fromkeys])
def test_names_without_an_order_are_refused(name, parameter, kind):
    """The order of a set of texts differs from run to run, and columns are named by place."""
    function = getattr(gputree.export, name)
    names = {"feature_names": IRIS.feature_names, "class_names": MODEL.classes_.tolist()}
    rows = (IRIS.data[:1],) if "X" in inspect.signature(function).parameters else ()
    with pytest.raises(ValueError, match=rf"{parameter}' parameter of {name} must be an ordered"):
        function(MODEL, *rows, **{parameter: kind(names[parameter])})


def test_there_are_exports_with_names():
    assert len(NAMED) > 12


def test_names_of_a_ranking_have_an_order():
    with pytest.raises(ValueError, match="of rank_features must be an ordered array-like or None"):
        rank_features(IRIS.data, IRIS.target, feature_names=set(IRIS.feature_names))
