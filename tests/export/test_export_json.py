"""Estimators as JSON: of the schema, equal field by field after a round trip, for any reader."""

import json
import math

import jsonschema
import pytest
from damage import change_header
from hypothesis import given
from hypothesis import strategies as st
from multiway_trees import multiway_cases
from saved_models import FORESTS, GOLF, TREES, assert_equal, estimator_of, fitted
from sklearn.exceptions import NotFittedError
from strategies import examples

from gputree import C45Classifier, ID3Classifier, export_json, json_schema, read_json
from gputree.criteria.named import CRITERIA
from gputree.persistence import save_load
from gputree.persistence.codecs import ALGORITHMS
from gputree.persistence.codecs import FORESTS as FOREST_NAMES
from gputree.prediction import class_distributions

CHECK = jsonschema.Draft202012Validator(json_schema())

C45 = "a pruner"


@pytest.mark.parametrize("case", [*TREES, *FORESTS])
def test_documents_are_of_the_schema(case):
    CHECK.validate(json.loads(export_json(fitted(case)), parse_constant=pytest.fail))


@pytest.mark.parametrize("case", FORESTS)
def test_forests_read_again(case):
    text = export_json(fitted(case))
    again = read_json(text)
    assert export_json(again) == text
    assert_equal(list(again._trees), list(fitted(case)._trees))
    weights = fitted(case)._draws.weight
    again._draws = again._draws._replace(weight=weights)  # which documents do not hold
    assert_equal(again._draws, fitted(case)._draws)


def test_thresholds_of_missing_values_are_infinite():
    document = json.loads(export_json(fitted("infinite threshold")))
    assert {"float": "inf"} in document["tree"]["threshold"]


# ------------------------------------------- a reader that knows nothing but the documentation
def sent(tree, t, x):
    """Child that a node sends a value to: its ordinal, -1 for all, -2 for none."""
    missing = tree["missing_child"][t]
    if x is None:
        return missing
    if tree["split_kind"][t] == 1:
        threshold = tree["threshold"][t]
        if isinstance(threshold, dict):
            threshold = float(threshold["float"])
        return 0 if x <= threshold else 1
    for ordinal in range(tree["n_children"][t]):
        child = tree["first_child"][t] + ordinal
        begin, end = tree["branch_begin"][child], tree["branch_end"][child]
        if x in tree["branch_code"][begin:end]:
            return ordinal
    return -2 if tree["split_kind"][t] == 2 and missing >= 0 else missing


def answer(tree, row):
    ends, rest = {}, [(0, 1.0)]
    while rest:
        t, share = rest.pop()
        first, n = tree["first_child"][t], tree["n_children"][t]
        go = sent(tree, t, row[tree["feature"][t]]) if n else -2
        whole = sum(tree["weight"][first : first + n]) if n else 0.0
        if go >= 0:
            rest.append((first + go, share))
        elif go == -1 and whole > 0:
            below = [c for c in range(first, first + n) if tree["weight"][c] > 0]
            rest += [(c, share * (tree["weight"][c] / whole)) for c in below]
        else:
            ends[t] = share
    out = [0.0] * len(tree["statistics"][0])
    for t in sorted(ends):
        node = t
        while tree["weight"][node] == 0:
            node = tree["parent"][node]
        for k, part in enumerate(tree["statistics"][node]):
            out[k] += ends[t] * (part / tree["weight"][node])
    return out


@given(multiway_cases(min_rows=1))
def test_any_reader_answers_as_the_tree_does(case):
    tree, values = case
    document = json.loads(export_json(estimator_of(tree)))
    CHECK.validate(document)
    rows = [[None if math.isnan(x) else x for x in row] for row in values.tolist()]
    found = [answer(document["tree"], row) for row in rows]
    assert found == class_distributions(tree, values).tolist()


# --------------------------------------------------------------------- files
def test_a_file(tmp_path):
    path = tmp_path / "tree.json"
    text = export_json(fitted(C45), path)
    assert path.read_text("utf-8") == text
    assert_equal(read_json(path), fitted(C45))
    assert_equal(read_json(str(path)), fitted(C45))
    with pytest.raises(FileNotFoundError, match="no JSON file"):
        read_json(tmp_path / "other.json")
    with pytest.raises(IsADirectoryError, match="is a directory, and no JSON file"):
        read_json(tmp_path)


@pytest.mark.parametrize("source", [None, [], {}, b"{}"])
def test_what_is_no_document(source):
    kind = type(source).__name__
    with pytest.raises(TypeError, match=f"read_json takes a JSON document .* got {kind}"):
        read_json(source)


def test_what_is_no_estimator_of_gputree():
    with pytest.raises(TypeError, match=r"export_json takes one of \['C45Classifier'.*got Tree"):
        export_json(fitted(C45).tree_)
    with pytest.raises(NotFittedError):
        export_json(ID3Classifier())


def test_a_file_larger_than_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "tree.json"
    export_json(fitted(C45), path)
    monkeypatch.setattr(save_load, "_TIMES_IN_MEMORY", 1 << 50)
    with pytest.raises(MemoryError, match=r"Reading .*tree\.json takes at least"):
        read_json(path)


# -------------------------------------------------------------------- damage
@examples(150)
@given(st.sampled_from(sorted([*TREES, *FORESTS])), st.data())
def test_broken_documents(name, data):
    """Any value, however deep, becomes another: a whole estimator, or an error that says so."""
    broken = change_header(data, export_json(fitted(name))).decode()
    try:
        model = read_json(broken)
    except ValueError as error:
        assert "The text" in str(error)  # noqa: PT017
        return
    for member in getattr(model, "estimators_", [model]):
        member.tree_.check()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"format_version": 1', '"format_version": 7', "written by a newer gputree"),
        ('"format_version": 1', '"format_version": 6', "of several targets, and no others"),
        ('"format_version": 1', '"format_version": 4', "trees must be a list of one or more"),
        ('"gputree-json"', '"gputree-model"', "does not name the format"),
        ("[14.0,", "[NaN,", "JSON has no NaN"),
        ("[14.0,", '[{"float":"inf"},', "weight is not finite"),
        ("[14.0,", '["14",', r"array weight must hold float64, got str"),
        ('"split_kind": [2,', '"split_kind": [258,', "out of bounds"),
        ('"n_rows": [14,', '"n_rows": [14.5,', "array n_rows must hold int64, got float"),
        ('"dtype":"<U3"', '"dtype":"<U99999999"', "arrays of text take 799,999,992 bytes"),
        ('"criterion": "entropy",', "", "the header's tree must have the keys"),
        ("{", "{" * 100_000, "not a valid gputree JSON document"),
        ('"params": {', '"params": {"max_depth":' + '{"tuple":[' * 9000, "not a valid"),
    ],
)
def test_documents_that_are_refused(old, new, message):
    text = export_json(C45Classifier().fit(GOLF.data, GOLF.target))
    assert old in text
    with pytest.raises(ValueError, match=message):
        read_json(text.replace(old, new, 1))


def test_the_schema_names_all_estimators_and_criteria():
    schema = json_schema()
    assert schema["properties"]["algorithm"]["enum"] == sorted(ALGORITHMS.keys() | FOREST_NAMES)
    last = save_load.FORMAT.last
    assert schema["properties"]["format_version"]["enum"] == [*range(1, last + 1)]
    assert schema["title"].endswith(f"versions 1 to {last}")
    found = schema["$defs"]["tree"]["properties"]["criterion"]["enum"]
    assert set(found) == {name for names in CRITERIA.values() for name in names}


def test_the_schema_tells_what_reading_refuses():
    document = json.loads(export_json(fitted(C45)))
    for change in (
        {"format_version": 2},
        {"classes": None},
        {"more": 1},
        {"tree": {**document["tree"], "weight": ["1"]}},
        {"tree": {key: value for key, value in document["tree"].items() if key != "gain"}},
    ):
        assert not CHECK.is_valid(document | change)
    assert CHECK.is_valid(document | {"missing_marks": ["?"]})
    forest = json.loads(export_json(fitted("forest, targets")))
    for change in (
        {"format_version": 1},
        {"algorithm": "DecisionTreeRegressor"},
        {"classes": document["classes"]},
        {"bootstrap": {}},
        {"trees": []},
        {"trees": [*forest["trees"], document["tree"]]},
        {"trees": [forest["trees"][0] | {"smoothing": 1.0}]},
        {"tree": forest["trees"][0]},
    ):
        assert not CHECK.is_valid(forest | change)
    assert CHECK.is_valid(forest | {"trees": forest["trees"][:1]})
