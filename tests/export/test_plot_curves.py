"""Curves and bars about trees show the numbers that they are made of."""

import numpy as np
import pytest
from figures import any_overlap, close_figures  # noqa: F401
from matplotlib import pyplot
from sklearn.base import clone
from sklearn.utils import Bunch

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestRegressor,
    rank_features,
)
from gputree.datasets import load_auto_mpg
from gputree.export import (
    plot_cp_table,
    plot_feature_ranking,
    plot_importance,
    plot_pruning_path,
    plot_tree,
)
from gputree.pruning import CostComplexityCV
from gputree.pruning import cp_table as of_tree
from gputree.pruning.cost_complexity import CP_TABLE

CARS = load_auto_mpg()


@pytest.mark.parametrize(
    "function", [plot_tree, plot_cp_table, plot_pruning_path, plot_importance, plot_feature_ranking]
)
def test_without_matplotlib_the_extra_is_named(function, monkeypatch):
    def absent(name):
        raise ImportError(name)

    argument = cp_table()
    if function in (plot_tree, plot_importance):
        argument = DecisionTreeRegressor(max_depth=1).fit(CARS.data, CARS.target)
    if function is plot_feature_ranking:
        argument = rank_features(CARS.data, CARS.target)
    monkeypatch.setattr("importlib.import_module", absent)
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
    ax = plot_cp_table(cp_table())  # the minimum error is 0.6, and its bar ends at 0.702
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
        assert not any_overlap(extents)


def test_a_table_of_one_tree():
    table = cp_table(1)
    ax = plot_cp_table(table, ax=pyplot.subplots()[1])
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1"]


@pytest.mark.parametrize("wrong", [CostComplexityCV(), [[1.0, 2.0]], np.zeros(3)])
def test_what_is_no_table(wrong):
    with pytest.raises(ValueError, match="plot_cp_table needs the cp_table_ of a CostComplexityCV"):
        plot_cp_table(wrong)


# -------------------------------------------------------------- pruning path
def test_the_path_of_an_estimator():
    path = DecisionTreeRegressor(min_samples_leaf=20).cost_complexity_pruning_path(
        CARS.data, CARS.target
    )
    (line,) = plot_pruning_path(path).lines
    assert line.get_drawstyle() == "steps-post"  # from an alpha on, what is left after it
    assert line.get_xdata().tolist() == path.ccp_alphas.tolist()
    assert line.get_ydata().tolist() == (path.impurities / path.impurities[-1]).tolist()


def test_the_path_with_the_error_of_rows_held_out():
    table = cp_table()
    table["alpha"] = np.append(0.7 ** np.arange(59), 0.0)
    table["relative_error"] = np.linspace(1, 0, 60)
    ax = plot_pruning_path(table)
    steps = ax.lines[0]
    assert steps.get_xdata().tolist() == table["alpha"][::-1].tolist()
    assert steps.get_ydata().tolist() == table["relative_error"][::-1].tolist()
    held_out, _, (bars,) = ax.containers[0]
    assert held_out.get_ydata().tolist() == table["xerror"].tolist()
    assert held_out.get_drawstyle() == "steps-pre"  # from the largest alpha down
    low, high = np.array([segment[:, 1] for segment in bars.get_segments()]).T
    np.testing.assert_allclose(high - low, 2 * table["xstd"])
    entries = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {'rule="min": 65 leaves', 'rule="1se": 37 leaves'} < set(entries)


def test_leaves_stand_above_their_alphas():
    pruner = CostComplexityCV(random_state=0)
    X, y = CARS.data[::2], CARS.target[::2] > 25
    pruner.prune(DecisionTreeClassifier().fit(X, y), X, y)
    ax = plot_pruning_path(pruner)
    upper = ax.figure.axes[1]
    ax.figure.canvas.draw()
    assert upper.get_xlim() == ax.get_xlim()
    labels = [int(text.get_text()) for text in upper.get_xticklabels()]
    leaves = dict(zip(pruner.cp_table_["alpha"], pruner.cp_table_["n_leaves"], strict=True))
    assert labels == [leaves[alpha] for alpha in upper.get_xticks()]
    extents = [text.get_window_extent() for text in upper.get_xticklabels()]
    assert not any_overlap(extents)


@pytest.mark.parametrize(
    "alphas",
    [
        [0.0, 0.0067, 0.013, 0.44],  # a power of ten within the linear part
        [0.0, 1e-5, 1e-3, 50.0],
        [0.0, 1e-14, 1e3],
        [0.0, 0.02, 0.03],
        [0.0, 0.01],
        [0.5, 0.7, 80.0],
        [0.0],
    ],
)
def test_labels_of_alphas_do_not_overlap(alphas):
    path = Bunch(ccp_alphas=np.array(alphas), impurities=np.arange(1.0, len(alphas) + 1))
    ax = plot_pruning_path(path)
    ax.figure.canvas.draw()
    labels = [text for text in ax.get_xticklabels() if text.get_text()]
    assert labels
    extents = [text.get_window_extent() for text in labels]
    assert not any_overlap(extents)


@pytest.mark.parametrize("wrong", [CostComplexityCV(), [1.0], np.zeros(3)])
def test_what_is_no_path(wrong):
    with pytest.raises(ValueError, match="plot_pruning_path needs what cost_complexity_pruning_p"):
        plot_pruning_path(wrong)


def test_a_table_without_cross_validation():
    table = of_tree(DecisionTreeClassifier(max_depth=3).fit(CARS.data, CARS.target > 25))
    with pytest.raises(ValueError, match="draws cross-validated errors, and this table has none"):
        plot_cp_table(table)
    ax = plot_pruning_path(table)
    (line,) = ax.lines
    assert line.get_ydata().tolist() == table["relative_error"][::-1].tolist()
    assert ax.figure.axes[1].get_xlabel() == "leaves"


# ---------------------------------------------------------------- importance
@pytest.mark.parametrize("model", [DecisionTreeRegressor(), RandomForestRegressor(5)], ids=repr)
def test_importance(model):
    model = clone(model).set_params(min_samples_leaf=20).fit(CARS.data, CARS.target)
    ax = plot_importance(model, feature_names=CARS.feature_names)
    expected = np.sort(model.feature_importances_)[::-1]
    assert [bar.get_width() for bar in ax.patches] == expected.tolist()
    names = [text.get_text() for text in ax.get_yticklabels()]
    order = np.argsort(-model.feature_importances_, kind="stable")
    assert names == [CARS.feature_names[j] for j in order]
    assert ax.yaxis_inverted()
    assert ax.get_xlabel() == "importance"


def test_importance_by_permutation():
    """Plot the result of a forest, which has names, and scikit-learn's, which has none."""
    frame = pytest.importorskip("pandas").DataFrame(CARS.data, columns=CARS.feature_names)
    forest = RandomForestRegressor(n_estimators=3, min_samples_leaf=20, random_state=0)
    found = forest.fit(frame, CARS.target).oob_permutation_importance(frame, CARS.target)
    found.importances_mean[2] = -1.0
    order = np.argsort(-found.importances_mean)
    theirs = Bunch(importances_mean=found.importances_mean, importances_std=found.importances_std)
    for result, names in ((found, CARS.feature_names), (theirs, [f"x{f}" for f in range(7)])):
        ax = plot_importance(result, most=6)
        assert [text.get_text() for text in ax.get_yticklabels()] == [names[f] for f in order[:6]]
        assert [b.get_width() for b in ax.patches] == found.importances_mean[order[:6]].tolist()
        (lines,) = (c for c in ax.containers if hasattr(c, "has_xerr"))
        ends = [segment[:, 0].tolist() for segment in lines[2][0].get_segments()]
        spread = found.importances_std[order[:6]]
        expected = np.stack(
            [found.importances_mean[order[:6]] + s * spread for s in (-1, 1)], axis=1
        )
        np.testing.assert_allclose(ends, expected)
        assert ax.get_xlabel() == "increase of the error when permuted (and 1 more columns)"
    ax = plot_importance(found, feature_names=list("abcdefg"), most=None)
    assert ax.get_xlim()[0] < -1.0
    assert {text.get_text() for text in ax.get_yticklabels()} == set("abcdefg")
    with pytest.raises(ValueError, match="feature_names must contain 7 elements, got 1"):
        plot_importance(found, feature_names=["a"])


def test_the_most_important_alone():
    model = DecisionTreeRegressor(min_samples_leaf=20).fit(CARS.data, CARS.target)
    ax = plot_importance(model, most=2, ax=pyplot.subplots()[1])
    assert len(ax.patches) == 2
    assert ax.get_xlabel() == "importance (and 5 more columns)"
    with pytest.raises(ValueError, match="'most' parameter of plot_importance must be an int"):
        plot_importance(model, most=0)


def test_importance_of_a_leaf():
    ax = plot_importance(DecisionTreeRegressor().fit([[1.0], [1.0]], [0.0, 1.0]))
    assert [bar.get_width() for bar in ax.patches] == [0.0]
