"""Curves and bars drawn with matplotlib: sizes by cross-validation, importances, rankings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats
from gputree.errors import InputError
from gputree.export.describe import describe, format_number, shorten
from gputree.export.model import averaged, check_names, tree_of
from gputree.export.palette import choose_fonts, new_axes
from gputree.export.parameters import checked
from gputree.tree.statistics import mean_importances

_MOST_TICKS = 8  # labels of cp along the upper axis


@checked
def plot_cp_table(pruner_or_table: Any, *, ax: Any = None) -> Any:
    """Draw the cross-validated error of each tree of a cost-complexity sequence.

    Against the number of leaves, with bars of one standard error. The dashed line is one standard
    error above the minimum: the 1-SE rule takes the smallest tree below it. The upper axis has the
    cp between a tree and the next smaller one (their geometric mean), as rpart's ``plotcp``.

    Parameters
    ----------
    pruner_or_table : CostComplexityCV that has pruned, a tree pruned by it, or its `cp_table_`
    {ax}

    Returns
    -------
    matplotlib Axes

    {drawing}
    ValueError
        There is no table, as the pruner has not pruned an estimator yet, or it has no
        cross-validated errors.

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
    table = _cp_table(pruner_or_table)
    if table is None:
        raise InputError(
            "plot_cp_table needs the cp_table_ of a CostComplexityCV that has pruned an "
            f"estimator. Got {type(pruner_or_table).__name__}."
        )
    if not _is_validated(table):
        raise InputError(
            "plot_cp_table draws cross-validated errors, and this table has none: that of a "
            "CostComplexityCV has. plot_pruning_path draws the others."
        )
    ax = new_axes(ax, "plot_cp_table")
    leaves, error = table["n_leaves"], table["xerror"]
    ax.errorbar(leaves, error, table["xstd"], fmt=".-", color="C0", ecolor="0.75", zorder=1)
    _draw_choices(ax, table, "n_leaves", markersize=8)
    ax.set(xscale="log", xlabel="leaves", ylabel="cross-validated error, relative to the root")
    _label_trees(ax, table)
    choose_fonts(ax)
    return ax


@checked
def plot_pruning_path(path_or_pruner: Any, *, ax: Any = None) -> Any:
    """Draw the cost-complexity pruning path of a tree.

    The steps are the risk of the remaining leaves, relative to the root's: that of the
    training rows, and where a `CostComplexityCV` has cross-validated it, the error of rows
    held out, with bars of one standard error, and the trees that its two rules choose. The
    upper axis has the number of leaves where that is known.

    Parameters
    ----------
    path_or_pruner : Bunch, CostComplexityCV that has pruned, or CPTable
        What `cost_complexity_pruning_path` returns: ``ccp_alphas`` and ``impurities``. A table is
        that of a pruner, or what `gputree.pruning.cost_complexity` returns.
    {ax}

    Returns
    -------
    matplotlib Axes

    {drawing}
    ValueError
        It is no path, or the pruner has not pruned an estimator yet.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import plot_pruning_path
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_pruning_path(DecisionTreeClassifier().cost_complexity_pruning_path(X, y))
    """
    table = _cp_table(path_or_pruner)
    if table is None and not hasattr(path_or_pruner, "ccp_alphas"):
        raise InputError(
            "plot_pruning_path needs what cost_complexity_pruning_path returns, or a "
            f"CostComplexityCV that has pruned an estimator. Got {type(path_or_pruner).__name__}."
        )
    ax = new_axes(ax, "plot_pruning_path")
    if table is None:
        alphas, impurities = path_or_pruner.ccp_alphas, path_or_pruner.impurities
        _draw_steps(ax, alphas, impurities / (impurities[-1] or 1.0))
    else:
        _draw_steps(ax, table["alpha"][::-1], table["relative_error"][::-1])
        if _is_validated(table):
            bars = {"color": "C1", "ecolor": "0.75", "zorder": 1, "label": "rows held out"}
            held_out = table["alpha"], table["xerror"], table["xstd"]
            ax.errorbar(*held_out, fmt=".-", drawstyle="steps-pre", **bars)
            _draw_choices(ax, table, "alpha")
        _label_leaves(ax, table)
    ax.set(xlabel="alpha", ylabel="risk, relative to the root's", ylim=(0, None))
    choose_fonts(ax)
    return ax


@checked
def plot_importance(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    most: int | None = 20,
    ax: Any = None,
) -> Any:
    """Draw the feature importances (impurity decrease, or by permutation), the largest at the top.

    Parameters
    ----------
    estimator_or_tree : fitted estimator, Tree or Bunch
        Of a forest, the mean of its trees' importances. A Bunch is what a forest's
        `oob_permutation_importance` returns, or `sklearn.inspection.permutation_importance`: the
        mean is drawn, with a line of one standard deviation to either side.
    {features}
        A Bunch has its own where it is a forest's.
    most : int or None, default=20
        How many columns to draw; None for all. Those without a split come last.
    {ax}

    Returns
    -------
    matplotlib Axes
        Importances of an estimator add up to 1 over all columns, as `feature_importances_`.

    {drawing}
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    ValueError
        The number of names does not fit the tree, or `most` is less than 1.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import plot_importance
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target)
    >>> ax = plot_importance(tree, feature_names=iris.feature_names)
    """
    if hasattr(estimator_or_tree, "importances_mean"):
        return _draw_permutations(estimator_or_tree, feature_names, most, ax)
    members = averaged(estimator_or_tree) or [estimator_or_tree]
    shown = describe(members[0], feature_names=feature_names, of_targets=True)
    values = mean_importances(map(tree_of, members))
    order = np.argsort(-values, kind="stable")
    names = [shown.feature_names[j] for j in order]
    return _draw_bars("plot_importance", ax, names, values[order], most, "importance")


def _draw_permutations(found: Any, names: Sequence[str] | None, most: int | None, ax: Any) -> Any:
    """Mean decreases of a score by permuting columns, and their standard deviations."""
    mean = np.asarray(found.importances_mean)
    default = found.get("feature_names") or [f"x{f}" for f in range(mean.size)]
    columns = check_names("feature_names", names, mean.size) or default
    order = np.argsort(-mean, kind="stable")
    labels, spread = [columns[f] for f in order], np.asarray(found.importances_std)[order]
    about = "increase of the error when permuted"
    return _draw_bars("plot_importance", ax, labels, mean[order], most, about, spread)


@checked
def plot_feature_ranking(
    ranking: Any, *, score: str | None = None, most: int | None = 20, ax: Any = None
) -> Any:
    """Draw the columns of a ranking by one of their scores, the largest at the top.

    Parameters
    ----------
    ranking : FeatureRanking
        What `rank_features` returns.
    score : str or None, default=None
        The score to draw, such as "gain_ratio"; None for the one that columns are sorted by.
    most : int or None, default=20
        How many columns to draw; None for all.
    {ax}

    Returns
    -------
    matplotlib Axes

    {drawing}
    ValueError
        It is no ranking, it has no such score, or `most` is less than 1.

    Examples
    --------
    >>> from gputree import rank_features
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import plot_feature_ranking
    >>> iris = load_iris()
    >>> ax = plot_feature_ranking(rank_features(iris.data, iris.target))
    """
    scores = getattr(ranking, "scores", None)
    if not isinstance(scores, dict) or not hasattr(ranking, "names"):
        raise InputError(
            f"plot_feature_ranking needs what rank_features returns. Got {type(ranking).__name__}."
        )
    if score is None:
        score = next(iter(scores))
    if score not in scores:
        raise InputError(
            f"The 'score' parameter of plot_feature_ranking must be one of {list(scores)} or None. "
            f"Got {score!r} instead."
        )
    order = np.argsort(-scores[score], kind="stable")
    names = [str(ranking.names[j]) for j in order]
    label = score.replace("_", " ")
    return _draw_bars("plot_feature_ranking", ax, names, scores[score][order], most, label)


def _draw_bars(
    caller: str,
    ax: Any,
    names: Sequence[str],
    values: Floats,
    most: int | None,
    label: str,
    spread: Floats | None = None,
) -> Any:
    """Bars of values in descending order, with their names; those beyond `most` are counted.

    A line of length `spread` goes to either side of the end of each bar.
    """
    drawn = values[:most]
    ends = np.zeros(drawn.size) if spread is None else spread[:most]
    ax = new_axes(ax, caller, figsize=(6.4, max(2.0, 0.25 * drawn.size + 0.8)))
    lines = {"xerr": None if spread is None else ends, "ecolor": "0.3"}
    bars = ax.barh(np.arange(drawn.size), drawn, color="C0", **lines)
    ax.bar_label(bars, [format_number(value, 3) for value in drawn], padding=2)
    shown = [shorten(name).replace("$", r"\$") for name in names[:most]]
    ax.set_yticks(np.arange(drawn.size), shown)
    ax.invert_yaxis()
    low, high = min((drawn - ends).min(), 0.0), max((drawn + ends).max(), 0.0)
    ax.set_xlim(1.12 * low, high + 0.12 * (high - low) or 1.0)
    rest = values.size - drawn.size
    ax.set_xlabel(f"{label} (and {rest} more columns)" if rest else label)
    choose_fonts(ax)
    return ax


def _cp_table(pruner_or_table: Any) -> NDArray[Any] | None:
    """The table of a pruner, or the argument if it is a table; else None."""
    table = getattr(pruner_or_table, "cp_table_", pruner_or_table)
    is_table = getattr(getattr(table, "dtype", None), "names", None) is not None
    return table if is_table else None


def _is_validated(table: NDArray[Any]) -> bool:
    """Return whether the errors of rows held out are known."""
    return not bool(np.isnan(table["xerror"]).all())


def _draw_choices(ax: Any, table: NDArray[Any], across: str, **style: Any) -> None:
    """The trees that the rules "min" and "1se" take, and the limit of the second."""
    best = table[np.argmin(table["xerror"])]
    limit = float(best["xerror"] + best["xstd"])
    small = table[np.flatnonzero(table["xerror"] <= limit)[0]]
    ax.axhline(limit, color="0.3", linestyle="--", linewidth=1, label="least + 1 SE")
    for row, rule, marker in ((best, "min", "o"), (small, "1se", "s")):
        label = f'rule="{rule}": {row["n_leaves"]} leaves'
        where = [row[across]], [row["xerror"]]
        ax.plot(*where, f"C3{marker}", fillstyle="none", label=label, **style)
    ax.legend()


def _draw_steps(ax: Any, alphas: Floats, risk: Floats) -> None:
    """Risk against alpha, both ascending."""
    _scale(ax, alphas)
    ax.plot(alphas, risk, drawstyle="steps-post", marker=".", label="training rows")


def _scale(ax: Any, alphas: Floats) -> None:
    """Make the axis of ascending alphas logarithmic, except from 0 to the first positive one."""
    positive = alphas[alphas > 0]
    if positive.size == 0:
        return
    ax.set_xscale("symlog", linthresh=float(positive[0]), linscale=1.0)
    zero = alphas[:1][alphas[:1] == 0]
    lowest, highest = np.log10(positive[[0, -1]])
    powers = 10.0 ** np.arange(np.ceil(lowest), np.floor(highest) + 1)
    if powers.size >= 2:
        step = -(-powers.size // _MOST_TICKS)
        ax.set_xticks([*zero, *powers[::-1][::step][::-1]])
    else:
        ticks = np.unique([*zero, *positive[[0, -1]]])
        ax.set_xticks(ticks, [f"{value:.2g}" for value in ticks])


def _label_leaves(ax: Any, table: NDArray[Any]) -> None:
    place = ax.transData.transform(np.column_stack([table["alpha"], table["xerror"]]))[:, 0]
    rows = _apart(place)
    upper = ax.twiny()
    _scale(upper, table["alpha"][::-1])
    upper.set(xlim=ax.get_xlim(), xlabel="leaves")
    upper.set_xticks(table["alpha"][rows], table["n_leaves"][rows])
    upper.minorticks_off()


def _apart(place: Floats) -> list[int]:
    """Indices of monotone places that are far enough apart for labels."""
    rows = [0]
    for row in range(1, place.size):
        if abs(place[row] - place[rows[-1]]) >= abs(place[-1] - place[0]) / _MOST_TICKS:
            rows.append(row)
    return rows


def _label_trees(ax: Any, table: NDArray[Any]) -> None:
    """Leaves below and cp above, of as many trees as fit."""
    place = np.log(table["n_leaves"])
    cp = np.append(np.inf, np.sqrt(table["cp"][:-1] * table["cp"][1:]))
    rows = _apart(place)
    upper = ax.twiny()
    upper.set(xscale="log", xlim=ax.get_xlim(), xlabel="cp")
    leaves = table["n_leaves"][rows]
    for axes, labels in ((ax, leaves), (upper, [f"{value:.2g}" for value in cp[rows]])):
        axes.set_xticks(leaves, labels)
        axes.minorticks_off()
