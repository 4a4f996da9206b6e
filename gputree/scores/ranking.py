"""Columns ranked by every score, as a table and a picture."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target

from gputree.backends.devices import to_host
from gputree.base.dtypes import Bools, Floats, Int64s
from gputree.base.optional import require
from gputree.base.sklearn import Ordered, StrOptions, validate_params
from gputree.base.texts import fill, tabled
from gputree.columns import Columns
from gputree.errors import InputError
from gputree.export.describe import format_number, level_below
from gputree.export.plot_curves import plot_feature_ranking
from gputree.scores import measures
from gputree.scores.functions import CONSTRAINTS, NUMERIC, PARAMETERS
from gputree.scores.targets import (
    Branched,
    Labels,
    Numeric,
    ScoredTable,
    branch_columns,
    new_labels,
    new_numbers,
    read_table,
)

# Scores of the branches by each criterion; columns are sorted by the first score of all.
OF_CLASSES: dict[str, dict[str, Callable[[Any], float]]] = {
    "entropy": {
        "information_gain": measures.information_gain_of,
        "gain_ratio": measures.gain_ratio_of,
        "symmetric_uncertainty": measures.symmetric_uncertainty_of,
    },
    "gini": {"gini_gain": measures.gini_gain_of},
}
OF_NUMBERS: dict[str, Callable[[Any], float]] = {
    "variance_reduction": measures.variance_reduction_of
}

MOST_CUTS = 3  # maximum number of cuts of a column that its line lists


@dataclass(frozen=True, repr=False)
class FeatureRanking:
    """Columns of a table with all scores, sorted by the first score.

    Attributes
    ----------
    names : array of str of shape (n_features,)
        Names of the columns; x0, x1, ... where the table has none.
    features : int array of shape (n_features,)
        Their places in the table.
    categorical : bool array of shape (n_features,)
        True for columns treated as categories.
    missing : float64 array of shape (n_features,)
        Fraction of rows without a value.
    cuts : tuple of n_features float64 arrays
        Where numbers were cut: the best cut by information gain or by variance reduction, or the
        cut points of "mdl". Empty for categories.
    scores : dict of str to float64 array of shape (n_features,)
        By the names of the score functions; columns are sorted by the first.
    levels : tuple of n_features arrays or None
        Ordered categories of a column, whose cuts are of their ranks; None for other columns.

    Examples
    --------
    >>> from gputree import rank_features
    >>> from gputree.datasets import load_golf
    >>> golf = load_golf()
    >>> ranking = rank_features(golf.data, golf.target, feature_names=golf.feature_names)
    >>> ranking.names[0], round(float(ranking.scores["information_gain"][0]), 3)
    ('outlook', 0.247)
    """

    names: NDArray[Any]
    features: Int64s
    categorical: Bools
    missing: Floats
    cuts: tuple[Floats, ...]
    scores: dict[str, Floats]
    levels: tuple[NDArray[Any] | None, ...]

    def __len__(self) -> int:
        return self.names.size

    def __repr__(self) -> str:
        head = ["", "missing", *(name.replace("_", " ") for name in self.scores), "cut"]
        lines = [head, *(self._line(j) for j in range(len(self)))]
        return tabled(lines, left=(0, len(head) - 1))

    def _line(self, j: int) -> list[str]:
        share = f"{self.missing[j]:.1%}" if self.missing[j] else "-"
        scores = [f"{values[j]:.4g}" for values in self.scores.values()]
        return [str(self.names[j]), share, *scores, self._cuts(j)]

    def _cuts(self, j: int) -> str:
        """Format the cuts of a column, or a description in place of them."""
        if self.categorical[j]:
            return "categories"
        levels = self.levels[j]
        cuts = [
            format_number(cut, 4) if levels is None else f"<= {level_below(levels, cut)}"
            for cut in self.cuts[j][:MOST_CUTS].tolist()
        ]
        more = self.cuts[j].size - len(cuts)
        return ", ".join(cuts) + (f" and {more} more" if more else "")

    def to_frame(self) -> Any:
        """The ranking as a data frame of pandas, one row per column.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        pandas = require("pandas", "FeatureRanking.to_frame")
        columns = {
            "feature": self.features,
            "categorical": self.categorical,
            "missing": self.missing,
            **self.scores,
            "cuts": [
                cuts.tolist() if levels is None else [level_below(levels, cut) for cut in cuts]
                for cuts, levels in zip(self.cuts, self.levels, strict=True)
            ],
        }
        return pandas.DataFrame(columns, index=pandas.Index(self.names, name="column"))

    def plot(self, *, score: str | None = None, most: int | None = 20, ax: Any = None) -> Any:
        """Draw one of the scores; see `gputree.export.plot_feature_ranking`."""
        return plot_feature_ranking(self, score=score, most=most, ax=ax)


@validate_params(
    {
        "task": [StrOptions({"auto", "classification", "regression"})],
        "numeric": [StrOptions({"threshold", "mdl", "distinct"})],
        "feature_names": [Ordered(), None],
        **CONSTRAINTS,
    },
    prefer_skip_nested_validation=True,
)
@fill(numeric=NUMERIC["of labels"], cut="highest score", parameters=PARAMETERS)
def rank_features(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    numeric: Numeric = "threshold",
    categorical_features: Any = "auto",
    feature_names: Sequence[str] | None = None,
    device: str = "auto",
    n_jobs: int | None = None,
) -> FeatureRanking:
    """Score every column by every criterion, and sort the columns by information gain.

    For regression there is one score, the variance reduction.

    Parameters
    ----------
    X : array-like, data frame or CodedTable of shape (n_rows, n_features)
        Numbers or text, as for the estimators.
    y : array-like of shape (n_rows,)
        Labels, or finite numbers for regression.
    sample_weight : array-like of shape (n_rows,), default=None
        Non-negative weights.
    task : "auto", "classification" or "regression", default="auto"
        What the target is. "auto" is regression for numbers that are not all integers.
    {numeric}
    feature_names : sequence of str or None, default=None
        Names of the columns; None takes those of a data frame, else x0, x1, ...
    {parameters}

    Returns
    -------
    ranking : FeatureRanking
        Printed, one line per column; ``to_frame()`` and ``plot()`` are other views. Equal scores
        keep the order of the table.

    Raises
    ------
    ValueError
        Missing labels or targets, infinite values, wrong shapes, invalid weights, another number
        of names than of columns, or "mdl" for regression.
    MemoryError
        Sparse input is too large for a dense array.

    Examples
    --------
    >>> from gputree import rank_features
    >>> from gputree.datasets import load_iris
    >>> iris = load_iris()
    >>> rank_features(iris.data, iris.target).features
    array([2, 3, 0, 1])
    """
    table = read_table("rank_features", X, categorical_features, device, n_jobs)
    names = _names(table, feature_names)
    y = to_host(y)
    if task == "auto":
        task = "regression" if type_of_target(y) == "continuous" else "classification"
    if task == "classification":
        labels = new_labels(y, sample_weight, "entropy")
        n_rows, (found, scores) = labels.size, _of_classes(table, labels, numeric)
    elif numeric == "mdl":
        raise InputError(
            "The 'numeric' parameter of rank_features must be 'threshold' or 'distinct' for "
            "regression: cut points by MDL need labels. Got 'mdl' instead."
        )
    else:
        numbers = new_numbers(y, sample_weight)
        n_rows, found = numbers.size, branch_columns(table, numbers, numeric)
        scores = _all_scores(OF_NUMBERS, found)
    return _rank(names, table.rows.columns, n_rows, found, scores)


def _of_classes(
    table: ScoredTable, labels: Labels, numeric: Numeric
) -> tuple[list[Branched], dict[str, Floats]]:
    """Return the branches by information gain, and all scores of labels."""
    found = branch_columns(table, labels, numeric)
    scores = _all_scores(OF_CLASSES["entropy"], found)
    by_gini = found  # branches that no criterion chose
    if numeric == "threshold":
        by_gini = branch_columns(table, labels._replace(criterion="gini"), numeric)
    return found, scores | _all_scores(OF_CLASSES["gini"], by_gini)


def _all_scores(
    kinds: dict[str, Callable[[Any], float]], found: list[Branched]
) -> dict[str, Floats]:
    return {
        name: np.array([score(column.parts) for column in found]) for name, score in kinds.items()
    }


def _names(table: ScoredTable, given: Sequence[str] | None) -> NDArray[Any]:
    d = table.rows.shape[1]
    if given is None:
        names = table.rows.names
        return np.array([f"x{f}" for f in range(d)], dtype=object) if names is None else names
    if len(given) != d:
        raise InputError(
            f"The 'feature_names' parameter of rank_features must name all {d} columns of X. Got "
            f"{len(given)} names instead."
        )
    return np.array(given, dtype=object)


def _rank(
    names: NDArray[Any],
    columns: Columns,
    n_rows: int,
    found: list[Branched],
    scores: dict[str, Floats],
) -> FeatureRanking:
    """Rank the columns by the first of their scores."""
    order = np.argsort(-next(iter(scores.values())), kind="stable")
    return FeatureRanking(
        names=names[order],
        features=order,
        categorical=columns.nominal[order],
        missing=np.array([found[f].missing / n_rows for f in order]),
        cuts=tuple(found[f].cuts for f in order),
        scores={name: values[order] for name, values in scores.items()},
        levels=tuple(columns.categories[f] if columns.ordered[f] else None for f in order),
    )
