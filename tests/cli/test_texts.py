"""Tables as text in a terminal."""

from gputree import C45Classifier, save_model
from gputree._texts import aligned, display_width, tabled
from gputree.datasets import load_golf


def test_wide_characters_take_two_columns():
    assert [display_width(text) for text in ("ab", "\u7eb9\u7406", "e\u0301", "")] == [2, 4, 1, 0]
    assert aligned({"\u7eb9\u7406": "a", "x": "b"}).splitlines() == ["\u7eb9\u7406  a", "x     b"]
    rows = [["", "\u597d\u74dc", "n"], ["\u5426", "3", "10"]]
    assert tabled(rows).splitlines() == ["    \u597d\u74dc   n", "\u5426     3  10"]


def test_a_tree_of_one_leaf_has_no_rule_for_missing_values(gputree, tmp_path):
    golf = load_golf()
    path = tmp_path / "model"
    save_model(C45Classifier(min_samples_leaf=100).fit(golf.data, golf.target), path)
    lines = gputree("show", path)[1].splitlines()
    assert lines[1] == "All rows get the same prediction."
