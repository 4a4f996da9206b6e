"""Numbers that no rows have are refused by the name of their field; those of fitted trees pass."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_trees import multiway_tree
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_tables

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    export_json,
    load_model,
    read_json,
)
from gputree.datasets import load_golf
from gputree.persistence import read_model, write_model
from gputree.plausibility import check_statistics
from gputree.pruning import PenalizedLoss, Pessimistic, ReducedError

MODELS = sorted(Path(__file__).with_name("model_files").glob("*.gputree"))

CLASSIFIERS = (
    C45Classifier(),
    C45Classifier(pruning=None, mdl_correction=False),
    C45Classifier(pruning=Pessimistic(0.6, subtree_raising=True)),
    ID3Classifier(),
    ID3Classifier(pruning=PenalizedLoss(0.5)),
    DecisionTreeClassifier(class_weight="balanced"),
    DecisionTreeClassifier(criterion="entropy", pruning=ReducedError()),
)
REGRESSORS = (DecisionTreeRegressor(), DecisionTreeRegressor(criterion="poisson"))
SCALES = st.sampled_from([1e-30, 1.0, 1e12])


@given(random_mixed_tables(), st.sampled_from([*CLASSIFIERS, *REGRESSORS]), SCALES, SCALES)
def test_fitted_trees_pass(table, estimator, weights, targets):
    estimator.set_params(categorical_features=table.nominal)
    y = table.y if estimator in CLASSIFIERS else (table.y + 0.1 * abs(table.X[:, 0])) * targets
    weight = None if table.weight is None else table.weight * weights
    check_statistics(estimator.fit(table.X, np.nan_to_num(y), weight).tree_)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_older_files_pass(path):
    model = load_model(path)
    grown = getattr(model, "estimator_", model)  # of rules: what they are from
    for one in getattr(grown, "estimators_", [grown]):
        check_statistics(one.tree_)


WRONG = {
    "weight of node 2 is negative, got -10.0": {"weight": {2: -10.0}},
    "weight of node 0 is 0, and a tree is grown on rows": {"weight": {0: 0.0}},
    "weight of node 2 is less than its children have": {"weight": {4: 700.0}},
    "n_rows of node 5 is negative, got -3": {"n_rows": {5: -3}},
    "n_rows of node 4 is more than its parent has, got 11": {"n_rows": {4: 11}},
    "statistics of node 3 is negative for a class": {"statistics": {3: [-1.0, 5.0]}},
    "statistics of node 3 does not add up to its weight": {"statistics": {3: [2.0, 3.0]}},
    "impurity of node 1 is negative": {"impurity": {1: -0.5}},
    "gain of node 2 is negative": {"gain": {2: -0.1}},
    "gain of node 2 is more than its impurity": {"gain": {2: 7.0}},
}


@pytest.mark.parametrize("problem", WRONG)
def test_fields_are_named(problem, tmp_path):
    tree = multiway_tree()
    [(field, change)] = WRONG[problem].items()
    values = getattr(tree, field).copy()
    for node, value in change.items():
        values[node] = value
    broken = replace(tree, **{field: values})
    with pytest.raises(ValueError, match=f"Invalid tree: {re.escape(problem)}"):
        check_statistics(broken)
    write_model(tmp_path / "model", {}, broken)
    with pytest.raises(ValueError, match=f"model is damaged: Invalid tree: {re.escape(problem)}"):
        read_model(tmp_path / "model")


def test_json_is_not_believed():
    golf = load_golf()
    document = json.loads(export_json(C45Classifier().fit(golf.data, golf.target)))
    document["tree"]["weight"][0] = 1e300
    with pytest.raises(ValueError, match=r"The text .* statistics of node 0 does not add up to"):
        read_json(json.dumps(document))


def test_weights_over_many_decades_are_rounded_to_units_of_the_whole():
    rng = np.random.default_rng(330529326)
    X = np.round(rng.normal(size=(300, 3)) * 2)
    X[rng.random(X.shape) < 0.3] = np.nan
    y, weight = rng.integers(0, 3, 300), 10.0 ** rng.uniform(-10, 10, 300)
    model = C45Classifier(pruning=None, min_samples_leaf=1).fit(X, y, weight)
    check_statistics(model.tree_)
