"""Files of boosted trees and of rules: what they refuse, and in which words."""

import io
import json
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from damage import MIB, at_most, pack, unpack
from saved_models import NUMBERS, TWO, WORDS, fitted
from sklearn.exceptions import NotFittedError

from gputree import (
    BoostedC45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    export_json,
    load_model,
    save_model,
)
from gputree.persistence import FORMAT_VERSION, Contents, read_contents, write_contents
from gputree.persistence.container import npy_bytes
from gputree.persistence.model_file import RULES

MODEL_FILES = Path(__file__).with_name("model_files")


@pytest.fixture
def saved(tmp_path):
    def save(case):
        save_model(fitted(case), tmp_path / "model.gputree")
        return tmp_path / "model.gputree"

    return save


@pytest.fixture
def boosted(saved):
    return saved("boosted, costs")


@pytest.fixture
def rules(saved):
    return saved("rules, a frame")


@pytest.fixture
def boosted_rules(saved):
    return saved("boosted rules, a frame")


def test_what_cannot_be_saved(tmp_path):
    class Child(C45Rules):
        pass

    for model in (BoostedC45Classifier(), C45Rules()):
        with pytest.raises(NotFittedError):
            save_model(model, tmp_path / "model")
    with pytest.raises(TypeError, match=r"'BoostedC45Classifier'.*'C45Rules'.* got Child"):
        save_model(Child().fit(NUMBERS, WORDS), tmp_path / "model")
    boosted = copy(fitted("boosted, costs")).set_params(misclassification_costs=None)
    with pytest.raises(ValueError, match=r"misclassification_costs.* was set after fit"):
        save_model(boosted, tmp_path / "model")
    rules = copy(fitted("rules, numbers")).set_params(confidence=7)
    with pytest.raises(ValueError, match="'confidence' parameter of C45Rules"):
        save_model(rules, tmp_path / "model")
    with pytest.raises(TypeError, match="got BoostedC45Classifier"):
        export_json(fitted("boosted, numbers"))
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ damage
def edited(path, **changes):
    parts = unpack(path)
    header = json.loads(parts["model.json"]) | changes
    pack(path, parts | {"model.json": json.dumps(header).encode()})


HEADERS = [
    ("boosted", {"trees": []}, "trees must be a list of one or more"),
    ("boosted", {"trees": 3}, "trees must be a list of one or more"),
    ("boosted", {"trees": [None]}, "tree must have the keys"),
    ("boosted", {"algorithm": "C45Classifier"}, "algorithm must be one of"),
    ("boosted", {"algorithm": ["x"]}, "algorithm must be of type str, got list"),
    ("boosted", {"algorithm": "C45Rules"}, "must have one tree, and arrays of rules"),
    ("boosted", {"errors": [0.1]}, "errors must contain 3 elements, got 1"),
    ("boosted", {"errors": [0.1, 0.2, 1.5]}, "errors must be numbers from 0 to 1"),
    ("boosted", {"errors": [0.1, 0.2, "a"]}, "errors must be numbers"),
    ("boosted", {"weights": [1, 1, 0]}, "weights must be greater than 0"),
    ("boosted", {"stop_reason": "tired"}, "stop_reason must be 'last classifier is very acc"),
    ("boosted", {"weights": [1, 1, 10**400]}, "not hold a valid estimator"),
    ("boosted", {"min_samples_split": 1}, "'min_samples_split' parameter"),
    ("boosted", {"min_samples_split": None}, "min_samples_split must be of type int"),
    ("boosted", {"winnowed": [9]}, "winnowed must be a list of columns"),
    ("boosted", {"params": {"laplace": True}}, "laplace"),
    ("boosted", {"format_version": FORMAT_VERSION + 1}, "written by a newer gputree"),
    ("rules", {"default": 3}, "default must be a class, got 3"),
    ("rules", {"default": None}, "default must be of type int"),
    ("rules", {"params": {"confidence": 2}}, "'confidence' parameter of C45Rules"),
    ("rules", {"unfitted": {"algorithm": "os.system", "params": {}}}, "algorithm must be one of"),
    ("rules", {"tree_of": {}}, "lacks algorithm"),
    ("rules", {"algorithm": "BoostedC45Classifier"}, "has no parameter .confidence."),
    ("boosted", {"algorithm": "BoostedC45Rules"}, "must have arrays of rules"),
    ("boosted_rules", {"algorithm": "BoostedC45Classifier"}, "has no parameter .confidence."),
    ("boosted_rules", {"n_rules": [1, 2, 3]}, "n_rules must add up to"),
    ("boosted_rules", {"n_rules": [1]}, "n_rules must contain 3 elements"),
    ("boosted_rules", {"n_rules": [1, 2, -1]}, "n_rules must be integers"),
    ("boosted_rules", {"defaults": [0, 0, 3]}, "defaults must be integers from 0 to 2"),
    ("boosted_rules", {"defaults": 1}, "defaults must be of type list"),
    ("boosted_rules", {"errors": None}, "errors must be of type list"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), HEADERS)
def test_bad_headers(kind, changes, message, request):
    path = request.getfixturevalue(kind)
    edited(path, **changes)
    with pytest.raises(ValueError, match=message):
        load_model(path)


def test_trees_of_another_kind(boosted, tmp_path):
    """One of three trees is of other columns, or of other classes."""
    other = DecisionTreeClassifier(criterion="entropy").fit(NUMBERS, TWO)
    save_model(other, tmp_path / "other")
    parts, strange = unpack(boosted), unpack(tmp_path / "other")
    for name in strange:
        if name.startswith("tree/"):
            parts[name.replace("tree/", "trees/1/")] = strange[name]
    pack(boosted, parts)
    with pytest.raises(ValueError, match="boosted trees must classify, by the same columns and"):
        load_model(boosted)


def changed(name, value):
    def change(arrays):
        arrays[name] = value(arrays[name])

    return change


ARRAYS = {
    "kind": (lambda a: a + np.uint8(5), "kind of rules must be from 0 to 4"),
    "feature": (lambda a: a + np.int32(9), "feature of rules must be from 0 to 3"),
    "threshold": (lambda a: a * np.nan, "no number as its threshold"),
    "code_begin": (lambda a: a[::-1].copy(), "code_begin of rules does not delimit"),
    "code": (lambda a: a + np.int32(99), "a category that its column does not have"),
    "begin": (lambda a: a * 0, "begin of rules does not delimit"),
    "condition": (lambda a: a - 10**6, "condition of rules must be from 0"),
    "label": (lambda a: a + 3, "label of rules must be from 0 to 2"),
    "confidence": (lambda a: a + 1.0, "confidence must be at most 1"),
    "class_weights": (lambda a: a - 1e9, "class_weights must be finite and not negative"),
    "decided_weights": (lambda a: a * 0.0, "the weights of all rows must have a sum"),
}


def test_each_array_of_rules_has_a_check():
    assert ARRAYS.keys() == RULES.keys()


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_no_rules(name, rules):
    change, message = ARRAYS[name]
    parts = unpack(rules)
    member = f"rules/{name}.npy"
    parts[member] = npy_bytes(change(np.lib.format.read_array(io.BytesIO(parts[member]))))
    pack(rules, parts)
    with pytest.raises(ValueError, match=message):
        load_model(rules)


@pytest.mark.parametrize("name", RULES)
def test_arrays_of_another_length_or_type(name, rules):
    whole, member = unpack(rules), f"rules/{name}.npy"
    values = np.lib.format.read_array(io.BytesIO(whole[member]))
    for wrong in (values[:-1], np.concatenate([values, values[-1:]]), values.astype("<f4")):
        pack(rules, whole | {member: npy_bytes(wrong)})
        with pytest.raises(ValueError, match=str(rules)):
            load_model(rules)
    pack(rules, {key: value for key, value in whole.items() if key != member})
    with pytest.raises(ValueError, match=str(rules)):
        load_model(rules)


def test_text_that_takes_much_room_anywhere(rules):
    header = json.loads(unpack(rules)["model.json"])
    header["tree_of"]["classes"] = {"array": ["a"] * 3, "dtype": "<U500000000"}
    edited(rules, **header)
    with at_most(2 * MIB), pytest.raises(ValueError, match="arrays of text take 6,000,000,"):
        load_model(rules)


def test_contents_have_no_reserved_keys(tmp_path):
    contents = read_contents(MODEL_FILES / "version_5.gputree")
    with pytest.raises(ValueError, match="reserved"):
        write_contents(tmp_path / "x", Contents({"trees": 1}, contents.trees, None))
