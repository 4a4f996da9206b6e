"""Boosted trees and rules come back from model files as they were; damage is refused."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas
import pytest
from damage import MIB, at_most, change_header, change_values, npy_of_zeros, pack, unpack
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from strategies import examples

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    ID3Classifier,
    export_json,
    load_model,
    members,
    read_json,
    save_model,
    to_rules,
)
from gputree.columns import Columns
from gputree.persistence import FORMAT_VERSION, RULES, Contents, _npy, read_contents, read_model
from gputree.rules import RuleSet
from gputree.tree import Tree

MODEL_FILES = Path(__file__).with_name("model_files")
SLOW = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])

RANDOM = np.random.default_rng(0)
N = 120
NUMBERS = RANDOM.normal(size=(N, 4))
NUMBERS[RANDOM.random((N, 4)) < 0.1] = np.nan
WORDS = np.array(["no", "perhaps", "yes"], dtype=object)[
    np.digitize(np.nan_to_num(NUMBERS[:, 0]) + np.nan_to_num(NUMBERS[:, 1]), [-0.5, 0.5])
]
TWO = WORDS == "yes"
FRAME = pandas.DataFrame(
    {
        "größe, m": NUMBERS[:, 0],
        "kind": pandas.Categorical(RANDOM.choice(list("abc"), N), ["c", "b", "a", "never"]),
        "text": np.where(NUMBERS[:, 1] > 0, "many", "few"),
        "noise": RANDOM.integers(0, 3, N),
    }
)
FRAME.loc[::7, "text"] = None
COSTS = {("yes", "no"): 5.0, ("no", "yes"): 0.25}
WEIGHT = RANDOM.integers(0, 4, N)

BOOSTED = {
    "numbers": lambda: BoostedC45Classifier(n_trials=4).fit(NUMBERS, WORDS),
    "a frame": lambda: BoostedC45Classifier(n_trials=3, pruning=None).fit(FRAME, WORDS),
    "weights": lambda: BoostedC45Classifier(n_trials=3).fit(FRAME, TWO, WEIGHT),
    "costs": lambda: BoostedC45Classifier(n_trials=3, misclassification_costs=COSTS).fit(
        FRAME, WORDS
    ),
    "costs in a frame": lambda: BoostedC45Classifier(
        n_trials=2,
        misclassification_costs=pandas.DataFrame([[0, 3], [1, 0]], [True, False], [True, False]),
    ).fit(FRAME, TWO),
    "soft thresholds": lambda: BoostedC45Classifier(n_trials=3, soft_thresholds=True).fit(
        NUMBERS, WORDS
    ),
    "winnowed": lambda: BoostedC45Classifier(n_trials=3, winnow=True, random_state=1).fit(
        FRAME, WORDS
    ),
    "shares and classes": lambda: BoostedC45Classifier(
        n_trials=3,
        min_samples_split=0.05,
        class_weight={"yes": 2.0},
        classes=["maybe", "no", "perhaps", "yes"],
        binary_splits=True,
    ).fit(FRAME, WORDS),
    "one class": lambda: BoostedC45Classifier().fit(NUMBERS, np.zeros(N, int)),
}
RULED = {
    "numbers": lambda: C45Rules().fit(NUMBERS, WORDS),
    "a frame": lambda: C45Rules(rule_weight=0.25, n_jobs=1).fit(FRAME, WORDS, WEIGHT),
    "CART": lambda: C45Rules(DecisionTreeClassifier(max_depth=4)).fit(FRAME, WORDS),
    "ID3": lambda: C45Rules(ID3Classifier(), redundancy=2.0).fit(FRAME[["kind", "text"]], WORDS),
    "costs": lambda: C45Rules(
        C45Classifier(misclassification_costs={(True, False): 4.0}, winnow=True, random_state=0)
    ).fit(FRAME, TWO),
    "laplace": lambda: C45Rules(C45Classifier(laplace=True, binary_splits=True)).fit(FRAME, WORDS),
    "monotonic": lambda: C45Rules(DecisionTreeClassifier(monotonic_cst=[1, 0, 0, 0])).fit(
        NUMBERS, TWO
    ),
    "of a tree": lambda: to_rules(C45Classifier().fit(FRAME, WORDS), FRAME, WORDS),
    "no rules": lambda: C45Rules().fit(NUMBERS, np.zeros(N, int)),
}
BOOSTED_RULES = {
    "numbers": lambda: BoostedC45Rules(n_trials=3).fit(NUMBERS, WORDS),
    "a frame": lambda: BoostedC45Rules(n_trials=3, n_jobs=1).fit(FRAME, WORDS, WEIGHT),
    "costs": lambda: BoostedC45Rules(n_trials=3, misclassification_costs=COSTS).fit(FRAME, WORDS),
    "winnowed": lambda: BoostedC45Rules(n_trials=3, winnow=True, random_state=1).fit(FRAME, WORDS),
    "parameters": lambda: BoostedC45Rules(
        n_trials=2, confidence=0.1, rule_weight=0.25, min_samples_split=0.05
    ).fit(FRAME, WORDS),
    "no rules": lambda: BoostedC45Rules().fit(NUMBERS, np.zeros(N, int)),
}
ALL = {f"boosted, {name}": make for name, make in BOOSTED.items()}
ALL |= {f"rules, {name}": make for name, make in RULED.items()}
ALL |= {f"boosted rules, {name}": make for name, make in BOOSTED_RULES.items()}

_NOT_STORED = {"unpruned_tree_", "growth_report_"}


def assert_equal(found, expected):
    """The same in every field, however deep."""
    assert type(found) is type(expected)
    if isinstance(expected, Tree):
        assert found.equals(expected)
    elif isinstance(expected, pandas.DataFrame):
        pandas.testing.assert_frame_equal(found, expected)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()
    elif isinstance(expected, Columns):
        assert_equal(found.nominal, expected.nominal)
        assert_equal(found.categories, expected.categories)
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal(one, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_equal(list(found.values()), list(expected.values()))
    elif hasattr(expected, "__dict__") and not callable(expected):
        names = vars(expected).keys() - _NOT_STORED
        assert vars(found).keys() == names
        for name in names:
            assert_equal(getattr(found, name), getattr(expected, name))
    else:
        assert found == expected


def without_caches(model):
    """Rules keep what was computed from them."""
    for member in getattr(model, "estimators_", []):
        without_caches(member)
    rules = getattr(model, "rules_", None)
    if rules is not None:
        fresh = {name: getattr(rules, name) for name in RuleSet.__dataclass_fields__}
        model.rules_ = RuleSet(**fresh)
    return model


@pytest.mark.parametrize("case", ALL)
def test_round_trip(case, tmp_path):
    before, path = ALL[case](), tmp_path / "model"
    save_model(before, path)
    after = load_model(path)
    if case.endswith("costs in a frame"):  # kept as an array, by the order of the classes
        for model in (before, *before.estimators_):
            model.misclassification_costs = before.costs_
    assert_equal(without_caches(after), without_caches(before))
    table = NUMBERS if after.n_features_in_ == 4 and not hasattr(after, "feature_names_in_") else (
        FRAME[list(after.feature_names_in_)]
    )  # fmt: skip
    for method in ("predict", "predict_proba"):
        assert_equal(getattr(after, method)(table), getattr(before, method)(table))
    save_model(after, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert read_contents(path).header["format_version"] == FORMAT_VERSION


def test_what_can_be_done_with_loaded_models(tmp_path):
    rules = RULED["a frame"]()
    save_model(rules, tmp_path / "model")
    after = load_model(tmp_path / "model")
    assert str(after.rules_) == str(rules.rules_)
    assert after.rules_.to_json() == rules.rules_.to_json()
    assert after.rules_.to_sql() == rules.rules_.to_sql()
    assert_equal(after.apply(FRAME), rules.apply(FRAME))
    boosted = BOOSTED["a frame"]()
    save_model(boosted, tmp_path / "model")
    after = load_model(tmp_path / "model")
    staged = zip(after.staged_predict(FRAME), boosted.staged_predict(FRAME), strict=True)
    assert all(np.array_equal(one, other) for one, other in staged)
    assert_equal(after.feature_importances_, boosted.feature_importances_)
    assert_equal(after.estimators_[1].predict(FRAME), boosted.estimators_[1].predict(FRAME))


def test_files_of_this_version_stay_readable():
    """Written by the release that brought version 6."""
    for kind in ("boosted", "rules"):
        model = load_model(MODEL_FILES / f"version_6_{kind}.gputree")
        expected = json.loads((MODEL_FILES / f"version_6_{kind}.json").read_text("utf-8"))
        assert model.predict_proba(FRAME_OF_FILES).tolist() == expected


FRAME_OF_FILES = pandas.DataFrame({"a": [0.5, 1.5, 2.5, np.nan], "b": ["u", "v", None, "w"]})


def test_winnowed_columns_of_one_tree(tmp_path):
    before = C45Classifier(winnow=True, random_state=1).fit(FRAME, WORDS)
    assert before.winnowed_.any()
    save_model(before, tmp_path / "model")
    for after in (load_model(tmp_path / "model"), read_json(export_json(before))):
        assert_equal(after.winnowed_, before.winnowed_)


def test_readers_of_one_tree_say_who_reads_the_file(tmp_path):
    save_model(BOOSTED["numbers"](), tmp_path / "model")
    with pytest.raises(ValueError, match="holds several trees, or rules: load_model reads it"):
        read_model(tmp_path / "model")


def test_what_cannot_be_saved(tmp_path):
    class Child(C45Rules):
        pass

    for model in (BoostedC45Classifier(), C45Rules()):
        with pytest.raises(NotFittedError):
            save_model(model, tmp_path / "model")
    with pytest.raises(TypeError, match=r"'BoostedC45Classifier'.*'C45Rules'.* got Child"):
        save_model(Child().fit(NUMBERS, WORDS), tmp_path / "model")
    boosted = BOOSTED["costs"]().set_params(misclassification_costs=None)
    with pytest.raises(ValueError, match=r"misclassification_costs.* was set after fit"):
        save_model(boosted, tmp_path / "model")
    rules = RULED["numbers"]().set_params(confidence=7)
    with pytest.raises(ValueError, match="'confidence' parameter of C45Rules"):
        save_model(rules, tmp_path / "model")
    with pytest.raises(TypeError, match="got BoostedC45Classifier"):
        export_json(BOOSTED["numbers"]())
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------ damage
DAMAGED = ("boosted, costs", "boosted, winnowed", "rules, a frame", "boosted rules, a frame")
FITTED = {case: ALL[case]() for case in DAMAGED}


@pytest.fixture(params=FITTED)
def model(request, tmp_path):
    path = tmp_path / "model.gputree"
    save_model(FITTED[request.param], path)
    return path


@pytest.fixture
def boosted(tmp_path):
    path = tmp_path / "model.gputree"
    save_model(FITTED["boosted, costs"], path)
    return path


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "model.gputree"
    save_model(FITTED["rules, a frame"], path)
    return path


@pytest.fixture
def boosted_rules(tmp_path):
    path = tmp_path / "model.gputree"
    save_model(FITTED["boosted rules, a frame"], path)
    return path


def load_or_refuse(path):
    """A file is refused in the way it should be, or holds a model that answers."""
    try:
        model = load_model(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    assert isinstance(model, (BoostedC45Classifier, BoostedC45Rules, C45Rules))
    assert str(getattr(model, "rules_", ""))[:1] != "x"
    names = list(getattr(model, "feature_names_in_", []))
    if names == list(FRAME):
        with suppress(ValueError):  # text where another kind of column is expected
            assert len(model.predict(FRAME)) == N
            assert np.isfinite(model.predict_proba(FRAME)).all()


def edited(path, **changes):
    parts = unpack(path)
    header = json.loads(parts["model.json"]) | changes
    pack(path, parts | {"model.json": json.dumps(header).encode()})


HEADERS = [
    ("boosted", {"trees": []}, "trees must be a list of one or more"),
    ("boosted", {"trees": 3}, "trees must be a list of one or more"),
    ("boosted", {"trees": [None]}, "tree must have the keys"),
    ("boosted", {"algorithm": "C45Classifier"}, "algorithm must be one of"),
    ("boosted", {"algorithm": ["x"]}, "algorithm must be one of"),
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
    parts[member] = _npy(change(np.lib.format.read_array(io.BytesIO(parts[member]))))
    pack(rules, parts)
    with pytest.raises(ValueError, match=message):
        load_model(rules)


@pytest.mark.parametrize("name", RULES)
def test_arrays_of_another_length_or_type(name, rules):
    whole, member = unpack(rules), f"rules/{name}.npy"
    values = np.lib.format.read_array(io.BytesIO(whole[member]))
    for wrong in (values[:-1], np.concatenate([values, values[-1:]]), values.astype("<f4")):
        pack(rules, whole | {member: _npy(wrong)})
        with pytest.raises(ValueError, match=str(rules)):
            load_model(rules)
    pack(rules, {key: value for key, value in whole.items() if key != member})
    with pytest.raises(ValueError, match=str(rules)):
        load_model(rules)


@SLOW
@given(data=st.data())
def test_broken_bytes(model, data):
    """Bytes changed, cut out, put in, or cut off."""
    content = bytearray(model.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 30))
        content[at : at + length] = data.draw(st.binary(max_size=30))
    broken = model.with_name("broken")
    broken.write_bytes(content)
    load_or_refuse(broken)


@SLOW
@given(data=st.data())
def test_broken_arrays(model, data):
    """Whole members with values that no tree or rule has: past every checksum."""
    parts = unpack(model)
    names = sorted(name for name in parts if name.endswith(".npy"))
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)):
        values = np.lib.format.read_array(io.BytesIO(parts[name]))
        parts[name] = _npy(change_values(data, values))
    broken = model.with_name("broken")
    pack(broken, parts)
    load_or_refuse(broken)


@SLOW
@given(data=st.data())
def test_broken_headers(model, data):
    """Any value of the header, however deep, becomes another."""
    parts = unpack(model)
    parts["model.json"] = change_header(data, parts["model.json"])
    broken = model.with_name("broken")
    pack(broken, parts)
    load_or_refuse(broken)


def test_what_unpacks_to_more_than_is_allowed(model, monkeypatch):
    monkeypatch.setattr(members, "LEAST_BYTES", 4 * MIB)
    whole = unpack(model)
    for name in ("trees/0/gain.npy", "trees/0/statistics.npy", "rules/class_weights.npy"):
        pack(model, whole | {name: npy_of_zeros(4 * MIB)})
        with at_most(2 * MIB), pytest.raises(ValueError, match=r"unpacks to .* times its size"):
            load_model(model)


def test_text_that_takes_much_room_anywhere(rules):
    header = json.loads(unpack(rules)["model.json"])
    header["tree_of"]["classes"] = {"array": ["a"] * 3, "dtype": "<U500000000"}
    edited(rules, **header)
    with at_most(2 * MIB), pytest.raises(ValueError, match="arrays of text take 6,000,000,"):
        load_model(rules)


def test_contents_have_no_reserved_keys(tmp_path):
    from gputree.persistence import write_contents

    contents = read_contents(MODEL_FILES / "version_5.gputree")
    with pytest.raises(ValueError, match="reserved"):
        write_contents(tmp_path / "x", Contents({"trees": 1}, contents.trees, None))
