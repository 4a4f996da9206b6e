"""Score functions of columns for a target, by the decrease of an impurity.

A score is the decrease of the target's impurity by splitting all rows on one column. The functions
have scikit-learn's signature, (X, y) -> one score per column, so that
``SelectKBest(information_gain)`` works.
"""

from collections.abc import Callable
from numbers import Integral
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from gputree.backends import DEVICES
from gputree.base.dtypes import Floats
from gputree.base.sklearn import DeviceName, Interval, StrOptions, validate_params
from gputree.base.texts import fill
from gputree.estimators.parameters import MOST_JOBS
from gputree.scores import measures
from gputree.scores.targets import Numeric, new_labels, new_numbers, read_table, scores_of

ScoreFunction = TypeVar("ScoreFunction", bound=Callable[..., Floats])

NUMERIC = {
    "of labels": """numeric : "threshold", "mdl" or "distinct", default="threshold"
        How numeric columns are split. "threshold" takes the cut ``x <= t`` of the {cut}.
        "mdl" has one branch per interval between the cut points of `MDLPDiscretizer`: a column
        without cut points scores 0; a weight counts as that many rows. "distinct" has one branch
        per distinct value, as ID3 does; a column of distinct numbers then always gets the maximum
        score.""",
    "of numbers": """numeric : "threshold" or "distinct", default="threshold"
        How numeric columns are split. "threshold" takes the cut ``x <= t`` of the {cut}.
        "distinct" has one branch per distinct value; a column of distinct numbers then always gets
        the maximum score.""",
}

PARAMETERS = """categorical_features : "auto", None or array-like, default="auto"
        Categorical columns, with one branch per category: by dtype (text, categoricals,
        booleans), or their names, indices or a mask. Text is always categorical.
    device : "auto", "cpu", "cuda" or one CUDA device, as "cuda:1", default="auto"
        Device that finds the best cuts, as in the estimators; scores are the same everywhere. A
        `CodedTable` has its own. Cut points of "mdl" are found on the host.
    n_jobs : int, default=None
        Threads; None for all. Scores do not depend on it."""

_SECTIONS = """Rows without a value (NaN, None) are a separate branch (Quinlan 1986,
    section 5), so that the branches of a column always have all rows, and missing values that are
    informative score. The cut of a column of numbers is the best of those of its known values.

    Parameters
    ----------
    X : array-like, data frame or CodedTable of shape (n_rows, n_features)
        Numbers or text, as for the estimators.
    y : array-like of shape (n_rows,)
        {target}.
    sample_weight : array-like of shape (n_rows,), default=None
        Non-negative weights.
    {numeric}
    {parameters}

    Returns
    -------
    scores : float64 array of shape (n_features,)

    Raises
    ------
    ValueError
        {wrong}, infinite values, wrong shapes, or invalid weights.
    MemoryError
        Sparse input is too large for a dense array."""

CONSTRAINTS = {
    "categorical_features": [StrOptions({"auto"}), "array-like", None],
    "device": [DeviceName(set(DEVICES))],
    "n_jobs": [Interval(Integral, -MOST_JOBS, MOST_JOBS, closed="both"), None],
}


def _score_function(
    target: str, wrong: str, numeric: str, cut: str = "highest score"
) -> Callable[[ScoreFunction], ScoreFunction]:
    """Check the options of a score function and fill the shared part of its docstring."""
    texts = {"numeric": NUMERIC[numeric], "parameters": PARAMETERS}
    documented = fill(sections=_SECTIONS, **texts, target=target, wrong=wrong, cut=cut)
    allowed = {"threshold", "distinct"} | ({"mdl"} if numeric == "of labels" else set())
    options = {"numeric": [StrOptions(allowed)], **CONSTRAINTS}
    checked = validate_params(options, prefer_skip_nested_validation=True)
    return lambda function: checked(documented(function))


_LABELS = "Labels", "Missing or continuous labels", "of labels"
_NUMBERS = "Targets, finite numbers", "Missing or infinite targets", "of numbers"


@_score_function(*_LABELS)
def information_gain(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
    categorical_features: Any = "auto",
    device: str = "auto",
    n_jobs: int | None = None,
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
    table = read_table("information_gain", X, categorical_features, device, n_jobs)
    return scores_of(
        table, new_labels(y, sample_weight, "entropy"), numeric, measures.information_gain_of
    )


@_score_function(*_LABELS, cut="highest gain, as C4.5 does, not of the highest ratio")
def gain_ratio(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
    categorical_features: Any = "auto",
    device: str = "auto",
    n_jobs: int | None = None,
) -> Floats:
    """Information gain over the entropy of the branches' weights (Quinlan 1993, section 2.2).

    A column of one value has no information: its ratio is 0.

    {sections}

    Examples
    --------
    >>> from gputree import gain_ratio
    >>> from gputree.datasets import load_golf
    >>> float(gain_ratio(*load_golf(return_X_y=True))[0].round(3))
    0.156
    """
    table = read_table("gain_ratio", X, categorical_features, device, n_jobs)
    return scores_of(
        table, new_labels(y, sample_weight, "entropy"), numeric, measures.gain_ratio_of
    )


@_score_function(*_LABELS, cut="highest information gain")
def symmetric_uncertainty(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
    categorical_features: Any = "auto",
    device: str = "auto",
    n_jobs: int | None = None,
) -> Floats:
    """Twice the information gain over the entropies of labels and branches.

    Between 0, independent, and 1, each determines the other (Press et al. 1988, section 14.4; Hall
    1999, section 4.2, as a score of columns).

    {sections}

    Examples
    --------
    >>> from gputree import symmetric_uncertainty
    >>> symmetric_uncertainty([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
    array([1.])
    """
    table = read_table("symmetric_uncertainty", X, categorical_features, device, n_jobs)
    target = new_labels(y, sample_weight, "entropy")
    return scores_of(table, target, numeric, measures.symmetric_uncertainty_of)


@_score_function(*_LABELS)
def gini_gain(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
    categorical_features: Any = "auto",
    device: str = "auto",
    n_jobs: int | None = None,
) -> Floats:
    """Decrease of Gini impurity by splitting on each column (Breiman et al. 1984, section 4.3).

    {sections}

    Examples
    --------
    >>> from gputree import gini_gain
    >>> gini_gain([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
    array([0.5])
    """
    table = read_table("gini_gain", X, categorical_features, device, n_jobs)
    return scores_of(table, new_labels(y, sample_weight, "gini"), numeric, measures.gini_gain_of)


@_score_function(*_NUMBERS)
def variance_reduction(
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    numeric: Numeric = "threshold",
    categorical_features: Any = "auto",
    device: str = "auto",
    n_jobs: int | None = None,
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
    table = read_table("variance_reduction", X, categorical_features, device, n_jobs)
    return scores_of(table, new_numbers(y, sample_weight), numeric, measures.variance_reduction_of)
