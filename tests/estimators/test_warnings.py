"""Warnings show the line of whoever called, and are said again where they were errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    entropy,
    variance_reduction,
)
from gputree.compilation import folders, store

X = np.array([[f"id{i}"] for i in range(400)], object)
Y = np.arange(400) % 2
TARGETS = np.append(1e15, np.random.default_rng(0).normal(size=399))

CALLS = {
    "fit": lambda: DecisionTreeClassifier().fit(X, Y),
    "multiway": lambda: C45Classifier().fit(X, Y),
    "search": lambda: GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=2).fit(X, Y),
    "pipeline": lambda: make_pipeline(DecisionTreeClassifier()).fit(X, Y),
    "targets": lambda: DecisionTreeRegressor().fit(np.arange(400.0)[:, None], TARGETS),
    "counts": lambda: entropy([90, 5]),
    "scores": lambda: variance_reduction(np.arange(1200.0).reshape(400, 3), TARGETS),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_line_is_the_callers(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        CALLS[call]()
    assert found
    assert {warning.filename for warning in found} == {__file__}


def test_kernels_that_cannot_be_kept_are_told_once(monkeypatch):
    """Where warnings are errors, the first is no reason for silence about the next."""
    monkeypatch.setattr(folders, "folders", list)
    monkeypatch.setattr(store, "_warned", False)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="cannot be kept"):
                store._warn_once("So.")
    with pytest.warns(UserWarning, match="cannot be kept"):
        store._warn_once("So.")
    store._warn_once("So.")
