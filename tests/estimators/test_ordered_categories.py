"""Ordered categories grow the trees of their ranks, field by field."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from ordered_tables import LEVELS, as_text, asked, by_rank, ordered_table
from sklearn.base import clone
from twin_lists import assert_same_trees

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    C45Rules,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ID3Classifier,
    RandomForestRegressor,
    export_text,
    rank_features,
    to_rules,
)
from gputree.export import explain, path_rules, to_dict
from gputree.pruning import CostComplexityCV

X, LABELS, TARGET = ordered_table(n=60)
FULL = pytest.mark.full
CART, C45 = DecisionTreeClassifier(max_depth=4), C45Classifier()
FOREST = RandomForestRegressor(n_estimators=2, max_depth=3, random_state=0)
MORE = [
    DecisionTreeRegressor(min_samples_leaf=3),
    DecisionTreeClassifier(pruning=CostComplexityCV(cv=2, random_state=0)),
    C45Classifier(soft_thresholds=True),
    BoostedC45Classifier(n_trials=2),
    C45Rules(),
    ExtraTreesClassifier(n_estimators=2, random_state=0),
]
MODELS = [CART, C45, FOREST, *(pytest.param(model, marks=FULL) for model in MORE)]


def target_of(model):
    return LABELS if hasattr(model, "predict_proba") else TARGET


def answers(model, X):
    return getattr(model, "predict_proba", model.predict)(X)


@pytest.mark.parametrize("model", MODELS)
def test_trees_are_those_of_ranks(model):
    y = target_of(model)
    model, twin = clone(model).fit(X, y), clone(model).fit(by_rank(X), y)
    for tree, of_ranks in zip(trees_of(model), trees_of(twin), strict=True):
        assert_same_trees(tree, of_ranks)
    for rows in (X, as_text(X), asked(X)):
        np.testing.assert_array_equal(answers(model, rows), answers(twin, by_rank(rows)))


def trees_of(model):
    if isinstance(model, C45Rules):
        return [model.estimator_.tree_]
    return [m.tree_ for m in getattr(model, "estimators_", [model])]


@pytest.mark.parametrize("model", [CART, *(pytest.param(m, marks=FULL) for m in (C45, FOREST))])
def test_tables_that_are_coded_and_orders_that_are_given(model):
    y, order = target_of(model), {"level": LEVELS}
    expected = clone(model).fit(X, y)
    text = as_text(X)
    given = clone(model).set_params(ordered_categories=order).fit(text, y)
    tables = [
        CodedTable(X),
        CodedTable(text, ordered_categories=order),
        CodedTable.from_batches([text[:50], text[50:]], ordered_categories=order),
        CodedTable.from_batches([X[:50], X[50:]]),
    ]
    for other in [given, *(clone(model).fit(table, y) for table in tables)]:
        assert other.columns_.ordered.tolist() == [True, False, False]
        for a, b in zip(trees_of(other), trees_of(expected), strict=True):
            assert_same_trees(a, b)
    with pytest.raises(ValueError, match="give 'ordered_categories' to CodedTable"):
        clone(given).fit(tables[0], y)


def test_without_an_order_any_subset_is_cut():
    frame = pd.DataFrame({"level": pd.Categorical(LEVELS * 4, LEVELS, ordered=True)})
    y = np.array([0.0, 3.0, 0.0, 3.0, 0.0] * 4)
    single = DecisionTreeRegressor(max_depth=1)
    assert single.fit(frame, y).score(frame, y) < 0.5
    assert single.set_params(ordered_categories=None).fit(frame, y).score(frame, y) == 1.0
    assert 'level in {very low, medium, "top, above all"}' in export_text(single)


def test_id3_has_a_branch_for_each():
    model = ID3Classifier().fit(X[["level", "c"]], LABELS)
    assert model.columns_.nominal.all()
    assert model.columns_.categories[0].tolist() == LEVELS
    with pytest.raises(ValueError, match="has no parameter 'ordered_categories': every category"):
        model.set_params(ordered_categories=None)
    with pytest.raises(ValueError, match="numeric and ordered columns of a CodedTable"):
        ID3Classifier().fit(CodedTable(X[["level"]]), LABELS)


def test_predictions_are_monotonic_in_an_order():
    whole, _, target = ordered_table(missing=False)
    model = DecisionTreeRegressor(monotonic_cst={"level": 1}).fit(whole[["level"]], target)
    steps = model.predict(pd.DataFrame({"level": LEVELS}))
    assert (np.diff(steps) >= 0).all()
    assert steps[0] < steps[-1]
    with pytest.raises(ValueError, match=r"order: ordered_categories=\{'level': \[...\]\}"):
        clone(model).fit(as_text(whole)[["level"]], target)


def test_words_of_a_tree():
    codes = np.repeat([0, 2, 3], 4)
    frame = pd.DataFrame({"level": pd.Categorical.from_codes(codes, LEVELS, ordered=True)})
    model = DecisionTreeRegressor().fit(frame, codes * 1.0)
    assert export_text(model) == (
        "level <= low: 0 (4, mse 0)\n"
        "level > low\n"
        "|   level <= medium: 2 (4, mse 0)\n"
        "|   level > medium: 3 (4, mse 0)\n"
    )
    assert to_dict(model) == {
        "level": {"<= low": 0.0, "> low": {"level": {"<= medium": 2.0, "> medium": 3.0}}}
    }
    assert [rule.conditions for rule in path_rules(model)] == [
        ("level <= low",), ("low < level <= medium",), ("level > medium",)
    ]  # fmt: skip
    rows = pd.DataFrame({"level": ["high", "beyond", None]})
    told, unknown, missing = map(str, explain(model, rows))
    assert "level > low: mean 2.5 of 8\n      level > medium: mean 3 of 4" in told
    assert unknown == missing
    assert "(level is missing or unknown)" in missing


def test_a_ranking_names_its_cuts():
    whole, labels, _ = ordered_table(missing=False)
    ranking = rank_features(whole, labels)
    place = ranking.names.tolist().index("level")
    assert not ranking.categorical[place]
    assert ranking.cuts[place].tolist() == [0.5]
    assert repr(ranking).splitlines()[1 + place].endswith("<= very low")
    assert ranking.to_frame().loc["level", "cuts"] == ["very low"]


def test_rules_have_the_names_of_levels():
    model = C45Classifier(pruning=None).fit(X, LABELS)
    rules = to_rules(model, X, LABELS).rules_
    text = rules.to_text()
    assert "level <= very low" in text
    conditions = [c for rule in json.loads(rules.to_json())["rules"] for c in rule["conditions"]]
    found = [c for c in conditions if c["feature"] == "level"]
    assert {c["operator"] for c in found} == {"in"}
    assert ["very low"] in [c["values"] for c in found]
