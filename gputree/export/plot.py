"""A tree, and the choice of its size by cross-validation, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._optional import require
from gputree.export.describe import Description, describe
from gputree.tree import Tree

_MOST_LEAVES = 500  # an inch holds two: beyond, images exceed what matplotlib can draw
_FONT_SIZE = 9.0  # points, where the figure may be as large as the tree
_ROW = 30.0  # points from leaf to leaf at that size: two lines of text and their box
_GAP = 30.0  # points between the columns of two depths, for the lines between boxes
_PAD = 0.35  # of the font size, between a text and its box
_STRENGTH = 0.55  # of the purest leaf's colour: black text stays readable on it
_LONGEST = 60  # letters of a line: sets of many categories are cut in the middle
_MOST_TICKS = 8  # labels of cp along the upper axis


class _Layout(NamedTuple):
    """Where the nodes of a tree stand, in points, from the upper left corner."""

    labels: list[str]
    left: NDArray[np.float64]
    middle: NDArray[np.float64]
    size: tuple[float, float]


def plot_tree(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int | None = None,
    decimals: int | None = 4,
    ax: Any = None,
) -> Any:
    """Draw a fitted tree, the root at the left and each leaf on a row of its own.

    Every box says the condition that leads to it, its answer and, in parentheses, its
    support, in the words of `export_text`. Its colour is that of the answer: the class,
    the stronger the purer, or the mean target, the stronger the greater.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    feature_names : sequence of str or None, default=None
        None takes the names seen in `fit`, else x0, x1, ...
    class_names : sequence of str or None, default=None
        In the order of `classes_`; None takes `classes_` itself. Unused in regression.
    max_depth : int or None, default=None
        Depth of the deepest nodes shown, the root's being 0; "..." stands for those below.
    decimals : int or None, default=4
        Decimals of numbers, or significant digits of those below 1; None writes
        them exactly.
    ax : matplotlib Axes or None, default=None
        Where to draw, in letters as small as it takes; set the size of its figure
        before. None makes a figure as large as the tree.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        matplotlib (extra plot) is not installed.
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The number of names is not that of the tree, `max_depth` or `decimals` is
        negative, or there are more leaves to show than a figure can hold.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import plot_tree
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> ax = plot_tree(tree, feature_names=iris.feature_names)
    """
    pyplot = require("matplotlib.pyplot", "plot_tree")
    whole = describe(
        estimator_or_tree, feature_names=feature_names, class_names=class_names, decimals=decimals
    )
    shown = _cut(whole, max_depth)
    figure = None if ax is not None else pyplot.figure()
    if figure is not None:
        ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    layout = _lay_out(ax, shown, [_label(shown, whole.tree, n) for n in range(shown.tree.n_nodes)])
    if figure is not None:
        figure.set_size_inches(layout.size[0] / 72, layout.size[1] / 72)
    _draw(ax, shown.tree, layout, _colors(shown.tree), _fit(ax, layout.size))
    return ax


def plot_cp_table(pruner_or_table: Any, *, ax: Any = None) -> Any:
    """Draw the cross-validated error of each tree of a cost-complexity sequence.

    Against the number of leaves, with bars of one standard error. The dashed line is
    one standard error above the least: the 1-SE rule takes the smallest tree below it.
    The upper axis has the cp between a tree and the next smaller one (their geometric
    mean), as rpart's ``plotcp``.

    Parameters
    ----------
    pruner_or_table : CostComplexityCV that has pruned, or its `cp_table_`
    ax : matplotlib Axes or None, default=None
        None makes a figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        matplotlib (extra plot) is not installed.
    ValueError
        There is no table: the pruner has not pruned an estimator yet.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import plot_cp_table
    >>> from gputree.pruning import CostComplexityCV
    >>> X, y = load_iris(return_X_y=True)
    >>> pruner = CostComplexityCV()
    >>> tree = pruner.prune(DecisionTreeClassifier().fit(X, y), X, y)
    >>> ax = plot_cp_table(pruner)
    """
    table = getattr(pruner_or_table, "cp_table_", pruner_or_table)
    if getattr(getattr(table, "dtype", None), "names", None) is None:
        raise ValueError(
            "plot_cp_table needs the cp_table_ of a CostComplexityCV that has pruned an "
            f"estimator. Got {type(pruner_or_table).__name__}."
        )
    pyplot = require("matplotlib.pyplot", "plot_cp_table")
    if ax is None:
        ax = pyplot.figure(layout="constrained").add_subplot()
    best = table[np.argmin(table["xerror"])]
    limit = best["xerror"] + best["xstd"]
    small = table[np.flatnonzero(table["xerror"] <= limit)[0]]
    leaves, error = table["n_leaves"], table["xerror"]
    ax.errorbar(leaves, error, table["xstd"], fmt=".-", color="C0", ecolor="0.75", zorder=1)
    ax.axhline(limit, color="0.3", linestyle="--", linewidth=1, label="least + 1 SE")
    for row, rule, marker in ((best, "min", "o"), (small, "1se", "s")):
        label = f'rule="{rule}": {row["n_leaves"]} leaves'
        where = [row["n_leaves"]], [row["xerror"]]
        ax.plot(*where, f"C3{marker}", fillstyle="none", markersize=8, label=label)
    ax.set(xscale="log", xlabel="leaves", ylabel="cross-validated error, relative to the root")
    ax.legend()
    _label_trees(ax, table)
    return ax


# ------------------------------------------------------------------ cp table
def _label_trees(ax: Any, table: NDArray[Any]) -> None:
    """Leaves below and cp above, of as many trees as there is room for."""
    place = np.log(table["n_leaves"])
    cp = np.append(np.inf, np.sqrt(table["cp"][:-1] * table["cp"][1:]))
    rows = [0]
    for row in range(1, place.size):
        if place[row] - place[rows[-1]] >= (place[-1] - place[0]) / _MOST_TICKS:
            rows.append(row)
    upper = ax.twiny()
    upper.set(xscale="log", xlim=ax.get_xlim(), xlabel="cp")
    leaves = table["n_leaves"][rows]
    for axes, labels in ((ax, leaves), (upper, [f"{value:.2g}" for value in cp[rows]])):
        axes.set_xticks(leaves, labels)
        axes.minorticks_off()


# ---------------------------------------------------------------------- tree
def _cut(whole: Description, max_depth: int | None) -> Description:
    """The part to show; its nodes keep their numbers, as those below come last."""
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth must be None or an int >= 0, got {max_depth!r}.")
    tree = whole.tree
    if max_depth is not None:
        tree = tree.collapse(tree.depth >= max_depth)
    if tree.n_leaves > _MOST_LEAVES:
        raise ValueError(
            f"plot_tree shows at most {_MOST_LEAVES} leaves, got {tree.n_leaves}. Pass a smaller "
            "max_depth, prune the tree, or use export_text."
        )
    return replace(whole, tree=tree)


def _label(shown: Description, whole: Tree, node: int) -> str:
    answer = f"{shown.answer(node)} ({shown.support(node)})"
    if shown.tree.is_leaf[node] and not whole.is_leaf[node]:
        answer += " ..."
    lines = [str(shown.condition(node)), answer] if node else [answer]
    return "\n".join(map(_shorten, lines)).replace("$", r"\$")  # no mathematics in names


def _shorten(line: str) -> str:
    if len(line) <= _LONGEST:
        return line
    kept = (_LONGEST - 5) // 2
    return f"{line[:kept]} ... {line[-kept:]}"


def _lay_out(ax: Any, shown: Description, labels: list[str]) -> _Layout:
    """A column a depth, as wide as its widest text; a row a leaf, inner nodes midway."""
    tree = shown.tree
    probe = ax.text(0, 0, "", fontsize=_FONT_SIZE)
    width = np.array([_width(probe, label) for label in labels]) + 2 * _PAD * _FONT_SIZE
    probe.remove()
    widest = [width[level].max() for level in tree.levels()]
    left = _GAP / 2 + np.cumsum([0.0, *(w + _GAP for w in widest)])
    row = _rows(tree)
    size = (float(left[-1]) - _GAP / 2, _ROW * (tree.n_leaves + 0.5))
    return _Layout(labels, left[tree.depth], _ROW * (row + 0.75), size)


def _width(probe: Any, label: str) -> float:
    """Width of a text in points."""
    probe.set_text(label)
    return float(probe.get_window_extent().width) * 72 / probe.figure.dpi


def _rows(tree: Tree) -> NDArray[np.float64]:
    """Leaves count up from the first; an inner node is midway of its outermost children."""
    row = np.zeros(tree.n_nodes)
    stack, n_leaves = [0], 0
    while stack:
        node = stack.pop()
        stack.extend(reversed(tree.children(node)))
        if tree.is_leaf[node]:
            row[node] = n_leaves
            n_leaves += 1
    for node in np.flatnonzero(~tree.is_leaf)[::-1]:
        children = tree.children(node)
        row[node] = (row[children[0]] + row[children[-1]]) / 2
    return row


def _fit(ax: Any, size: tuple[float, float]) -> float:
    """Make points of the layout the data units of `ax`; returns what a letter shrinks by."""
    extent = ax.get_window_extent()
    width, height = (pixels * 72 / ax.figure.dpi for pixels in (extent.width, extent.height))
    scale = min(width / size[0], height / size[1])
    ax.set_xlim(0, width / scale)
    ax.set_ylim((size[1] + height / scale) / 2, (size[1] - height / scale) / 2)
    return scale


def _draw(ax: Any, tree: Tree, layout: _Layout, colors: NDArray[np.float64], scale: float) -> None:
    font, line = scale * _FONT_SIZE, {"color": "0.6", "linewidth": scale, "zorder": 1}
    for node, label in enumerate(layout.labels):
        box = {"boxstyle": f"round,pad={_PAD}", "facecolor": colors[node], "edgecolor": "0.6"}
        x, y = layout.left[node], layout.middle[node]
        ax.text(
            x + _PAD * _FONT_SIZE,
            y,
            label,
            fontsize=font,
            va="center",
            linespacing=1.15,
            bbox={**box, "linewidth": scale},
        )
        parent = tree.parent[node]
        if parent >= 0:
            turn = x - _GAP / 2
            begin = layout.left[parent], layout.middle[parent]  # the box covers it
            ax.plot([begin[0], turn, turn, x], [begin[1], begin[1], y, y], **line)


def _colors(tree: Tree) -> NDArray[np.float64]:
    """Red, green and blue of each node's box."""
    from matplotlib import colormaps

    palette = colormaps["tab10"](np.arange(10))[:, :3]
    if tree.task == "regression":
        mean = tree.statistics[:, 0]
        color, share = palette[:1], (mean - mean.min()) / (np.ptp(mean) or 1.0)
    else:
        color = palette[tree.statistics.argmax(axis=1) % len(palette)]
        weight = np.where(tree.weight > 0, tree.weight, 1.0)
        chance = 1 / tree.n_classes
        share = (tree.statistics.max(axis=1) / weight - chance) / (1 - chance or 1.0)
    strength = _STRENGTH * np.clip(share, 0.0, 1.0)[:, None]
    return 1 - strength * (1 - color)
