"""A tree drawn with matplotlib."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gputree.base.dtypes import Floats
from gputree.base.optional import require
from gputree.errors import InputError
from gputree.export.describe import LONGEST, Description, describe, shorten, shown_part, wrapped
from gputree.export.palette import answer_colors, choose_fonts, class_color, rgb
from gputree.export.parameters import checked
from gputree.tree import Tree

_MOST_LEAVES = 500  # an inch holds two: beyond, images exceed what matplotlib can draw
_FONT_SIZE = 9.0  # points, where the figure may be as large as the tree
_ROW = 30.0  # points from leaf to leaf at that size: two lines of text and their box
_BETWEEN = 3.0  # points between boxes of more lines
_GAP = 30.0  # points between the columns of two depths, for the lines between boxes
_PAD = 0.35 * _FONT_SIZE  # between a text and its box
_BAR = 4.0  # points: the height of a bar
_BAR_ROOM = 8.0  # and of a bar with its margins
_WIDEST = 8.0  # points of the line that all rows would follow
_LINES = 1.15  # from line to line, of the font size


class _Layout(NamedTuple):
    """Positions of the boxes of a tree, in points, from the upper left corner."""

    labels: list[str]
    left: Floats
    middle: Floats
    width: Floats
    height: Floats
    size: tuple[float, float]
    families: list[str]  # of the fonts of the labels


@checked
def plot_tree(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int | None = None,
    decimals: int | None = 4,
    bars: bool = True,
    lines_by_weight: bool = False,
    all_categories: bool = False,
    ax: Any = None,
) -> Any:
    """Draw a fitted tree, the root at the left and each leaf on a separate row.

    Every box has the condition that leads to it, its prediction and, in parentheses, its support,
    as in `export_text`. Its colour shows the prediction: the class, more saturated for purer
    nodes, or the mean target, more saturated for larger values. A bar below a box has the class
    proportions; in regression it runs from the minimum to the maximum of the tree, with the node's
    mean marked and, where the criterion is the squared error, a standard deviation to either side.
    Of several targets there are no bars.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    {names}
    max_depth : int or None, default=None
        Depth of the deepest nodes shown, the root's being 0; "..." stands for those below.
    decimals : int or None, default=4
        Decimals of numbers, or significant digits of those below 1; None writes them exactly.
    bars : bool, default=True
        Draw the bars below the boxes.
    lines_by_weight : bool, default=False
        Make lines as wide as the fraction of the training weight that follows them.
    all_categories : bool, default=False
        Name all categories of a long set, on several lines. Else a long list is shortened in the
        middle to one line.
    ax : matplotlib Axes or None, default=None
        Where to draw; the font size follows from the size of its figure. None makes a figure of the
        size of the tree.

    Returns
    -------
    matplotlib Axes

    {drawing}
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The number of names does not fit the tree, `max_depth` or `decimals` is
        negative, or there are too many leaves for a figure.

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
        estimator_or_tree, feature_names, class_names, decimals, all_categories, of_targets=True
    )
    bars = bars and whole.tree.n_outputs == 1
    shown = shown_part(whole, max_depth)
    if shown.tree.n_leaves > _MOST_LEAVES:
        raise InputError(
            f"plot_tree shows at most {_MOST_LEAVES} leaves, got {shown.tree.n_leaves}. Pass a "
            "smaller max_depth, prune the tree, or use export_text."
        )
    figure = None if ax is not None else pyplot.figure()
    if figure is not None:
        ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    labels = [_label(shown, whole.tree, n, all_categories) for n in range(shown.tree.n_nodes)]
    layout = _lay_out(ax, shown.tree, labels, _BAR_ROOM if bars else 0.0)
    if figure is not None:
        figure.set_size_inches(layout.size[0] / 72, layout.size[1] / 72)
    scale = _fit(ax, layout.size)
    _draw_lines(ax, shown.tree, layout, scale, lines_by_weight)
    _draw_boxes(ax, answer_colors(shown.tree, shown.costs), layout, scale)
    if bars:
        _draw_bars(ax, shown.tree, layout, scale)
    return ax


def _label(shown: Description, whole: Tree, node: int, wrap: bool) -> str:
    prediction = f"{shown.answer(node)} ({shown.support(node)})"
    if shown.tree.is_leaf[node] and not whole.is_leaf[node]:
        prediction += " ..."
    lines = [str(shown.condition(node)), prediction] if node else [prediction]
    if wrap:
        lines = [part for line in lines for part in wrapped(line, LONGEST)]
    return "\n".join(map(shorten, lines)).replace("$", r"\$")  # no mathematics in names


def _lay_out(ax: Any, tree: Tree, labels: list[str], bar: float) -> _Layout:
    """A column a depth, as wide as its widest box; a row a leaf, inner nodes midway."""
    probe = ax.text(0, 0, "\n".join(labels), fontsize=_FONT_SIZE, linespacing=_LINES)
    choose_fonts(probe)
    families = probe.get_fontfamily()
    with warnings.catch_warnings():  # characters without a font are reported once, by choose_fonts
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        sizes = np.array([_extent(probe, label) for label in labels]) + 2 * _PAD
    probe.remove()
    width, height = sizes.T
    widest = [width[level].max() for level in tree.levels()]
    left = _GAP / 2 + np.cumsum([0.0, *(w + _GAP for w in widest)])
    middle, whole = _rows(tree, np.maximum(height + _BETWEEN, _ROW) + bar)
    size = (float(left[-1]) - _GAP / 2, whole + _ROW / 2)
    middle += _ROW / 4 - bar / 2
    return _Layout(labels, left[tree.depth], middle, width, height, size, families)


def _extent(probe: Any, label: str) -> tuple[float, float]:
    probe.set_text(label)
    box = probe.get_window_extent()
    return box.width * 72 / probe.figure.dpi, box.height * 72 / probe.figure.dpi


def _rows(tree: Tree, heights: Floats) -> tuple[Floats, float]:
    """The middle of each node, which has at least its height, and the height of all.

    Each subtree has a strip. A node is midway of its outermost children, or as near
    as its strip allows.
    """
    below = np.zeros(tree.n_nodes)
    for node in range(tree.n_nodes - 1, 0, -1):
        below[tree.parent[node]] += max(heights[node], below[node])
    strip, start = np.maximum(heights, below), np.zeros(tree.n_nodes)
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        children = tree.children(node)
        above = np.cumsum(strip[children]) - strip[children]
        start[children] = start[node] + (strip[node] - below[node]) / 2 + above
    middle = start + strip / 2
    for node in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
        children = tree.children(node)
        between = (middle[children[0]] + middle[children[-1]]) / 2
        first, last = start[node] + heights[node] / 2, start[node] + strip[node] - heights[node] / 2
        middle[node] = min(max(between, first), last)
    return middle, float(strip[0])


def _fit(ax: Any, size: tuple[float, float]) -> float:
    """Make the data units of `ax` points of the layout; return the scale of letters."""
    extent = ax.get_window_extent()
    width, height = (pixels * 72 / ax.figure.dpi for pixels in (extent.width, extent.height))
    scale = min(width / size[0], height / size[1])
    ax.set_xlim(0, width / scale)
    ax.set_ylim((size[1] + height / scale) / 2, (size[1] - height / scale) / 2)
    return scale


def _draw_lines(ax: Any, tree: Tree, layout: _Layout, scale: float, by_weight: bool) -> None:
    share = tree.weight / (tree.weight[0] or 1.0)
    width = np.maximum(_WIDEST * share, 0.3) if by_weight else np.ones(tree.n_nodes)
    for node in range(1, tree.n_nodes):
        x, y, parent = layout.left[node], layout.middle[node], tree.parent[node]
        turn = x - _GAP / 2
        begin = layout.left[parent] + layout.width[parent] / 2, layout.middle[parent]
        ax.plot(
            [begin[0], turn, turn, x],
            [begin[1], begin[1], y, y],
            color="0.6",
            linewidth=scale * width[node],
            zorder=1,
        )


def _draw_boxes(ax: Any, colors: Floats, layout: _Layout, scale: float) -> None:
    for node, label in enumerate(layout.labels):
        ax.text(
            layout.left[node] + _PAD,
            layout.middle[node],
            label,
            fontsize=scale * _FONT_SIZE,
            fontfamily=layout.families,
            va="center",
            linespacing=_LINES,
            bbox={
                "boxstyle": f"round,pad={_PAD / _FONT_SIZE}",
                "facecolor": colors[node],
                "edgecolor": "0.6",
                "linewidth": scale,
            },
        )


def _draw_bars(ax: Any, tree: Tree, layout: _Layout, scale: float) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    parts = _mean_parts(tree) if tree.task == "regression" else _class_parts(tree)
    patches, colors = [], []
    for node, begin, width, color in parts:
        top = layout.middle[node] + layout.height[node] / 2 + 1.0
        corner = layout.left[node] + begin * layout.width[node], float(top)
        patches.append(Rectangle(corner, width * layout.width[node], _BAR))
        colors.append(color)
    thin = 0.3 * scale
    bars = PatchCollection(patches, facecolors=colors, edgecolors="white", linewidths=thin)
    bars.set_zorder(3)
    ax.add_collection(bars)


def _class_parts(tree: Tree) -> Iterator[tuple[int, float, float, Any]]:
    """Node, begin, width (of its bar's 1) and colour of each class that is there."""
    colors = [rgb(class_color(k)) for k in range(tree.n_classes)]
    for node, shares in enumerate(tree.predictions):
        ends = np.cumsum(shares)
        for k in np.flatnonzero(shares):
            yield node, float(ends[k] - shares[k]), float(shares[k]), colors[k]


def _mean_parts(tree: Tree) -> Iterator[tuple[int, float, float, Any]]:
    """The whole, a standard deviation to either side of the mean, and the mean."""
    mean, deviation = tree.predictions[:, 0], np.zeros(tree.n_nodes)
    if tree.criterion == "squared_error":  # others have no deviation
        deviation = np.sqrt(np.maximum(tree.impurity, 0.0))
    lowest = (mean - deviation).min()
    whole = (mean + deviation).max() - lowest or 1.0
    for node in range(tree.n_nodes):
        begin, width = (mean[node] - deviation[node] - lowest) / whole, 2 * deviation[node] / whole
        yield node, 0.0, 1.0, (0.9, 0.9, 0.9)
        yield node, float(begin), float(width), rgb(class_color(0))
        yield node, float(min(max(begin + width / 2 - 0.01, 0.0), 0.98)), 0.02, (0.1, 0.1, 0.1)
