"""Estimators come back from model files as they were."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from gputree.datasets import load_auto_mpg, load_iris
from gputree.estimators import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
from gputree.estimators.header_values import decode, encode
from gputree.estimators.model_file import load_model, save_model
from gputree.persistence import read_model, write_model
from gputree.pruning import Pessimistic

X, SPECIES = load_iris(return_X_y=True)
CODES = np.unique(SPECIES, return_inverse=True)[1]


@pytest.fixture
def round_trip(tmp_path):
    def save_and_load(estimator):
        save_model(estimator, tmp_path / "model")
        return load_model(tmp_path / "model")

    return save_and_load


LABELS = {
    "str": SPECIES,
    "object": SPECIES.astype(object),
    "int64": CODES * 10**12 - 5,
    "int8": CODES.astype(np.int8),
    "float64": CODES / 1.0,
    "float32": CODES.astype(np.float32),
    "bool": CODES > 0,
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_classifier(round_trip, labels):
    before = DecisionTreeClassifier(max_depth=2, class_weight="balanced").fit(X, labels)
    after = round_trip(before)
    assert type(after) is DecisionTreeClassifier
    assert after.tree_.equals(before.tree_)
    assert after.get_params() == before.get_params()
    assert after.classes_.dtype == before.classes_.dtype
    for method in ("predict", "predict_proba", "apply"):
        expected = getattr(before, method)(X)
        found = getattr(after, method)(X)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_regressor(round_trip):
    X, y = load_auto_mpg(return_X_y=True)
    before = DecisionTreeRegressor(min_samples_leaf=3).fit(X, y)
    after = round_trip(before)
    assert type(after) is DecisionTreeRegressor
    assert not hasattr(after, "classes_")
    np.testing.assert_array_equal(after.predict(X), before.predict(X))


def test_every_fitted_attribute_comes_back(round_trip):
    before = DecisionTreeClassifier(max_depth=2).fit(X, SPECIES)
    before.feature_names_in_ = np.array(["a", "b", "c", "größe"], dtype=object)
    after = round_trip(before)
    assert set(vars(after)) == set(vars(before)) - {"unpruned_tree_", "growth_report_"}
    assert after.feature_names_in_.dtype == object
    np.testing.assert_array_equal(after.feature_names_in_, before.feature_names_in_)
    assert after.n_classes_ == 3


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        float("inf"),
        "text",
        (1, 2.0),
        [1, ["a", None]],
        {0: 1.0, 1: 2.5},
        {"a": 1.0, "b": {"float": "inf"}},
        {1.5: (0, 1), True: None},
    ],
)
def test_values(value):
    written = json.loads(json.dumps(encode(value, "value"), allow_nan=False))
    back = decode(written)
    assert back == value
    assert repr(back) == repr(value)


@pytest.mark.parametrize("array", [np.array([1, 2], np.int16), np.array([[0.5, np.inf]])])
def test_arrays(array):
    back = decode(encode(array, "array"))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


# Of every type that a table may have.
MIXED = pandas.DataFrame(
    {
        "text": ["b", None, "a", "größe", "", "b"],
        "truth": [True, False, True, True, False, False],
        "mixed": pandas.Series(["x", 3, 2.5, True, None, "x"], dtype=object),
        "declared": pandas.Categorical(list("uvuvuv"), ["w", "v", "u"]),
        "of_integers": pandas.Categorical([2**60, 1, 1, 1, 2**60, 1]),
        "of_floats": pandas.Categorical([0.1, 0.2, 0.1, None, 0.2, 0.1], [0.2, np.inf, 0.1]),
        "number": [0.5, np.nan, 1.0, 2.0, 3.0, 4.0],
    }
)
OTHER = MIXED.iloc[::-1].assign(text=["b", "new", "a", None, "b", "b"])


@pytest.mark.parametrize("kind", [C45Classifier, ID3Classifier])
def test_categories_come_back(round_trip, kind):
    before = kind(pruning=None).fit(MIXED, list("abcabc"))
    after = round_trip(before)
    assert after.tree_.equals(before.tree_)
    assert after.columns_.nominal.tolist() == before.columns_.nominal.tolist()
    for found, expected in zip(after.columns_.categories, before.columns_.categories, strict=True):
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found.dtype == expected.dtype
            assert list(map(repr, found)) == list(map(repr, expected))
    for table in (MIXED, OTHER):
        np.testing.assert_array_equal(after.predict_proba(table), before.predict_proba(table))


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


def test_a_file_without_categories_is_of_numbers():
    model = load_model(Path(__file__).with_name("model_files") / "version_1.gputree")
    assert model.columns_.n_categories.tolist() == [0, 0, 0]


def load_changed(estimator, changes, path):
    """The estimator from a file whose header has other values."""
    save_model(estimator, path)
    header, tree = read_model(path)
    own = ("format", "format_version", "gputree_version", "tree")
    kept = {key: value for key, value in header.items() if key not in own}
    write_model(path, kept | changes, tree)
    return load_model(path)


def test_class_weight_keeps_its_keys(round_trip):
    weights = {np.int64(0): 1, 1: np.float64(2.5), 2: 1}
    after = round_trip(DecisionTreeClassifier(class_weight=weights).fit(X, CODES))
    assert after.class_weight == weights
    assert all(type(key) is int for key in after.class_weight)


def test_a_generator_is_not_stored(round_trip):
    before = DecisionTreeClassifier(random_state=np.random.RandomState(0)).fit(X, CODES)
    with pytest.warns(UserWarning, match="state of random_state is not stored") as record:
        after = round_trip(before)
    assert record[0].filename == __file__
    assert after.random_state is None
    np.testing.assert_array_equal(after.predict(X), before.predict(X))


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
        save_model(DecisionTreeClassifierChild().fit(X, CODES), path)
    fitted = DecisionTreeClassifier().fit(X, CODES)
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


def test_pruner_among_the_parameters(round_trip):
    before = DecisionTreeClassifier(pruning=Pessimistic(confidence=0.1)).fit(X, SPECIES)
    after = round_trip(before)
    assert after.pruning.get_params() == before.pruning.get_params()
    assert after.tree_.equals(before.tree_)


def test_parameters_set_since_fit_are_checked(tmp_path):
    fitted = DecisionTreeClassifier().fit(X, SPECIES)
    fitted.set_params(device="tpu")
    with pytest.raises(ValueError, match="'device' parameter of DecisionTreeClassifier"):
        save_model(fitted, tmp_path / "model")
    assert not list(tmp_path.iterdir())
