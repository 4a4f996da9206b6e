"""What a column says about the target: impurities, and score functions over all columns.

A score is the decrease of impurity by splitting all rows on one column. The score
functions have scikit-learn's signature, (X, y) -> one score a column, so that
``SelectKBest(information_gain)`` works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils._param_validation import StrOptions, validate_params
from sklearn.utils.validation import (
    assert_all_finite,
    check_array,
    check_consistent_length,
)

from gputree.impurity import Codes, Entropy, Floats, Gini, Impurity, Variance
from gputree.labels import (
    check_counts,
    check_labels,
    check_targets,
    check_weights,
    is_missing,
    labels_not_counts,
)

Numeric = Literal["distinct", "threshold"]
ScoreFunction = TypeVar("ScoreFunction", bound=Callable[..., Floats])
Impurities = TypeVar("Impurities", bound=Callable[..., float])

_SECTIONS = """Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
        Numbers or strings. A missing value (NaN, None) is a category of its own.
    y : array-like of shape (n_rows,)
        {target}.
    sample_weight : array-like of shape (n_rows,), default=None
        Non-negative weights.
    numeric : "threshold" or "distinct", default="threshold"
        How columns of numbers are split. "threshold" takes the cut ``x <= t`` of the
        greatest score, with missing values in a third branch. "distinct" makes a branch of
        every distinct value, as ID3 does and as categories in integer codes need it; a
        column where no number occurs twice then gets the greatest score there is, whatever
        it holds. Columns of strings or objects are always split by distinct value.

    Returns
    -------
    scores : float64 array of shape (n_features,)

    Raises
    ------
    ValueError
        {wrong}, infinite values, wrong shapes, or invalid weights.
    TypeError
        Sparse input."""


def _score_function(target: str, wrong: str) -> Callable[[ScoreFunction], ScoreFunction]:
    """Check the options of a score function and fill the shared part of its docstring."""
    sections = _SECTIONS.replace("{target}", target).replace("{wrong}", wrong)
    options = {"numeric": [StrOptions({"distinct", "threshold"})]}

    def decorate(function: ScoreFunction) -> ScoreFunction:
        if function.__doc__:  # python -OO has none
            function.__doc__ = function.__doc__.replace("{sections}", sections)
        return validate_params(options, prefer_skip_nested_validation=True)(function)

    return decorate


_of_labels = _score_function("Labels", "Missing or continuous labels")
_of_targets = _score_function("Targets, finite numbers", "Missing or infinite targets")


_LABELS = """Parameters
    ----------
    y : array-like of shape (n_rows,), optional
        One label a row: integers, strings or booleans. How often each label occurs is
        counted: ``[9, 5]`` are two rows of different labels. Where the counts are known,
        pass them as `counts`.
    sample_weight : array-like of shape (n_rows,), default=None
        Non-negative weights of the rows of `y`.
    counts : array-like of shape (n_labels,), optional
        Instead of `y`: how many rows each label has, or their weights or shares."""

_LABEL_ERRORS = """Raises
    ------
    ValueError
        Missing or continuous labels, no rows, invalid weights or counts.
    TypeError
        Both `y` and `counts` are given, or neither.

    Warns
    -----
    UserWarning
        `y` holds numbers of which none occurs twice, and which number no classes from 0
        or 1 on: probably they are counts."""


def _of_labels_or_counts(function: Impurities) -> Impurities:
    """Fill the shared part of the docstring of an impurity."""
    if function.__doc__:
        filled = function.__doc__.replace("{sections}", _LABELS)
        function.__doc__ = filled.replace("{errors}", _LABEL_ERRORS)
    return function


# ------------------------------------------------------------------ impurities
@_of_labels_or_counts
def entropy(
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
) -> float:
    """Entropy of labels, ``-sum p_k log2 p_k``, in bits (Shannon 1948).

    {sections}

    Returns
    -------
    entropy : float
        Between 0, one label only, and log2 of the number of labels.

    {errors}

    Examples
    --------
    >>> from gputree import entropy
    >>> entropy(["yes", "yes", "no", "no"])
    1.0
    >>> round(entropy(counts=[9, 5]), 3)
    0.94
    """
    return _impurity_of("entropy", y, sample_weight, counts, Entropy)


@_of_labels_or_counts
def gini(
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
) -> float:
    """Gini impurity of labels, ``1 - sum p_k**2`` (Breiman et al. 1984, section 4.3).

    {sections}

    Returns
    -------
    gini : float
        Between 0, one label only, and ``1 - 1 / number of labels``.

    {errors}

    Examples
    --------
    >>> from gputree import gini
    >>> gini(["yes", "yes", "no", "no"])
    0.5
    >>> gini(counts=[2, 2])
    0.5
    """
    return _impurity_of("gini", y, sample_weight, counts, Gini)


# ------------------------------------------------------------- score functions
@_of_labels
def information_gain(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
) -> Floats:
    """Decrease of entropy by splitting on each column, in bits (Quinlan 1986, section 4).

    {sections}

    Examples
    --------
    >>> from gputree import information_gain
    >>> from gputree.datasets import load_loan
    >>> information_gain(*load_loan(return_X_y=True)).round(3)
    array([0.083, 0.324, 0.42 , 0.363])
    """
    impurity, weight = _class_impurity(y, sample_weight, Entropy)
    return _scores(X, impurity, weight, numeric, _decrease)


@_of_labels
def gain_ratio(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
) -> Floats:
    """Information gain over the entropy of the branches' weights (Quinlan 1993, section 2.2).

    A column of one value tells nothing: its ratio is 0. A threshold is the one of the
    greatest gain, as in C4.5, not of the greatest ratio.

    {sections}

    Examples
    --------
    >>> from gputree import gain_ratio
    >>> from gputree.datasets import load_golf
    >>> float(gain_ratio(*load_golf(return_X_y=True))[0].round(3))
    0.156
    """
    impurity, weight = _class_impurity(y, sample_weight, Entropy)
    return _scores(X, impurity, weight, numeric, _ratio)


@_of_labels
def gini_gain(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
) -> Floats:
    """Decrease of Gini impurity by splitting on each column (Breiman et al. 1984, section 4.3).

    {sections}

    Examples
    --------
    >>> from gputree import gini_gain
    >>> gini_gain([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
    array([0.5])
    """
    impurity, weight = _class_impurity(y, sample_weight, Gini)
    return _scores(X, impurity, weight, numeric, _decrease)


@_of_targets
def variance_reduction(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
) -> Floats:
    """Decrease of variance by splitting on each column (Breiman et al. 1984, section 8.4).

    Scores are in squared units of y.

    {sections}

    Examples
    --------
    >>> from gputree import variance_reduction
    >>> variance_reduction([["a"], ["a"], ["b"]], [1.0, 1.0, 4.0])
    array([2.])
    """
    target = check_targets(y)
    weight = check_weights(sample_weight, target)
    centred = target - np.average(target, weights=weight)
    return _scores(X, Variance(centred), weight, numeric, _decrease)


# ------------------------------------------------------------------ the columns
def _scores(
    X: Any,
    impurity: Impurity,
    weight: Floats,
    numeric: Numeric,
    score: Callable[[Impurity, Codes, Floats], float],
) -> Floats:
    """`score` of the branches of every column."""
    scores = []
    for column in _columns(X):
        check_consistent_length(column, weight)
        if numeric == "threshold" and column.dtype.kind in "biuf":
            branch = _cut(column, impurity, weight)
        else:
            branch = _distinct(column)
        scores.append(score(impurity, branch, weight))
    return np.array(scores)


def _decrease(impurity: Impurity, branch: Codes, weight: Floats) -> float:
    """Decrease of impurity per unit of weight; rounding does not make it negative."""
    whole = impurity.of_branches(np.zeros_like(branch), weight)[0]
    parts = impurity.of_branches(branch, weight).sum()
    return max(float((whole - parts) / weight.sum()), 0.0)


def _ratio(impurity: Impurity, branch: Codes, weight: Floats) -> float:
    """Decrease of entropy over that of a target that names the branches."""
    split_information = _decrease(Entropy(branch), branch, weight)
    gain = _decrease(impurity, branch, weight)
    return gain / split_information if split_information > 0.0 else 0.0


def _cut(column: NDArray[Any], impurity: Impurity, weight: Floats) -> Codes:
    """Branches of the best cut: 0 up to it, 1 above, 2 where the value is missing."""
    branch = np.where(np.isnan(column), 2, 0)
    known = np.flatnonzero(branch == 0)
    rows = known[np.argsort(column[known], kind="stable")]
    ordered = column[rows]
    cuts = np.flatnonzero(ordered[1:] > ordered[:-1])
    if cuts.size:
        left = impurity.of_prefixes(rows, weight)[cuts]
        right = impurity.of_prefixes(rows[::-1], weight)[::-1][cuts + 1]
        branch[rows[cuts[np.argmin(left + right)] + 1 :]] = 1
    return branch


def _distinct(column: NDArray[Any]) -> Codes:
    """Code of each row's value; all missing values share one."""
    if column.dtype.kind != "O":
        return np.unique(column, return_inverse=True)[1]
    codes: dict[Any, int] = {}
    values = (None if is_missing(v) else v for v in column)
    return np.array([codes.setdefault(v, len(codes)) for v in values])


def _columns(X: Any) -> Iterator[NDArray[Any]]:
    """The columns of an array or a data frame, each in its own dtype."""
    if issparse(X):
        raise TypeError("Sparse data was passed, but dense data is required. Use X.toarray().")
    if isinstance(X, (np.ndarray, list, tuple)):
        X = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
        columns = iter(X.T)
    else:
        columns = _frame_columns(X)
    for column in columns:
        if column.dtype.kind == "f":
            assert_all_finite(column, allow_nan=True, input_name="X")
        yield column


def _frame_columns(X: Any) -> Iterator[NDArray[Any]]:
    """Columns of a data frame: numbers as they are, anything else as objects."""
    import narwhals as nw

    for column in nw.from_native(X, eager_only=True).iter_columns():
        yield np.asarray(column.to_numpy(), None if column.dtype.is_numeric() else object)


# ------------------------------------------------------------------- validation
def _class_impurity(
    y: ArrayLike, sample_weight: ArrayLike | None, kind: type[Entropy] | type[Gini]
) -> tuple[Impurity, Floats]:
    label, weight = check_labels(y, sample_weight)
    return kind(label), weight


def _impurity_of(
    name: str,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    counts: ArrayLike | None,
    kind: type[Entropy] | type[Gini],
) -> float:
    """Impurity of all rows, given by labels or by counts; rounding does not make it negative."""
    if (y is None) == (counts is None):
        both = "neither" if y is None else "both"
        raise TypeError(
            f"{name} takes labels, one a row, or counts=, how many rows each label has; got {both}."
        )
    if y is not None:
        labels = labels_not_counts(name, y) if sample_weight is None else y
        label, weight = check_labels(labels, sample_weight)
    elif counts is not None:
        weight = check_counts(name, counts, sample_weight)
        label = np.arange(weight.size)
    whole = kind(label).of_branches(np.zeros_like(label), weight)[0]
    return max(float(whole / weight.sum()), 0.0)
