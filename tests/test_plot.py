"""Drawn trees say what the text says, and nothing lies on anything else."""

from itertools import combinations

import numpy as np
import pytest
from pruning_oracles import random_tree, tree_of_shape
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn_trees import Classifier, from_sklearn

from gputree import export
from gputree.export import export_text, plot_cp_table, plot_tree
from gputree.export.describe import describe
from gputree.pruning import CostComplexityCV
from gputree.pruning.cost_complexity_cv import CP_TABLE

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import colors, pyplot  # noqa: E402

IRIS = load_iris()
DIABETES = load_diabetes()
OVERLAP = 0.5  # pixels: borders of boxes are drawn on their edges


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


def iris_tree(**parameters):
    model = DecisionTreeClassifier(random_state=0, **parameters)
    return from_sklearn(model.fit(IRIS.data, IRIS.target))


def diabetes_tree(**parameters):
    model = DecisionTreeRegressor(random_state=0, **parameters)
    return from_sklearn(model.fit(DIABETES.data, DIABETES.target))


def multiway_tree(branches=5):
    return random_tree(np.random.default_rng(3), 12, branches, n_classes=3)


def boxes(ax):
    """The window extent of every box of a drawn tree."""
    ax.figure.canvas.draw()
    return [text.get_bbox_patch().get_window_extent() for text in ax.texts]


def overlap(a, b):
    return (
        min(a.x1, b.x1) - max(a.x0, b.x0) > OVERLAP and min(a.y1, b.y1) - max(a.y0, b.y0) > OVERLAP
    )


TREES = {
    "root alone": lambda: iris_tree().collapse(np.arange(17) == 0),
    "binary": iris_tree,
    "regression": lambda: diabetes_tree(max_depth=5),
    "multiway": multiway_tree,
    "many branches": lambda: multiway_tree(40),
    "spine": lambda: tree_of_shape([2, 0] * 30 + [0], np.ones((61, 2)), np.ones(61), np.ones(61)),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, None) for name in TREES),
        ("binary", (6, 4)),
        ("multiway", (8, 6)),
        ("regression", (9, 9)),
    ],
)
def test_nothing_overlaps_and_all_is_inside(name, size):
    tree = TREES[name]()
    ax = plot_tree(tree, ax=None if size is None else pyplot.subplots(figsize=size)[1])
    drawn, frame = boxes(ax), ax.get_window_extent()
    assert len(drawn) == tree.n_nodes
    assert not any(overlap(a, b) for a, b in combinations(drawn, 2))
    for box in drawn:
        assert frame.x0 - OVERLAP < box.x0 < box.x1 < frame.x1 + OVERLAP
        assert frame.y0 - OVERLAP < box.y0 < box.y1 < frame.y1 + OVERLAP


@pytest.mark.parametrize("tree", [iris_tree(), multiway_tree(), diabetes_tree(max_depth=3)])
def test_boxes_say_what_the_text_says(tree):
    labels = [text.get_text() for text in plot_tree(tree).texts]
    words = describe(tree)
    assert labels[0] == f"{words.answer(0)} ({words.support(0)})"
    text = export_text(tree)
    for node in range(1, tree.n_nodes):
        condition, answer = labels[node].split("\n")
        assert f"{condition}{f': {answer}' if tree.is_leaf[node] else ''}\n" in text


def test_children_are_right_of_their_parents_and_in_order():
    tree = multiway_tree()
    drawn = boxes(plot_tree(tree))
    for node in range(1, tree.n_nodes):
        parent = tree.parent[node]
        assert drawn[node].x0 > drawn[parent].x1
        if node > tree.first_child[parent]:
            assert drawn[node].y1 < drawn[node - 1].y0 + OVERLAP


def test_max_depth_leaves_out_what_is_below():
    labels = [text.get_text() for text in plot_tree(iris_tree(), max_depth=1).texts]
    assert labels == ["0 (150/100)", "x3 <= 0.8\n0 (50)", "x3 > 0.8\n1 (100/50) ..."]


def test_names():
    model = DecisionTreeClassifier(random_state=0, max_depth=1).fit(IRIS.data, IRIS.target)
    names = ["a", "b", "c", "price in $ of $"]
    ax = plot_tree(from_sklearn(model), feature_names=names, class_names=["u", "v", "w"])
    assert ax.texts[1].get_text() == "price in \\$ of \\$ <= 0.8\nu (50)"
    boxes(ax)  # dollars are no mathematics


def test_long_lines_are_cut_in_the_middle():
    tree = iris_tree(max_depth=1)
    ax = plot_tree(tree, feature_names=["", "", "", "begin" + "x" * 500 + "end"])
    condition = ax.texts[1].get_text().split("\n")[0]
    assert condition.startswith("beginx")
    assert condition.endswith("xend <= 0.8")
    assert len(condition) < 80


def test_colors_are_those_of_the_answer():
    strength = [
        1 - min(colors.to_rgb(t.get_bbox_patch().get_facecolor()))
        for t in plot_tree(iris_tree(max_depth=1)).texts
    ]
    assert strength[0] == 0  # three classes, equally many
    assert strength[1] > strength[2] > 0
    tree = diabetes_tree(max_depth=2)
    faces = [t.get_bbox_patch().get_facecolor() for t in plot_tree(tree).texts]
    by_mean = np.argsort(tree.statistics[:, 0])
    assert np.all(np.diff([faces[node][0] for node in by_mean]) < 0)


def test_axes_of_the_user_are_kept():
    figure, (left, right) = pyplot.subplots(1, 2)
    assert plot_tree(iris_tree(), ax=right) is right
    assert not left.texts
    assert tuple(figure.get_size_inches()) == (6.4, 4.8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": -1}, "max_depth must be None or an int >= 0, got -1"),
        ({"feature_names": ["a"]}, "feature_names must contain 4 elements, got 1"),
        ({"decimals": -1}, "decimals must be None or an int >= 0"),
    ],
)
def test_bad_calls(options, message):
    with pytest.raises(ValueError, match=message):
        plot_tree(iris_tree(), **options)


def test_a_tree_too_large_for_a_figure():
    shape = [2] * 600 + [0] * 601
    tree = tree_of_shape(shape, np.ones((1201, 2)), np.ones(1201), np.ones(1201))
    with pytest.raises(ValueError, match="at most 500 leaves, got 601"):
        plot_tree(tree)
    assert len(plot_tree(tree, max_depth=3).texts) == 15


def test_not_fitted():
    with pytest.raises(NotFittedError):
        plot_tree(Classifier())


@pytest.mark.parametrize("function", [plot_tree, plot_cp_table])
def test_without_matplotlib_the_extra_is_named(function, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", absent)
    argument = iris_tree() if function is plot_tree else cp_table()
    message = rf'{function.__name__} needs matplotlib.*pip install "gputree-learn\[plot\]"'
    with pytest.raises(ImportError, match=message):
        function(argument)


# ------------------------------------------------------------------ cp table
def cp_table(n_trees=60):
    """Trees of 1, 2, 5, 10, ... leaves, whose error falls and rises again."""
    step = np.arange(n_trees)
    table = np.zeros(n_trees, CP_TABLE)
    table["n_leaves"] = 1 + step**2
    table["cp"] = np.append(0.7 ** step[1:], 0.0)
    table["xerror"] = 0.6 + 0.4 * np.abs(step - 8) / 8
    table["xstd"] = 0.11 - 0.001 * step
    return table


def test_cp_table_is_drawn_as_it_is():
    table = cp_table()
    pruner = CostComplexityCV()
    pruner.cp_table_ = table
    ax = plot_cp_table(pruner)
    line, _, (bars,) = ax.containers[0]
    np.testing.assert_array_equal(line.get_xdata(), table["n_leaves"])
    np.testing.assert_array_equal(line.get_ydata(), table["xerror"])
    low, high = np.array([segment[:, 1] for segment in bars.get_segments()]).T
    np.testing.assert_allclose(high - low, 2 * table["xstd"])
    best = np.argmin(table["xerror"])
    limit = ax.lines[1].get_ydata()
    assert set(limit) == {table["xerror"][best] + table["xstd"][best]}


def test_both_rules_are_marked():
    ax = plot_cp_table(cp_table())  # the least error is 0.6, its bar ends at 0.702
    entries = [text.get_text() for text in ax.get_legend().get_texts()]
    assert entries == ["least + 1 SE", 'rule="min": 65 leaves', 'rule="1se": 37 leaves']
    marks = [(int(mark.get_xdata()[0]), mark.get_ydata()[0]) for mark in ax.lines[-2:]]
    assert marks == [(65, 0.6), (37, pytest.approx(0.7))]


def test_labels_of_the_axes_name_trees_of_the_table():
    table = cp_table()
    ax = plot_cp_table(table)
    upper = ax.figure.axes[1]
    ax.figure.canvas.draw()
    leaves = [int(text.get_text()) for text in ax.get_xticklabels()]
    rows = np.searchsorted(table["n_leaves"], leaves)
    assert table["n_leaves"][rows].tolist() == leaves
    shown = [float(text.get_text()) for text in upper.get_xticklabels()]
    assert shown[0] == np.inf
    assert np.all(np.array(shown[1:]) <= table["cp"][rows[1:] - 1] * 1.05)
    assert np.all(np.array(shown[1:]) >= table["cp"][rows[1:]] * 0.95)
    for axes in (ax, upper):
        extents = [text.get_window_extent() for text in axes.get_xticklabels()]
        assert not any(overlap(a, b) for a, b in combinations(extents, 2))


def test_a_table_of_one_tree():
    table = cp_table(1)
    ax = plot_cp_table(table, ax=pyplot.subplots()[1])
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1"]


@pytest.mark.parametrize("wrong", [CostComplexityCV(), [[1.0, 2.0]], np.zeros(3)])
def test_what_is_no_table(wrong):
    with pytest.raises(ValueError, match="plot_cp_table needs the cp_table_ of a CostComplexityCV"):
        plot_cp_table(wrong)


def test_public_names():
    assert {"plot_tree", "plot_cp_table"} <= set(export.__all__)
