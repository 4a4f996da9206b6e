"""Trees in DOT: what Graphviz draws is what the text says."""

import re
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from multiway_trees import multiway_cases

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier
from gputree.datasets import load_golf, load_iris
from gputree.export import export_graphviz
from gputree.export.describe import describe

IRIS = load_iris()
GOLF = load_golf()
SVG = "{http://www.w3.org/2000/svg}"
NASTY = ['a <b>\\N & "q"', "{x|y}\\l", "&lt;", "ü"]


def drawn(text):
    """The lines of text of each node and edge, as Graphviz draws them."""
    if shutil.which("dot") is None:
        pytest.skip("graphviz is not installed")
    done = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True)
    assert not done.stderr
    found = {}
    for group in ElementTree.fromstring(done.stdout).iter(f"{SVG}g"):
        if group.get("class") in ("node", "edge"):
            title = group.findtext(f"{SVG}title")
            found[title] = [(line.text or "").strip() for line in group.iter(f"{SVG}text")]
    return found


def statements(text):
    """Nodes and edges with their attributes."""
    pairs = re.findall(r"^(\d+(?: -> \d+)?) \[(.*)\];$", text, re.M)
    return dict(pairs)


@given(multiway_cases(max_rows=0))
def test_a_node_an_edge(case):
    tree, _ = case
    found, words = statements(export_graphviz(tree)), describe(tree)
    edges = {f"{tree.parent[node]} -> {node}" for node in range(1, tree.n_nodes)}
    assert set(found) == edges | set(map(str, range(tree.n_nodes)))
    for node in range(tree.n_nodes):
        assert f"{words.answer(node)} ({words.support(node)})" in found[str(node)]
    for node in range(1, tree.n_nodes):
        condition = words.condition(node)
        says = condition.or_missing or condition.operand == "missing"
        assert ("style=dashed" in found[f"{tree.parent[node]} -> {node}"]) == says


def test_graphviz_draws_the_words():
    data = np.where(GOLF.data == "sunny", NASTY[0], GOLF.data)
    data[data == "high"] = NASTY[1]
    model = ID3Classifier().fit(data, np.where(GOLF.target == "no", NASTY[2], NASTY[3]))
    found = drawn(export_graphviz(model, feature_names=[*NASTY[:3], "wind"]))
    words = describe(model, feature_names=[*NASTY[:3], "wind"])
    assert len(found) == 2 * model.tree_.n_nodes - 1
    for node in range(model.tree_.n_nodes):
        feature = model.tree_.feature[node]
        names = [words.feature_names[feature]] if feature >= 0 else []
        assert found[str(node)] == [*names, f"{words.answer(node)} ({words.support(node)})"]
        if node:
            operand = words.condition(node).operand
            assert found[f"{model.tree_.parent[node]}->{node}"] == [operand]


def test_missing_values():
    golf = load_golf()
    golf.data[:3, 0] = None
    found = drawn(export_graphviz(ID3Classifier().fit(golf.data, golf.target)))
    assert ["missing"] in found.values()
    values = np.array([[1.0], [2.0], [3.0], [np.nan]])
    model = DecisionTreeClassifier().fit(values, [0, 1, 1, 0])
    assert drawn(export_graphviz(model))["0->1"] == ["<= 1.5 or missing"]


def test_depth_direction_and_width():
    model = DecisionTreeClassifier().fit(IRIS.data, IRIS.target)
    text = export_graphviz(model, max_depth=1, rotate=True, lines_by_weight=True)
    found = statements(text)
    assert "rankdir=LR;" in text
    assert set(found) == {"0", "1", "2", "0 -> 1", "0 -> 2"}
    assert "..." in found["2"]
    assert "..." not in found["1"]
    assert "penwidth=2.67" in found["0 -> 1"]  # a third of the rows
    assert "penwidth=5.33" in found["0 -> 2"]
    with pytest.raises(ValueError, match="'max_depth' parameter of export_graphviz"):
        export_graphviz(model, max_depth=-1)


def test_long_sets():
    words = np.array([f"w{i:02}" for i in range(60)], object)
    model = DecisionTreeRegressor(max_depth=1, categorical_split="ordered")
    model.fit(words[:, None], np.arange(60) >= 30.0)
    short, long = (drawn(export_graphviz(model, all_categories=a))["0->1"] for a in (False, True))
    assert short[-1].endswith("... 10 more")
    assert " ".join(long) == ", ".join(words[:30])
    assert max(map(len, long)) <= 40
