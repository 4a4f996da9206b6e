"""Estimators in a notebook: scikit-learn's diagram, and the model below."""

import html
import re

import numpy as np
import pytest
import sklearn

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    export_text,
)
from gputree.datasets import load_golf, load_iris

IRIS = load_iris()


def below(estimator) -> str:
    """The text of the model, as a browser shows it."""
    found = re.findall(r"<pre style=[^>]*>(.*?)</pre>", estimator._repr_html_(), re.S)
    assert len(found) == 1
    assert "<" not in found[0]
    return html.unescape(found[0])


def test_a_small_tree_is_shown_whole():
    tree = DecisionTreeClassifier(max_depth=3).fit(IRIS.data, IRIS.target)
    page = tree._repr_html_()
    assert below(tree) + "\n" == export_text(tree)
    assert f"<summary>{tree.tree_.n_nodes} nodes, {tree.get_n_leaves()} leaves, depth 3<" in page
    assert "DecisionTreeClassifier" in page.partition("<details open>")[0]  # the diagram


def test_a_large_tree_is_shown_to_a_depth():
    X = np.random.default_rng(0).normal(size=(300, 3))
    tree = DecisionTreeRegressor().fit(X, X.sum(axis=1))
    lines = below(tree).splitlines()
    assert 2 <= len(lines) <= 41
    assert "more nodes" in lines[-1]


def test_rules_are_shown():
    golf = load_golf()
    rules = C45Rules().fit(golf.data, golf.target)
    assert below(rules) == rules.rules_.to_text()


def cells(page: str) -> list[list[str]]:
    """Rows of the tables of a page, as a browser shows them."""
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return [[html.unescape(c) for c in re.findall(r"<t[hd]>(.*?)</t[hd]>", row)] for row in rows]


def test_rules_are_a_table(monkeypatch):
    golf = load_golf()
    rules = C45Rules().fit(golf.data, np.where(golf.target == "yes", "<b>", golf.target)).rules_
    head, *lines, default = cells(rules._repr_html_())
    assert head == ["rule", "if", "class", "confidence", "rows/errors"]
    assert default[:3] == ["default", "no rule", str(rules.classes[rules.default])]
    for line, (place, what, label, confidence, weight) in zip(
        str(rules).splitlines()[:-1], lines, strict=True
    ):
        assert line == f"Rule {place}: {what} -> class {label} [{confidence}] ({weight})"
    assert len(lines) == len(rules) > 2
    assert "<b>" not in rules._repr_html_()
    monkeypatch.setattr("gputree.rules.ruleset.MOST_SHOWN", 1)
    assert cells(rules._repr_html_())[2] == ["...", f"{len(rules) - 1} more", "", "", ""]


def test_a_report_is_tables():
    tree = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
    report = tree.report(IRIS.data, IRIS.target)
    words = [line.split() for line in str(report).splitlines() if line]
    assert [" ".join(row).split() for row in cells(report._repr_html_())] == words
    assert report._repr_html_().count("<table>") == 4
    assert "<th>leaves" not in report._repr_html_()


@pytest.mark.parametrize("estimator", [C45Classifier(), C45Rules(), BoostedC45Classifier()])
def test_the_diagram_alone_before_fit(estimator):
    assert "<pre style" not in estimator._repr_html_()


def test_names_are_no_markup():
    evil = "</pre><script>alert(1)</script>"
    X = [[evil], [evil + "b"]] * 20
    tree = C45Classifier().fit(X, [evil, "&amp;"] * 20)
    page = tree._repr_html_()
    assert "<script>alert" not in page
    assert evil in below(tree)
    assert "&amp;" in below(tree)


def test_scikit_learn_decides_whether_html_is_shown():
    tree = DecisionTreeClassifier(max_depth=1).fit(IRIS.data, IRIS.target)
    with sklearn.config_context(display="text"):
        assert not hasattr(tree, "_repr_html_")
