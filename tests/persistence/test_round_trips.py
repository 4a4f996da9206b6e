"""Models of every kind come back from files of either format as they were."""

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from multiway_trees import multiway_cases
from saved_models import (
    CASES,
    CODES,
    FRAME,
    MIXED,
    NUMBERS,
    TREES,
    assert_equal,
    estimator_of,
    fitted,
)

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_json,
    load_model,
    read_json,
    save_model,
)
from gputree.persistence import read_contents
from gputree.persistence.container import decode, encode

MODEL_FILES = Path(__file__).with_name("model_files")


def by_model_file(model, folder):
    save_model(model, folder / "model")
    return load_model(folder / "model"), (folder / "model").read_bytes()


def by_json(model, _):
    text = export_json(model)
    return read_json(text), text


FORMATS = {"model file": by_model_file, "JSON": by_json}


@pytest.mark.parametrize(
    ("case", "form"), [(case, form) for form in FORMATS for case in (CASES, TREES)[form == "JSON"]]
)
def test_round_trip(case, form, tmp_path):
    before, table = fitted(case), CASES[case][1]
    after, content = FORMATS[form](before, tmp_path)
    assert_equal(after, before)
    methods = {"predict", "predict_proba", "apply"} & set(dir(before))
    for method in sorted(methods):
        assert_equal(getattr(after, method)(table), getattr(before, method)(table))
    assert FORMATS[form](after, tmp_path)[1] == content
    if case not in TREES and case != "costs of three":
        assert read_contents(tmp_path / "model").header["format_version"] == 6


@pytest.mark.parametrize("form", FORMATS)
@given(case=multiway_cases(max_rows=0))
def test_random_trees_come_back(form, case, tmp_path_factory):
    model = estimator_of(case[0])
    assert_equal(FORMATS[form](model, tmp_path_factory.mktemp("file"))[0], model)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", ["every type", "every type, ID3"])
def test_categories_that_fit_did_not_see(case, form, tmp_path):
    other = MIXED.iloc[::-1].assign(text=["b", "new", "a", None, "b", "b"])
    after, _ = FORMATS[form](fitted(case), tmp_path)
    assert_equal(after.predict_proba(other), fitted(case).predict_proba(other))


def test_what_can_be_done_with_loaded_models(tmp_path):
    before = fitted("rules, a frame")
    after, _ = by_model_file(before, tmp_path)
    for of in (str, lambda rules: rules.to_json(), lambda rules: rules.to_sql()):
        assert of(after.rules_) == of(before.rules_)
    before = fitted("boosted, a frame")
    after, _ = by_model_file(before, tmp_path)
    staged = zip(after.staged_predict(FRAME), before.staged_predict(FRAME), strict=True)
    assert all(np.array_equal(one, other) for one, other in staged)
    assert_equal(after.feature_importances_, before.feature_importances_)
    assert_equal(after.estimators_[1].predict(FRAME), before.estimators_[1].predict(FRAME))


@pytest.mark.parametrize("kind", ["boosted", "rules"])
def test_files_of_this_version_stay_readable(kind):
    """Written by the release that brought version 6."""
    frame = pandas.DataFrame({"a": [0.5, 1.5, 2.5, np.nan], "b": ["u", "v", None, "w"]})
    model = load_model(MODEL_FILES / f"version_6_{kind}.gputree")
    expected = json.loads((MODEL_FILES / f"version_6_{kind}.json").read_text("utf-8"))
    assert model.predict_proba(frame).tolist() == expected


def test_a_file_without_categories_is_of_numbers():
    model = load_model(MODEL_FILES / "version_1.gputree")
    assert model.columns_.n_categories.tolist() == [0, 0, 0]


@pytest.mark.parametrize("form", FORMATS)
def test_class_weight_keeps_its_keys(form, tmp_path):
    weights = {np.int64(0): 1, 1: np.float64(2.5), 2: 1}
    model = DecisionTreeClassifier(class_weight=weights).fit(NUMBERS, CODES)
    after, _ = FORMATS[form](model, tmp_path)
    assert after.class_weight == weights
    assert all(type(key) is int for key in after.class_weight)


@pytest.mark.parametrize("form", FORMATS)
def test_a_generator_is_not_stored(form, tmp_path):
    before = DecisionTreeClassifier(random_state=np.random.RandomState(0)).fit(NUMBERS, CODES)
    with pytest.warns(UserWarning, match="state of random_state is not stored") as record:
        after, _ = FORMATS[form](before, tmp_path)
    assert record[0].filename == __file__
    assert after.random_state is None
    assert_equal(after.tree_, before.tree_)


def test_regression_has_no_classes(tmp_path):
    after, _ = by_model_file(fitted("regression"), tmp_path)
    assert type(after) is DecisionTreeRegressor
    assert not hasattr(after, "classes_")


def test_marks_of_missing_cells(tmp_path):
    model = C45Classifier().fit(FRAME, CODES)
    model.missing_marks_ = ["?", "NA"]
    for form in FORMATS.values():
        assert form(model, tmp_path)[0].missing_marks_ == ["?", "NA"]


READING = {
    "target": "y",
    "weights": "w",
    "ignored": ["", "id"],
    "format": {
        "has_header": False,
        "names": ["a", "y"],
        "delimiter": "|",
        "decimal": ",",
        "thousands": ".",
        "units": ["a"],
    },
}


@pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))
def test_how_a_table_was_read(tmp_path, form):
    model = DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "b"])
    model.reading_ = READING
    assert form(model, tmp_path)[0].reading_ == READING
    model.fit([[1.0], [2.0]], ["a", "b"])
    assert not hasattr(form(model, tmp_path)[0], "reading_")


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ([], "reading must be an object"),
        ({"format": []}, "reading must be an object, and so must its format"),
        ({"target": 1}, "target of reading must be a string"),
        ({"ignored": "a"}, "ignored of reading must be a list of strings"),
        ({"format": {"names": [1]}}, "names of reading must be a list of strings"),
        ({"format": {"has_header": 1}}, "has_header of reading must be a boolean"),
        ({"other": 1}, "reading has the unknown field 'other'"),
    ],
)
def test_damaged_facts_of_reading(reading, message):
    text = export_json(DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "b"]))
    with pytest.raises(ValueError, match=message):
        read_json(json.dumps(json.loads(text) | {"reading": reading}))


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 0.1, float("inf"), "text", (1, 2.0), [1, ["a", None]], {0: 1.0, 1: 2.5},
        {"a": 1.0, "b": {"float": "inf"}}, {1.5: (0, 1), True: None}, np.array([1, 2], np.int16),
        np.array([[0.5, np.inf]]),
    ],
)  # fmt: skip
def test_values(value):
    assert_equal(decode(json.loads(json.dumps(encode(value, "value"), allow_nan=False))), value)
