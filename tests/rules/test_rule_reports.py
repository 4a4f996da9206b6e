"""Reports of rules and of boosted models, and what weights do to all reports."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)
from gputree.datasets import load_golf, load_iris
from gputree.export import explain

HEAD = "rule     class  conditions  confidence  covered  errors  used  wrong  gained  lost"


def words(seed: int, n: int = 150):
    """Numbers, words and missing values, with noise."""
    rng = np.random.default_rng(seed)
    X = np.empty((n, 3), object)
    X[:, 0] = np.array(["red", "green", "blue"])[rng.integers(3, size=n)]
    X[:, 1:] = np.round(rng.normal(size=(n, 2)), 1)
    X[rng.random((n, 3)) < 0.05] = None
    score = np.array([x or 0.0 for x in X[:, 1]]) + (X[:, 0] == "red") + rng.normal(size=n)
    return X, np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.8])]


def meets(row, condition, categories) -> bool:
    value = row[condition.feature]
    if value is None:
        return condition.kind == "missing"
    if condition.kind == "in":
        return value in [categories[condition.feature][code] for code in condition.codes]
    if condition.kind in ("<=", ">"):
        return (value <= condition.threshold) == (condition.kind == "<=")
    return condition.kind == "present"


def naive_lines(model, X, y, weight):
    """Coverage, decisions and savings of each rule, and of the default class, row by row."""
    rules, categories = list(model.rules_), model.columns_.categories
    default = model.classes_[model.rules_.default]
    sums = [dict.fromkeys(("covered", "errors", "used", "wrong", "gained", "lost"), 0.0)
            for _ in range(len(rules) + 1)]  # fmt: skip
    usage: dict[int, float] = {}
    for row, truth, w in zip(X, y, weight, strict=True):
        covering = [
            place
            for place, rule in enumerate(rules)
            if all(meets(row, one, categories) for one in rule.conditions)
        ]
        for place in covering:
            sums[place]["covered"] += w
            sums[place]["errors"] += w * (rules[place].label != truth)
        for f in {one.feature for place in covering for one in rules[place].conditions}:
            usage[f] = usage.get(f, 0.0) + w
        answers = [rules[place].label for place in covering] + [default]
        first = covering[0] if covering else len(rules)
        sums[first]["used"] += w
        sums[first]["wrong"] += w * (answers[0] != truth)
        if covering:
            sums[first]["gained"] += w * (answers[0] == truth != answers[1])
            sums[first]["lost"] += w * (answers[0] != truth == answers[1])
    return sums, {f"x{f}": share / sum(weight) for f, share in usage.items()}


@given(st.integers(0, 1000), st.booleans())
def test_lines_of_rules_are_counted_row_by_row(seed, weighted):
    X, y = words(seed)
    model = C45Rules().fit(X, y)
    X, y = words(seed + 1)
    weight = np.random.default_rng(seed).integers(0, 4, len(y)) / 2 if weighted else None
    found = model.report(X, y, weight)
    sums, usage = naive_lines(model, X, y, np.ones(len(y)) if weight is None else weight)
    lines = found.tables["each_rule"]
    assert [line["rule"] for line in lines[:-1]] == [str(i + 1) for i in range(len(model.rules_))]
    assert lines[-1]["rule"] == "default"
    for line, expected in zip(lines[:-1], sums, strict=False):
        assert {name: line[name] for name in expected} == expected
    assert (lines[-1]["used"], lines[-1]["wrong"]) == (sums[-1]["used"], sums[-1]["wrong"])
    columns = {line["column"]: line["usage"] for line in found.tables["column_usage"]}
    assert columns == pytest.approx(usage)
    assert list(columns.values()) == sorted(columns.values(), reverse=True)
    assert sum(line["wrong"] for line in lines) == found.measures["errors"]
    assert sum(line["used"] for line in lines) == (len(y) if weight is None else weight.sum())


def test_the_text_of_rules():
    golf = load_golf()
    model = C45Rules().fit(golf.data, golf.target)
    text = str(model.report(golf.data, golf.target))
    assert text.splitlines()[:2] == ["rules                    5", "conditions               8"]
    lines = text.splitlines()
    at = lines.index(HEAD)
    assert lines[at + 1].split() == ["1", "no", "2", "0.630", "3", "0", "3", "0", "3", "0"]
    assert lines[at + 4].split() == ["4", "yes", "1", "0.662", "7", "1", "4", "0", "0", "0"]
    assert lines[at + 6].split() == ["default", "yes", "0", "0"]
    assert lines[at + 8].split() == ["column", "usage"]
    assert lines[at + 9].split()[1] == "85.7%"


def test_boosted_models_tell_each_trial():
    X, y = words(3)
    for kind, of in ((BoostedC45Classifier, "trees"), (BoostedC45Rules, "rule_sets")):
        model = kind(n_trials=3).fit(X, y)
        found = model.report(X, y)
        assert found.size[of] == len(model.estimators_)
        assert found.measures["accuracy"] == model.score(X, y)
        for line, member in zip(found.tables["each_trial"], model.estimators_, strict=True):
            assert line["errors"] == (member.predict(X) != y).sum()
            assert line["error_rate"] == line["errors"] / len(y)
        sizes = [
            len(member.rules_) if of == "rule_sets" else member.get_n_leaves()
            for member in model.estimators_
        ]
        part = "rules" if of == "rule_sets" else "leaves"
        assert [line[part] for line in found.tables["each_trial"]] == sizes
        assert found.size[part] == sum(sizes)
        assert "trial" in str(found)
        assert model.report(CodedTable(X), y).as_dict() == found.as_dict()


MODELS = [
    C45Classifier(),
    C45Rules(),
    BoostedC45Classifier(n_trials=3),
    BoostedC45Rules(n_trials=3),
    DecisionTreeRegressor(max_depth=3),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_weight_is_a_number_of_rows(model):
    X, y = load_iris(return_X_y=True)
    if isinstance(model, DecisionTreeRegressor):
        X, y = X[:, :3], X[:, 3]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model.fit(X[::2], y[::2])
    once = model.report(X, y, weight).as_dict()
    again = model.report(np.repeat(X, weight, axis=0), np.repeat(y, weight)).as_dict()
    assert once.pop("rows") == np.count_nonzero(weight)
    assert once.pop("weight") == again.pop("rows") == weight.sum()
    for name, value in again.items():
        if name.startswith(("each", "column")):
            for line, expected in zip(once[name], value, strict=True):
                assert line == pytest.approx(expected)
        else:
            assert np.array(once[name]) == pytest.approx(np.array(value))


def test_weights_are_checked_as_in_fit():
    X, y = load_iris(return_X_y=True)
    model = C45Classifier().fit(X, y)
    for weight, message in (
        (-np.ones(150), "Negative values in data passed to `sample_weight`"),
        (np.full(150, np.nan), "Input sample_weight contains NaN"),
        (np.zeros(150), "Sample weights must contain at least one non-zero number"),
        (np.ones(3), "sample_weight.shape == "),
    ):
        with pytest.raises(ValueError, match=message):
            model.report(X, y, weight)


def test_the_numbers_are_json():
    X, y = words(1)
    for model in (C45Rules(), BoostedC45Rules(n_trials=2)):
        found = model.fit(X, y).report(X, y, np.linspace(0.5, 2.0, len(y))).as_dict()
        assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_rules_of_one_class():
    model = C45Rules().fit([[1.0], [2.0]], ["a", "a"])
    found = model.report([[1.0], [2.0], [3.0]], ["a", "a", "b"])
    (line,) = found.tables["each_rule"]
    assert (line["rule"], line["used"], line["wrong"]) == ("default", 3, 1)
    assert found.tables["column_usage"] == []


@pytest.mark.parametrize(
    "model",
    [C45Classifier(pruning=None), DecisionTreeClassifier(max_depth=4)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_are_used_where_their_values_are_known_and_tested(model, weighted, monkeypatch):
    monkeypatch.setattr("gputree.estimators.reporting.MARKED_ROWS", 7)
    X, y = words(2)
    model = clone(model).fit(X, y)
    X, y = words(3)
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else np.ones(len(y))
    used: dict[str, float] = {}
    for row, told, w in zip(X, explain(model, X), weight, strict=True):
        tree = model.tree_
        inner = [step.node for step in told.steps if not tree.is_leaf[step.node]]
        for f in {tree.feature[node] for node in inner}:
            if row[f] is not None:
                used[f"x{f}"] = used.get(f"x{f}", 0.0) + w / weight.sum()
    found = model.report(X, y, weight if weighted else None).tables["column_usage"]
    assert {line["column"]: line["usage"] for line in found} == pytest.approx(used)
    shares = [line["usage"] for line in found]
    assert shares == sorted(shares, reverse=True)
