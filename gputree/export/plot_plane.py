"""Plot of how a tree divides the plane of two columns, drawn with matplotlib."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import THRESHOLD_SPLIT, Floats, Int32s
from gputree.base.sklearn import check_consistent_length, column_or_1d
from gputree.errors import InputError
from gputree.export.describe import Description, describe, shorten
from gputree.export.palette import choose_fonts, class_color, class_tints, new_axes
from gputree.export.parameters import checked
from gputree.prediction import apply, class_distributions
from gputree.tree import Tree
from gputree.tree.statistics import impurity_importances

_MOST_CELLS = 4_000_000  # some seconds of drawing, more than a screen has points
_MARGIN = 0.08  # of the range of numbers, to either side
_MOST_NAMES = 40  # of categories along an axis
_MOST_CLASSES = 20  # in a legend
_JITTER = 0.35  # of a category's strip, to either side of its middle, for the rows in it


class _Axis(NamedTuple):
    """One column, cut where any node of the tree cuts it."""

    feature: int
    edges: Floats  # (C + 1,): ends of the cells on the axis
    values: Floats  # (C,): a value of each cell: its upper end, which ``x <= threshold`` takes in
    words: list[str] | None  # names of the categories; None for numbers


@checked
def plot_partition(
    estimator_or_tree: Any,
    features: tuple[int | str, int | str] | None = None,
    *,
    X: Any = None,
    y: Any = None,
    at: Any = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Draw the decision regions of a fitted tree in the plane of two columns.

    Boundaries are exact, not sampled. Lines separate the leaves; the colour is the class, more
    saturated for purer leaves, or the mean target. A category is a strip.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    features : pair of int or str, default=None
        Columns of the horizontal and the vertical axis; None takes the two of the highest
        importance.
    X : table of rows, default=None
        Rows to draw as points, which also set the range of numbers; those without a value in
        one of the two columns are left out.
    y : array-like of shape (n_rows,), default=None
        Their targets, to colour them.
    at : table of one row, default=None
        Values of the other columns, needed if the tree tests them.
    feature_names, class_names
        As in `export_text`.
    {ax}

    Returns
    -------
    matplotlib Axes

    {drawing}
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        A column is not there, the tree tests other columns and `at` is None, `y` is not as long
        as `X` or holds labels that the tree does not know, or the cuts make more cells than can
        be drawn.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import plot_partition
    >>> iris = load_iris()
    >>> X = iris.data[:, 2:]
    >>> tree = DecisionTreeClassifier(max_depth=3).fit(X, iris.target)
    >>> ax = plot_partition(tree, X=X, y=iris.target, feature_names=["length", "width"])
    """
    described = describe(estimator_or_tree, feature_names, class_names, all_categories=True)
    tree = described.tree
    first, second = _features(described, features)
    _check_others(described, (first, second), at)
    if y is not None:
        if X is None:
            raise InputError("plot_partition colours the rows of X by y, and X is None: pass both.")
        check_consistent_length(X, y)
        y = column_or_1d(y, warn=True)
    encode = getattr(estimator_or_tree, "_values", lambda rows: np.asarray(rows, np.float64))
    rows = None if X is None else np.asarray(encode(X), np.float64)
    across, up = (_axis(described, j, rows) for j in (first, second))
    if across.values.size * up.values.size > _MOST_CELLS:
        raise InputError(
            f"plot_partition draws at most {_MOST_CELLS:,} cells, but the tree cuts the plane into "
            f"{across.values.size:,} x {up.values.size:,}. Prune the tree, or set max_depth."
        )
    fixed = np.full(tree.n_features, np.nan)
    if at is not None:
        given = np.asarray(encode(at), np.float64)
        if len(given) != 1:
            raise InputError(f"at must be a table of one row, got {len(given)}.")
        fixed = given[0]
    ax = new_axes(ax, "plot_partition")
    _draw_cells(ax, described, across, up, fixed)
    if rows is not None:
        _draw_rows(ax, described, across, up, rows, _colors_of(estimator_or_tree, tree, y))
    _name(ax, described, across, up)
    choose_fonts(ax)
    return ax


def _features(described: Description, features: Any) -> tuple[int, int]:
    n = described.tree.n_features
    if features is None:
        if n < 2:
            raise InputError("plot_partition needs two columns, and the tree has one.")
        first, second = np.argsort(-impurity_importances(described.tree), kind="stable")[:2]
        return int(first), int(second)
    names = list(described.feature_names)
    given = features if isinstance(features, (list, tuple, np.ndarray)) else []
    found = [names.index(f) if isinstance(f, str) and f in names else f for f in given]
    wrong = [f for f in found if not isinstance(f, (int, np.integer)) or not 0 <= f < n]
    if wrong or len(set(found)) != 2:
        raise InputError(
            f"features must be two different columns, by name or as ints from 0 to {n - 1}, "
            f"got {features!r}."
        )
    return int(found[0]), int(found[1])


def _check_others(described: Description, drawn: tuple[int, int], fixed: Any) -> None:
    tree = described.tree
    others = set(tree.feature[~tree.is_leaf].tolist()) - set(drawn)
    if others and fixed is None:
        names = [described.feature_names[j] for j in sorted(others)[:5]]
        raise InputError(
            f"plot_partition draws two columns, and the tree also tests {', '.join(names)}: pass "
            "at=, a table of one row whose values they have, or grow a tree on two columns."
        )


def _axis(described: Description, feature: int, rows: Floats | None) -> _Axis:
    categories = None if described.categories is None else described.categories[feature]
    tree = described.tree
    tests_feature = tree.feature == feature
    if categories is not None or (tests_feature & tree.tests_categories).any():
        codes = [
            c for node in np.flatnonzero(tests_feature).tolist() for c in tree.branches(node).code
        ]
        n = len(categories) if categories is not None else int(max(codes, default=0)) + 1
        words = [described.words_of_set(feature, np.array([c], np.int32))[1] for c in range(n)]
        return _Axis(feature, np.arange(0.0, n + 1) - 0.5, np.arange(0.0, n), words)
    cuts = np.unique(tree.threshold[tests_feature & (tree.split_kind == THRESHOLD_SPLIT)])
    cuts = cuts[np.isfinite(cuts)]
    values = cuts if rows is None else rows[np.isfinite(rows[:, feature]), feature]
    lowest, highest = (values.min(), values.max()) if values.size else (0.0, 1.0)
    margin = _MARGIN * (highest - lowest) or max(0.5, 0.1 * abs(lowest))
    inside = cuts[(cuts > lowest - margin) & (cuts < highest + margin)]
    edges = np.concatenate([[lowest - margin], inside, [highest + margin]])
    return _Axis(feature, edges, edges[1:], None)


def _draw_cells(ax: Any, described: Description, across: _Axis, up: _Axis, fixed: Floats) -> None:
    tree = described.tree
    shape = up.values.size, across.values.size
    cells = np.tile(fixed, (across.values.size * up.values.size, 1))
    cells[:, across.feature] = np.tile(across.values, up.values.size)
    cells[:, up.feature] = np.repeat(up.values, across.values.size)
    shares = class_distributions(tree, cells)
    edges = across.edges, up.edges
    if tree.task == "regression":
        mesh = ax.pcolormesh(*edges, shares.reshape(shape), cmap="viridis", alpha=0.75)
        ax.figure.colorbar(mesh, ax=ax, label="mean target")
    else:
        ax.pcolormesh(*edges, class_tints(shares, described.costs).reshape(*shape, 3))
    _draw_borders(ax, apply(tree, cells).reshape(shape), *edges)


def _draw_borders(ax: Any, node: Int32s, x: Floats, y: Floats) -> None:
    """Lines between cells of different nodes."""
    from matplotlib.collections import LineCollection

    i, j = np.nonzero(node[:, 1:] != node[:, :-1])
    upright = np.stack([x[j + 1], y[i], x[j + 1], y[i + 1]], axis=1)
    i, j = np.nonzero(node[1:] != node[:-1])
    level = np.stack([x[j], y[i + 1], x[j + 1], y[i + 1]], axis=1)
    lines = np.concatenate([upright, level]).reshape(-1, 2, 2)
    width = 1.0 if len(lines) < 500 else 0.4
    ax.add_collection(LineCollection(list(lines), colors="white", linewidths=width))


def _colors_of(estimator_or_tree: Any, tree: Tree, y: Any) -> Any:
    """Colours of rows by their targets: ``#rrggbb``, or numbers in regression."""
    if y is None:
        return "0.25"
    if tree.task == "regression":
        return _numbers(y)
    classes = np.asarray(getattr(estimator_or_tree, "classes_", np.arange(tree.n_classes)))
    place = {label: k for k, label in enumerate(classes.tolist())}
    labels = y.tolist()
    if unknown := sorted({repr(label) for label in labels if label not in place}):
        raise InputError(
            f"y contains labels that the tree was not grown on: {', '.join(unknown[:5])}."
        )
    return np.array([class_color(place[label]) for label in labels])


def _numbers(y: NDArray[Any]) -> Floats:
    try:
        return y.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"y must hold numbers, as the target of a regression tree does; it holds "
            f"{y.tolist()[0]!r}."
        ) from None


def _draw_rows(
    ax: Any, described: Description, across: _Axis, up: _Axis, rows: Floats, colors: Any
) -> None:
    there = np.isfinite(rows[:, [across.feature, up.feature]]).all(axis=1)
    rng = np.random.default_rng(0)
    places = []
    for axis in (across, up):
        x = rows[there, axis.feature]
        if axis.words is not None:
            x = x + rng.uniform(-_JITTER, _JITTER, x.size)
        places.append(x)
    options: dict[str, Any] = {"s": 14, "edgecolors": "white", "linewidths": 0.4}
    if isinstance(colors, str):
        options["c"] = colors
    else:
        options["c"] = colors[there]
        if described.class_names is None:
            mesh = ax.collections[0]
            options |= {"cmap": mesh.cmap, "norm": mesh.norm}
    ax.scatter(*places, **options)


def _name(ax: Any, described: Description, across: _Axis, up: _Axis) -> None:
    from matplotlib.patches import Patch

    def plain(text: str) -> str:
        return shorten(text).replace("$", r"\$")

    ax.set_xlabel(plain(described.feature_names[across.feature]))
    ax.set_ylabel(plain(described.feature_names[up.feature]))
    ax.set(xlim=across.edges[[0, -1]], ylim=up.edges[[0, -1]])
    for axis, set_ticks, turn in ((across, ax.set_xticks, 30), (up, ax.set_yticks, 0)):
        if axis.words is not None:
            step = -(-len(axis.words) // _MOST_NAMES)
            labels = list(map(plain, axis.words))
            ticks = np.arange(len(labels))[::step]
            crowded = sum(map(len, labels)) > 60
            turned = {"rotation": turn, "ha": "right"} if turn and crowded else {}
            set_ticks(ticks, labels[::step], **turned)
    if described.class_names is not None:
        names = list(enumerate(described.class_names[:_MOST_CLASSES]))
        ax.legend(handles=[Patch(color=class_color(k), label=plain(name)) for k, name in names])
