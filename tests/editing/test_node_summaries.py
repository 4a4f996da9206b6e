"""Summaries of nodes are those of rpart, and surrogates those of a naive search."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.base.dtypes import SUBSET_SPLIT, THRESHOLD_SPLIT
from gputree.datasets import load_auto_mpg, load_iris
from gputree.editing import TreeEditor, alternatives
from gputree.editing.node_summaries import node_summaries

# rpart 4.1.19 with cp=0, minsplit=2, minbucket=5, maxdepth=3, usesurrogate=0 and up to 9 of each:
# nodes with their rows, complexity, and rows of fit$splits: column, improve (agree of surrogates),
# ncat (-1 where lower values go left), index, adj, count, categories on the left.
RPART = json.loads(Path(__file__).with_name("rpart_summaries.json").read_text("utf-8"))


def models():
    iris, cars = load_iris(), load_auto_mpg()
    limits = {"max_depth": 3, "min_samples_leaf": 5, "device": "cpu"}
    yield "iris", DecisionTreeClassifier(**limits), iris
    # horsepower lacks values, which rpart leaves out of its gains; origin has categories
    cars.data = np.delete(cars.data, cars.feature_names.index("horsepower"), axis=1)
    cars.feature_names.remove("horsepower")
    yield "auto_mpg", DecisionTreeRegressor(categorical_features=[5], **limits), cars


def column_of(condition):
    return int(re.match(r"x(\d+)", condition)[1])


@pytest.mark.parametrize("case", list(models()), ids=lambda case: case[0])
def test_the_figures_of_rpart(case):
    name, model, table = case
    editor = TreeEditor(model, np.asarray(table.data, np.float64), table.target)
    found = {one.number: one for one in node_summaries(editor, most=9)}
    names = [column.replace(" ", ".") for column in table.feature_names]
    ours, compared = {1: 0}, 0
    for node in RPART[name]:  # parents first
        if node["node"] not in ours:
            continue
        one = found[ours[node["node"]]]
        swapped = node["primary"][0][2] == 1
        for side, (child, _) in enumerate(one.children):
            ours[2 * node["node"] + (side ^ swapped)] = child
        assert one.summary["rows"] == node["n"]
        assert one.complexity == pytest.approx(node["complexity"], rel=1e-9)
        improve = {column_of(text): value for text, value, missing in one.primary if missing == 0}
        listed = {names.index(row[0]): row for row in node["primary"] if row[5] == node["n"]}
        for f, row in listed.items():
            assert improve[f] == pytest.approx(row[1], rel=1e-9)
        assert column_of(one.primary[0][0]) == names.index(node["primary"][0][0])
        agreed = {column_of(s.condition): (s.agree, s.adj) for s in one.surrogates}
        theirs = {names.index(row[0]): (row[1], row[4]) for row in node["surrogate"]}
        assert agreed.keys() == theirs.keys()
        for f, figures in theirs.items():
            assert agreed[f] == pytest.approx(figures, rel=1e-9)
        compared += 1
    assert compared >= 3


def naive_agreement(values, first, weight):
    """The highest weight that agrees, over every threshold and both directions."""
    best = -np.inf
    for cut in np.unique(values[~np.isnan(values)])[:-1]:
        known = ~np.isnan(values)
        left = values <= cut
        if min((left & known).sum(), (~left & known).sum()) >= 2:
            for side in (left, ~left):
                best = max(best, weight[known & (side == first)].sum())
    return best


@given(st.integers(0, 10**6), st.booleans())
def test_surrogates_agree_as_the_best_of_all_cuts(seed, weighted):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(60, 4)), 1)
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.integers(1, 4, 60).astype(float) if weighted else None
    editor = TreeEditor(DecisionTreeClassifier(max_depth=1, device="cpu"), X, y, weight)
    tree = editor.estimator.tree_
    weight = np.ones(60) if weight is None else weight
    f = int(tree.feature[0])
    first, known = X[:, f] <= tree.threshold[0], ~np.isnan(X[:, f])
    total = weight[known].sum()
    most = max(weight[known & first].sum(), weight[known & ~first].sum())
    expected = {}
    for other in set(range(4)) - {f}:
        best = naive_agreement(X[known, other], first[known], weight[known])
        if best > most:
            expected[other] = best / total
    (one,) = node_summaries(editor)
    found = {column_of(s.condition): s.agree for s in one.surrogates}
    assert found == pytest.approx(expected)


def test_the_text_and_other_trees():
    X, y = load_iris(return_X_y=True)
    text = str(next(node_summaries(TreeEditor(DecisionTreeClassifier(max_depth=2), X, y))))
    assert "Node 0: 150 rows, complexity 0.5" in text
    assert "x1 > 3.35   agree=0.833  adj=0.500" in text
    with pytest.raises(ValueError, match="not C45Classifier"):
        next(node_summaries(TreeEditor(C45Classifier(), X, y)))


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_splits_of_a_node_without_impurity_gain_nothing(kind):
    X, y = np.arange(8.0).reshape(-1, 2), np.ones(4, int)
    editor = TreeEditor(kind(forced_splits={"feature": 0, "threshold": 2.0}), X, y)
    (one,) = node_summaries(editor)
    assert (one.complexity, one.primary) == (0.0, [("x0 <= 2", 0.0, 0)])


# ----------------- sides of rows by splits, counted row by row; and agreements of splits in groups
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sides_are_those_of_each_row(dtype, monkeypatch):
    rng = np.random.default_rng(1)
    n = 2 * alternatives.BLOCK_ROWS + 9  # blocks of which the last is not full
    values = np.column_stack([rng.normal(size=n), rng.integers(0, 5, n)]).astype(dtype)
    values[rng.random(values.shape) < 0.1] = np.nan
    rows = np.flatnonzero(rng.random(n) < 0.9)
    cut = float(np.nanmedian(values[:, 0])) + 1e-12  # not a float32
    categories = np.array([[], [2], [0, 4]], dtype=object)
    splits = SimpleNamespace(
        feature=np.array([0, 1, 1]),
        threshold=np.array([cut, np.nan, np.nan]),
        split_kind=np.array([THRESHOLD_SPLIT, SUBSET_SPLIT, SUBSET_SPLIT]),
        first_child=np.arange(3),
        categories=lambda child: np.array(categories[child], np.int32),
    )
    monkeypatch.setattr(alternatives, "FEW_CELLS", 7)
    sides = alternatives.sides_of(values, rows, [(splits, j) for j in range(3)], 3)
    firsts = [lambda x: x <= cut, lambda x: x == 2, lambda x: x in (0, 4)]
    for found, f, first in zip(sides, splits.feature, firsts, strict=True):
        expected = [
            alternatives.UNKNOWN
            if x != x
            else alternatives.FIRST
            if first(x)
            else alternatives.SECOND
            for x in map(float, values[rows, f])
        ]
        assert found.tolist() == expected


def test_splits_are_compared_in_groups_of_any_size(monkeypatch):
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(90, 5)), rng.random(90)
    editor = TreeEditor(DecisionTreeClassifier(max_depth=1), X, X[:, 1] > 0.2, weight)
    whole = list(editor.alternatives(0))
    assert len({one.agreement for one in whole}) == 5
    monkeypatch.setattr(alternatives, "GROUP", 2)
    assert list(editor.alternatives(0)) == whole
