"""Drawn trees say what the text says, and nothing lies on anything else."""

import numpy as np
import pytest
from figures import OVERLAP, any_overlap, close_figures, overlap  # noqa: F401
from matplotlib import colors, pyplot
from pruning_oracles import random_tree, tree_of_shape
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn_trees import from_sklearn

from gputree import DecisionTreeRegressor as GputreeRegressor
from gputree.export import export_text, plot_tree
from gputree.export.describe import describe

IRIS = load_iris()
DIABETES = load_diabetes()


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


TREES = {
    "root alone": lambda: iris_tree().collapse(np.arange(17) == 0),
    "binary": iris_tree,
    "regression": lambda: diabetes_tree(max_depth=4),
    "multiway": multiway_tree,
    "many branches": lambda: multiway_tree(15),
    "spine": lambda: tree_of_shape(
        [2, 0] * 30 + [0], np.ones((61, 2)), np.ones(61), np.full(61, 2.0)
    ),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *((name, None) for name in TREES),
        ("binary", (6, 4)),
    ],
)
def test_nothing_overlaps_and_all_is_inside(name, size):
    tree = TREES[name]()
    ax = plot_tree(tree, ax=None if size is None else pyplot.subplots(figsize=size)[1])
    drawn, frame = boxes(ax), ax.get_window_extent()
    assert len(drawn) == tree.n_nodes
    assert not any_overlap(drawn)
    for box in drawn:
        assert frame.x0 - OVERLAP < box.x0 < box.x1 < frame.x1 + OVERLAP
        assert frame.y0 - OVERLAP < box.y0 < box.y1 < frame.y1 + OVERLAP
    parts, _ = bars(ax)
    assert not any(overlap(part, box) for part in parts for box in drawn)
    assert all(frame.y0 < part.y0 < part.y1 < frame.y1 for part in parts)
    if tree.task == "classification":
        assert not any_overlap(parts)


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
        ({"max_depth": -1}, "'max_depth' parameter of plot_tree must be an int .* Got -1"),
        ({"feature_names": "abcd"}, "'feature_names' parameter of .* array-like .* Got 'abcd'"),
        ({"ax": 3}, "'ax' parameter of plot_tree must be an object .* or None. Got 3"),
        ({"feature_names": ["a"]}, "feature_names must contain 4 elements, got 1"),
        ({"decimals": "x"}, "'decimals' parameter of plot_tree must be an int .* Got 'x'"),
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


# ------------------------------------------------------- bars, lines, long sets
def bars(ax):
    """Window extents and colours of the bars' parts."""
    ax.figure.canvas.draw()
    (drawn,) = ax.collections
    paths = [path.transformed(drawn.get_transform()) for path in drawn.get_paths()]
    return [path.get_extents() for path in paths], drawn.get_facecolors()


def test_bars_are_the_mix_of_the_classes():
    tree = iris_tree(max_depth=2)
    parts, colors_drawn = bars(plot_tree(tree))
    expected = [share for shares in tree.value[:, 0] for share in shares if share > 0]
    assert len(parts) == len(expected)
    lengths = np.array([part.width for part in parts])
    of = np.repeat(np.arange(tree.n_nodes), np.count_nonzero(tree.value[:, 0], axis=1))
    whole = np.bincount(of, lengths)[of]
    np.testing.assert_allclose(lengths / whole, expected, atol=1e-9)
    assert {colors.to_hex(c) for c in colors_drawn} == {"#1f77b4", "#ff7f0e", "#2ca02c"}


def test_bars_of_means_are_in_order():
    tree = diabetes_tree(max_depth=2)
    ax = plot_tree(tree)
    parts, _ = bars(ax)
    whole, spread, mean = parts[0::3], parts[1::3], parts[2::3]
    place = [(m.x0 + m.x1) / 2 - w.x0 for m, w in zip(mean, whole, strict=True)]
    width = np.array([w.width for w in whole])
    order = np.argsort(tree.value[:, 0, 0])
    assert (np.diff((np.array(place) / width)[order]) > 0).all()
    share = [s.width / w.width for s, w in zip(spread, whole, strict=True)]
    ratio = np.array(share) / np.sqrt(tree.impurity)
    np.testing.assert_allclose(ratio, ratio[0])


def test_no_bars():
    ax = plot_tree(iris_tree(), bars=False)
    assert not ax.collections


def test_lines_by_weight():
    tree = iris_tree(max_depth=2)
    widths = [line.get_linewidth() for line in plot_tree(tree, lines_by_weight=True).lines]
    np.testing.assert_allclose(widths, 8.0 * tree.weight[1:] / 150, rtol=0.01)
    assert len({line.get_linewidth() for line in plot_tree(tree).lines}) == 1


def test_all_categories():
    words = np.array([f"w{i:02}" for i in range(60)], object)
    model = GputreeRegressor(max_depth=2, categorical_split="ordered")
    model.fit(words[:, None], np.arange(60.0) ** 2)
    assert " ... " in plot_tree(model).texts[1].get_text()
    ax = plot_tree(model, all_categories=True)
    text = " ".join(label.get_text() for label in ax.texts).replace("\n", " ")
    assert "..." not in text
    for depth in (1, 2):
        of_depth = [ax.texts[n].get_text() for n in np.flatnonzero(model.tree_.depth == depth)]
        assert all(word in " ".join(of_depth) for word in words)
    drawn = boxes(ax)
    assert not any_overlap(drawn)
    assert max(len(line) for t in ax.texts for line in t.get_text().split("\n")) <= 60
