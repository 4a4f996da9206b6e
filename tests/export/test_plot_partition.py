"""The plane is divided where the tree divides it."""

import numpy as np
import pytest
from figures import close_figures  # noqa: F401
from hypothesis import given
from matplotlib import colors, pyplot
from multiway_trees import multiway_cases

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.datasets import load_auto_mpg, load_iris
from gputree.export import plot_partition
from gputree.export.palette import class_color, class_tints
from gputree.prediction import apply, class_distributions

IRIS = load_iris()
CARS = load_auto_mpg()


def mesh(ax):
    """The edges of the cells, and what is drawn in them."""
    drawn = ax.collections[0]
    places = drawn.get_coordinates()
    return places[0, :, 0], places[:, 0, 1], drawn.get_array()


@given(multiway_cases(max_rows=0))
def test_every_point_has_the_colour_of_its_answer(case):
    """Points at the cuts themselves, too: these belong to the cell below."""
    tree, _ = case
    try:
        ax = plot_partition(tree, (0, 3), at=np.zeros((1, 5)))
        x, y, drawn = mesh(ax)
        inside = [np.append((x[1:] + x[:-1]) / 2, x[1:]), np.arange(len(y) - 1.0)]
        points = np.zeros((inside[0].size * inside[1].size, 5))
        points[:, 0] = np.repeat(inside[0], inside[1].size)
        points[:, 3] = np.tile(inside[1], inside[0].size)
        column = np.searchsorted(x, points[:, 0], side="left") - 1
        found = np.asarray(drawn)[points[:, 3].astype(int), column]
        np.testing.assert_array_equal(found, class_tints(class_distributions(tree, points)))
    finally:
        pyplot.close("all")


def test_lines_part_the_leaves():
    X = IRIS.data[:, 2:]
    model = DecisionTreeClassifier(max_depth=3).fit(X, IRIS.target)
    ax = plot_partition(model, X=X, y=IRIS.target)
    for (x0, y0), (x1, y1) in ax.collections[1].get_segments():
        assert (x0 == x1) != (y0 == y1)
        middle = np.array([(x0 + x1) / 2, (y0 + y1) / 2])
        step = 1e-6 * np.array([x0 == x1, y0 == y1])
        before, after = apply(model.tree_, np.stack([middle - step, middle + step]))
        assert before != after
    points = ax.collections[2]
    np.testing.assert_array_equal(points.get_offsets(), X)
    expected = [class_color(k) for k in np.unique(IRIS.target, return_inverse=True)[1]]
    assert [colors.to_hex(c) for c in points.get_facecolors()] == expected
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["setosa", "versicolor", "virginica"]


def test_numbers_by_categories():
    rng = np.random.default_rng(0)
    city = np.array(["Bern", "Kyiv", "Lima"], object)[rng.integers(0, 3, 300)]
    x = rng.normal(size=300)
    table = np.column_stack([x.astype(object), city])
    table[::10, 1] = None
    model = C45Classifier().fit(table, (x > 0) ^ (city == "Lima"))
    ax = plot_partition(model, ("city", "heat"), X=table, feature_names=["heat", "city"])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["Bern", "Kyiv", "Lima"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("city", "heat")
    offsets = ax.collections[2].get_offsets()
    there = table[:, 1] != np.array(None)
    places = np.unique(city, return_inverse=True)[1][there]
    assert np.abs(offsets[:, 0] - places).max() < 0.5
    np.testing.assert_array_equal(offsets[:, 1], x[there])


def test_other_columns_have_the_values_of_a_row():
    model = DecisionTreeRegressor(min_samples_leaf=20).fit(CARS.data, CARS.target)
    with pytest.raises(ValueError, match=r"the tree also tests horsepower, .*pass at="):
        plot_partition(model, feature_names=CARS.feature_names)
    row = CARS.data[:1].copy()
    features = "weight", "displacement"
    ax = plot_partition(model, features, at=row, feature_names=CARS.feature_names)
    x, y, drawn = mesh(ax)
    for i, j in ((0, 0), (len(y) - 2, len(x) - 2), (1, 2)):
        row[0, 3], row[0, 1] = (x[j] + x[j + 1]) / 2, (y[i] + y[i + 1]) / 2
        assert np.asarray(drawn)[i, j] == model.predict(row)[0]
    with pytest.raises(ValueError, match="at must be a table of one row, got 2"):
        plot_partition(model, at=CARS.data[:2])


def test_targets_of_other_rows():
    X = IRIS.data[:, 2:]
    model = DecisionTreeClassifier(max_depth=2).fit(X, IRIS.target)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[150, 149\]"):
        plot_partition(model, X=X, y=IRIS.target[1:])
    with pytest.raises(ValueError, match="X is None: pass both"):
        plot_partition(model, y=IRIS.target)
    with pytest.raises(ValueError, match="labels that the tree was not grown on: 'rose'"):
        plot_partition(model, X=X[:2], y=["setosa", "rose"])
    model = DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"y must hold numbers, .* it holds 'setosa'"):
        plot_partition(model, X=X[:2], y=["setosa", "rose"])
    plot_partition(model, X=X[:2], y=["1.5", 2])


@pytest.mark.parametrize(
    "features", [(0, 0), (0, 4), ("a", "petal"), (0, -1), (0, 1, 2), 5, (None, 1), (0.5, 1)]
)
def test_columns_that_are_not_there(features):
    model = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, IRIS.target)
    with pytest.raises(ValueError, match="features must be two different columns"):
        plot_partition(model, features, feature_names=["a", "b", "c", "d"])


def test_more_cells_than_can_be_drawn(monkeypatch):
    monkeypatch.setattr("gputree.export.plot_plane._MOST_CELLS", 8)
    model = DecisionTreeClassifier().fit(IRIS.data[:, 2:], IRIS.target)
    with pytest.raises(ValueError, match=r"draws at most 8 cells, but .* into"):
        plot_partition(model)


def test_one_column():
    with pytest.raises(ValueError, match="needs two columns, and the tree has one"):
        plot_partition(DecisionTreeRegressor().fit([[1.0], [2.0]], [0.0, 1.0]))
