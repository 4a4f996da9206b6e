"""Files of one tree: what they refuse, and in which words."""

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
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier as Namesake

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    export_json,
    load_model,
    read_json,
)
from gputree.datasets import load_golf, load_iris
from gputree.persistence import Contents, read_contents, save_model, write_contents
from gputree.pruning import PenalizedLoss, Pessimistic, ReducedError
from gputree.tree.statistics import check_statistics

X, SPECIES = load_iris(return_X_y=True)
CP_COLUMNS = {
    "risk": "error", "alpha": [0.0], "cp": [0.0], "n_leaves": [1], "nsplit": [0],
    "relative_error": [1.0], "xerror": [1.0], "xstd": [0.1],
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"array": ["a", "a"], "dtype": "|O"}, "or one is repeated"),
        ({"array": [["a"], ["b"]], "dtype": "|O"}, "no list|unhashable"),
        ({"array": ["a"], "dtype": "|O"}, "a category that its column does not have"),
        (None, "tests categories of a column that has none"),
    ],
)
def test_categories_that_are_not_those_of_the_tree(tmp_path, words, message):
    fitted = C45Classifier(pruning=None).fit([["a"], ["b"]] * 4, [0, 1] * 4)
    assert fitted.get_n_leaves() == 2
    with pytest.raises(ValueError, match=message):
        load_changed(fitted, {"categories": [words]}, tmp_path / "model")


def load_changed(estimator, changes, path):
    """The estimator from a file whose header has other values."""
    save_model(estimator, path)
    header, (tree,), _ = read_contents(path)
    fixed = ("format", "format_version", "gputree_version", "tree")
    kept = {key: value for key, value in header.items() if key not in fixed}
    write_contents(path, Contents(kept | changes, [tree]), False)
    return load_model(path)


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "model"

    class Other(BaseEstimator):
        pass

    class DecisionTreeClassifierChild(DecisionTreeClassifier):
        pass

    with pytest.raises(NotFittedError):
        save_model(DecisionTreeClassifier(), path)
    with pytest.raises(TypeError, match=r"takes one of \[.*'DecisionTreeClassifier'.* got Other"):
        save_model(Other(), path)
    with pytest.raises(TypeError, match="got DecisionTreeClassifierChild"):
        save_model(DecisionTreeClassifierChild().fit(X, SPECIES), path)
    with pytest.raises(TypeError, match=r"got sklearn\.tree.*\.DecisionTreeClassifier\.$"):
        save_model(Namesake().fit(X, SPECIES), path)
    fitted = DecisionTreeClassifier().fit(X, SPECIES)
    fitted.random_state = object()
    with pytest.raises(TypeError, match="cannot represent random_state of type object"):
        save_model(fitted, path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "os.system"}, "algorithm must be one of"),
        ({"algorithm": "DecisionTreeRegressor"}, "cannot have a tree of task 'classification'"),
        ({"algorithm": None}, "algorithm must be of type str, got NoneType"),
        ({"algorithm": {}}, "algorithm must be of type str, got dict"),
        ({"params": {"unheard_of": 1}}, "unheard_of"),
        ({"params": []}, "params must be of type dict, got list"),
        ({"params": {"criterion": "hellinger"}}, "'criterion' parameter of DecisionTreeClassifier"),
        ({"params": {"n_jobs": -(10**9)}}, r"'n_jobs' parameter .* Got -1000000000"),
        ({"params": {"n_jobs": 10**400}}, "'n_jobs' parameter .* must be"),
        ({"params": {"device": "tpu"}}, "'device' parameter"),
        ({"params": {"pruning": {"pruner": ["pessimistic", {"confidence": 7}]}}}, "'confidence'"),
        ({"params": {"pruning": {"pruner": ["pickle", {}]}}}, "not hold a valid estimator"),
        ({"params": {"pruning": {"pruner": 1}}}, "not hold a valid estimator"),
        ({"params": {"max_depth": {"tuple": {"tuple": [1]}}}}, "'max_depth' parameter"),
        ({"params": {"class_weight": {"dict": [[{"dict": []}, 1]]}}}, "unhashable"),
        ({"classes": {"array": [1, 3, 2], "dtype": "<i8"}}, "classes must be ascending"),
        ({"classes": {"array": [1, 1, 2], "dtype": "<i8"}}, "classes must be ascending"),
        ({"classes": {"array": [[1], [2], [3]], "dtype": "<i8"}}, "must be a list of labels"),
        ({"classes": {"array": [1, 2, 10**400], "dtype": "<i8"}}, "not hold a valid estimator"),
        ({"classes": {"array": [[], {}, 3], "dtype": "|O"}}, "not hold a valid estimator"),
        (
            {"classes": {"array": ["a"] * 3, "dtype": "<U500000000"}},
            "arrays of text take 6,000,000,",
        ),
        ({"classes": {"array": [["a"] * 9], "dtype": "<U9000000"}}, "arrays of text take 324,000,"),
        ({"categories": [{"array": ["a"], "dtype": "<U20000000"}] * 4}, "text take 320,000,"),
        ({"classes": {"array": ["a", "b", "c"], "dtype": "<U"}}, "unknown dtype"),
        ({"classes": {"array": [], "dtype": "<i8"}}, "classes must contain at least one label"),
        ({"classes": {"array": "abc", "dtype": "|O"}}, "an array must be a list, got str"),
        ({"feature_names": "abcd"}, "feature_names must be of type list or NoneType, got str"),
        ({"feature_names": ["a", "b", "c", 4]}, "feature_names must be a list of strings"),
        ({"cp_table": []}, "cp_table must have the keys"),
        ({"cp_table": CP_COLUMNS | {"risk": "gini"}}, "risk of cp_table must be impurity or error"),
        ({"cp_table": CP_COLUMNS | {"cp": [0.5, 0.0]}}, "cp must contain 1 elements, got 2"),
        ({"cp_table": CP_COLUMNS | {"nsplit": [0.5]}}, "nsplit of cp_table must be numbers from 0"),
        ({"cp_table": CP_COLUMNS | {"xstd": [-1.0]}}, "xstd of cp_table must be numbers from 0"),
        ({"cp_table": CP_COLUMNS | {"n_leaves": [10**30]}}, "its header is damaged"),
        ({"missing_marks": "?"}, "missing_marks must be a list of strings"),
        ({"params": {"max_depth": {"object": 1}}}, "unknown keys"),
        ({"classes": None}, "not hold a valid estimator"),
        ({"classes": {"array": [1, 2], "dtype": "<i8"}}, "classes must contain 3 elements, got 2"),
        ({"classes": {"array": [1, 2, 3], "dtype": "V8"}}, "unknown dtype"),
        ({"feature_names": ["a"]}, "feature_names must contain 4 elements, got 1"),
        ({"categories": [None]}, "categories must contain 4 elements, got 1"),
        ({"categories": [None, None, None, 3]}, "categories of a column are no array"),
        ({"categories": None}, "categories must be of type list, got NoneType"),
    ],
)
def test_headers_that_are_no_estimator(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        load_changed(DecisionTreeClassifier().fit(X, SPECIES), changes, tmp_path / "model")


def test_parameters_set_since_fit_are_checked(tmp_path):
    fitted = DecisionTreeClassifier().fit(X, SPECIES)
    fitted.set_params(device="tpu")
    with pytest.raises(ValueError, match="'device' parameter of DecisionTreeClassifier"):
        save_model(fitted, tmp_path / "model")
    assert not list(tmp_path.iterdir())


# -------------------------------------------------------------------- numbers that no rows have
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
    write_contents(tmp_path / "model", Contents({}, [broken]), False)
    with pytest.raises(ValueError, match=f"model is damaged: Invalid tree: {re.escape(problem)}"):
        read_contents(tmp_path / "model")


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
