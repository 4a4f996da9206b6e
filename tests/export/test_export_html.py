"""The page of a tree: what its script reads, and that nothing escapes from its texts."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from multiway_trees import multiway_cases

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.export import export_html, export_text
from gputree.export.palette import class_color
from gputree.pruning import CostComplexity

IRIS = load_iris()
GOLF = load_golf()


def data_of(page: str) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(text)


@given(multiway_cases(max_rows=0))
def test_every_node_is_in_the_page(case):
    tree, _ = case
    data = data_of(export_html(tree))
    assert data["parent"] == tree.parent.tolist()
    assert data["below"][0] == tree.n_nodes - 1
    per_node = ["depth", "weight", "below", "condition", "prediction", "support", "bars", "details"]
    assert {len(data[key]) for key in per_node} == {tree.n_nodes}
    for node, bars in enumerate(data["bars"]):
        assert sum(part for part, _ in bars) == pytest.approx(1.0, abs=1e-3)
        shares = tree.value[node, 0]
        assert [k for _, k in bars] == np.flatnonzero(shares).tolist()


def predicted(data: dict, row: dict, alpha: float = -1.0) -> dict[int, float]:
    """Nodes in which the page has a row end, with its shares; `row` is by places of columns."""
    ends, rest = {}, [(0, 1.0)]
    children = [[] for _ in data["parent"]]
    for node, parent in enumerate(data["parent"][1:], 1):
        children[parent].append(node)
    while rest:
        node, share = rest.pop()
        below, cost = children[node], data["alpha"][node]
        way = -2
        if cost is not None and cost > alpha:
            column, threshold, ordinals, missing, other = data["tests"][node]
            x = row[column]
            if x is None:
                way = missing
            elif threshold is not None:
                way = int(x > threshold)
            else:
                way = ordinals.get(str(x), other)
        whole = sum(data["weight"][child] for child in below)
        if way >= 0:
            rest.append((below[way], share))
        elif way == -1 and whole > 0:
            rest += [(child, share * data["weight"][child] / whole) for child in below]
        else:
            ends[node] = ends.get(node, 0.0) + share
    return ends


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), C45Classifier(), ID3Classifier()])
def test_rows_that_are_tried_go_where_prediction_sends_them(model):
    """Numbers, categories, ordered ones, missing values, categories that no node has."""
    rng = np.random.default_rng(0)
    n = 120
    table = pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(1)),
            "word": rng.choice(["a", "b", "c", None], n),
            "level": pd.Categorical(rng.choice(["low", "mid", "top"], n), ordered=True),
            "gap": np.where(rng.random(n) < 0.5, np.nan, 1.0),
        }
    )
    if isinstance(model, ID3Classifier):
        table = table[["word", "level"]].fillna("b")
    y = rng.choice(["no", "yes"], n)
    model.fit(table, y)
    data = data_of(export_html(model))
    words = {name: choices for name, choices, _, _ in data["columns"]}
    expected = model.predict_proba(table)
    for i in range(n):
        row = {}
        for place, (name, choices, low, high) in enumerate(data["columns"]):
            x = table[name].iloc[i]
            assert low <= high
            row[place] = None if pd.isna(x) else choices.index(x) if choices else x
        found = np.zeros(2)
        for node, share in predicted(data, row).items():
            found += share * model.tree_.value[node, 0]
        np.testing.assert_allclose(found, expected[i], atol=1e-12)
    assert words["word"] == ["a", "b", "c"]


def test_the_slider_shows_the_prunings_of_the_path():
    model = DecisionTreeClassifier().fit(IRIS.data, IRIS.target)
    data = data_of(export_html(model))
    for alpha in {-1.0, *filter(None, data["alpha"])}:
        pruned = model.tree_ if alpha < 0 else CostComplexity(alpha).prune(model).tree_
        leaves = set()
        for x in IRIS.data:
            row = {p: x[int(name[1:])] for p, (name, *_) in enumerate(data["columns"])}
            leaves |= predicted(data, row, alpha).keys()
        assert len(leaves) == pruned.n_leaves


def test_words_are_those_of_the_text():
    model = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
    data = data_of(export_html(model, feature_names=IRIS.feature_names))
    text = export_text(model, feature_names=IRIS.feature_names)
    for condition in data["condition"][1:]:
        assert condition in text
    assert data["legend"] == [["setosa", 0], ["versicolor", 1], ["virginica", 2]]
    assert data["details"][0][0] == ["setosa", "50", "33.3%"]
    assert data["about"] == ["classification", 3, 2, 150.0]


def test_regression_bars_are_means_between_the_extremes():
    cars = load_auto_mpg()
    model = DecisionTreeRegressor(max_depth=2).fit(cars.data, cars.target)
    parts = [bars[0][0] for bars in data_of(export_html(model))["bars"]]
    assert min(parts) == 0.0
    assert max(parts) == 1.0
    assert parts[0] == pytest.approx(
        (model.tree_.statistics[0, 0] - model.tree_.statistics.min())
        / np.ptp(model.tree_.statistics),
        abs=1e-4,
    )


def test_no_text_is_markup():
    evil = "</script><script>alert(1)</script>&amp;"
    words = np.where(GOLF.data[:, :1] == "sunny", evil, "b")
    model = DecisionTreeClassifier().fit(words, np.where(GOLF.target == "no", evil, "fine"))
    page = export_html(model, feature_names=[evil], title=evil)
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    data = data_of(page)
    assert evil in data["prediction"]
    assert any(evil in condition for condition in data["condition"])


def test_nothing_is_asked_of_the_network():
    page = export_html(DecisionTreeClassifier().fit(IRIS.data, IRIS.target))
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}  # a name
    assert not re.search(r"\b(src|href)=|@import|url\((?!#)|fetch\(", page)


def test_a_page_is_saved_and_shown(tmp_path):
    page = export_html(DecisionTreeClassifier().fit(IRIS.data, IRIS.target))
    page.save(tmp_path / "tree.html")
    assert (tmp_path / "tree.html").read_text("utf-8") == page
    assert list(tmp_path.iterdir()) == [tmp_path / "tree.html"]
    shown = page._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<script" not in shown
    assert "characters" in repr(page)


def test_large_trees_open_a_few_levels():
    rng = np.random.default_rng(0)
    model = DecisionTreeClassifier().fit(rng.normal(size=(900, 3)), rng.integers(0, 2, 900))
    data = data_of(export_html(model))
    assert len(data["parent"]) > 500
    assert 2 <= sum(depth <= data["open"] for depth in data["depth"]) <= 40


def test_colours_differ():
    colors = [class_color(k) for k in range(40)]
    assert len(set(colors)) == 40
    assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)


def test_losses_of_validation_rows():
    X, y = load_auto_mpg(return_X_y=True)
    model = DecisionTreeRegressor(max_depth=3).fit(X[::2], y[::2])
    found = data_of(export_html(model, validation=(X[1::2], y[1::2])))["validation"]
    squares = (model.predict(X[1::2]) - y[1::2]) ** 2
    assert found["measure"] == "mean squared error"
    assert sum(found["stopped"]) == pytest.approx(squares.sum())
    root = float(model.tree_.statistics[0, 0])
    assert found["as_leaf"][0] == pytest.approx(((y[1::2] - root) ** 2).sum())
    with pytest.raises(ValueError, match="takes a fitted estimator"):
        export_html(model.tree_, validation=(X, y))
    with pytest.raises(ValueError, match="language must be one of en, zh"):
        export_html(model, language="fr")
    assert '<html lang="zh">' in export_html(model, language="zh")
    assert '<html lang="">' in export_html(model)
