"""The page of a tree: what its script reads, and that nothing escapes from its texts."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases

from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.export import export_html, export_text
from gputree.export.palette import class_color

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


def test_words_are_those_of_the_text():
    model = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
    data = data_of(export_html(model, feature_names=IRIS.feature_names))
    text = export_text(model, feature_names=IRIS.feature_names)
    for condition in data["condition"][1:]:
        assert condition in text
    assert data["legend"] == [["setosa", 0], ["versicolor", 1], ["virginica", 2]]
    assert data["details"][0][0] == ["setosa", "50", "33.3%"]
    assert data["about"] == "classification, 5 nodes, 3 leaves, depth 2, 150 rows"


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
    model = DecisionTreeClassifier().fit(rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000))
    data = data_of(export_html(model))
    assert len(data["parent"]) > 500
    assert 2 <= sum(depth <= data["open"] for depth in data["depth"]) <= 40


def test_colours_differ():
    colors = [class_color(k) for k in range(40)]
    assert len(set(colors)) == 40
    assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors)
