"""Warnings of `fit`: columns with many categories, and identifiers, of which hardly any two rows
have the same; columns of text that are nearly numbers, or numbers; targets too coarse for sums.
"""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import Targets, Weights
from gputree.base.dtypes import Bools, Floats, Int64s, Weight
from gputree.columns import Columns
from gputree.columns.categories import (
    LEAST_NUMBERS,
    MARKS,
    MINUS,
    MOST_EXAMPLES,
    NUMBERS,
    NearlyNumeric,
    hold_text,
    is_decimal,
    nearly_numeric,
)
from gputree.columns.options import declared_nominal, listed_columns
from gputree.errors import MixedColumnWarning, warn
from gputree.tree import Tree

# Categories of a column whose gain counts for C4.5's average, as a fraction of all rows.
FEW_CATEGORIES = 0.3

# Minimum number of rows from which mostly different words are taken for names of rows.
LEAST_ROWS = 100

# Minimum number of rows from which words that all differ are taken for names of rows.
LEAST_ROWS_OF_TEXT = 10

# Fraction of the rows with a unique value from which a column is taken to name them. Of
# words drawn from n equally frequent ones, 37% are drawn once in n rows.
OWN_SHARE = 0.95


# Integers with more distinct values are not codes, nor classes if the task is inferred.
MOST_CODES = 20

# Maximum number of columns that a warning names.
MOST_LISTED = 5


class Identifier(NamedTuple):
    """A column of categories that names rows."""

    feature: int
    label: str
    share: float  # of the rows where it is not missing, those with a unique value

    @property
    def claim(self) -> str:
        """Reason why the column is taken for an identifier, for the warning."""
        percent = np.floor(1000 * self.share) / 10
        rows = "every row" if self.share == 1.0 else f"{percent:g}% of the rows"
        return f"has a unique value in {rows}"


def have_few_categories(columns: Columns, n: int) -> Bools:
    """Mark columns that are numeric or have fewer than ``FEW_CATEGORIES * n`` categories.

    All columns if there are none.
    """
    few = ~columns.nominal | (columns.n_categories < FEW_CATEGORIES * n)
    return few if few.any() else ~few


def warn_of_excluded(
    columns: Columns, excluded: Bools, n: int, names: NDArray | None, estimator: str
) -> None:
    """Issue one warning that names the columns excluded because of their many categories."""
    found = [
        f"{f if names is None else repr(names[f])} ({columns.n_categories[f]:,} categories)"
        for f in np.flatnonzero(excluded).tolist()
    ]
    if found:
        of = f"column {found[0]}" if len(found) == 1 else f"columns {', '.join(found)}"
        warn(
            f"{estimator} excludes {of} of X: so many categories in {n:,} rows overfit. To use all "
            "columns, pass exclude_high_cardinality=False.",
        )


def find_identifiers(
    columns: Columns,
    count: Callable[[int], NDArray],
    names: NDArray | None,
    every_nominal: bool,
    mixed: Collection[int] = (),
) -> list[Identifier]:
    """The columns of categories that name rows.

    Nearly all values are unique, in less than 100 rows all, and text. `count` returns the rows of
    each category of a column. Numbers that are categories because `every_nominal` is set name no
    rows; nor do `mixed` columns, of numbers as text, of which `warn_of_mixed_columns` has warned.
    """
    found = []
    for f, words in enumerate(columns.categories):
        if f in mixed or words is None or columns.ordered[f] or words.size < LEAST_ROWS_OF_TEXT:
            continue
        if every_nominal and words.dtype.kind in NUMBERS:
            continue
        rows = count(f)
        n_present, single = int(rows.sum()), np.count_nonzero(rows == 1)
        many = n_present >= LEAST_ROWS and single >= OWN_SHARE * n_present
        if many or (n_present >= LEAST_ROWS_OF_TEXT and single == n_present and hold_text(words)):
            found.append(Identifier(f, _label(f, names), single / n_present))
    return found


def _label(f: int, names: NDArray | None) -> str:
    return str(f) if names is None else repr(names[f])


def warn_of_identifiers(found: list[Identifier], estimator: str) -> None:
    """Warn of each column before growth."""
    for column in found:
        warn(
            f"Column {column.label} of X {column.claim}. {estimator} cannot learn from it what "
            "holds for other rows: leave it out.",
        )


def warn_of_winners(found: list[Identifier], tree: Tree, estimator: str) -> None:
    """Warn of each column that the tree tests."""
    for column in found:
        nodes = np.flatnonzero(tree.tests_categories & (tree.feature == column.feature))
        if nodes.size:
            where = "the root" if nodes[0] == 0 else f"{nodes.size:,} of {tree.n_nodes:,} nodes"
            warn(
                f"{estimator} chose column {column.label} of X, which {column.claim}, at {where}: "
                "what the tree has learned there holds for no other rows. Leave it out.",
            )


def warn_of_quantities(estimator: Any, X: Any) -> None:
    """Warn about numeric columns of `X` used as categories without being declared categorical.

    The estimator is fitted on them, with all columns as categories.
    """
    d = len(estimator.columns_.categories)
    n = int(estimator.tree_.n_rows[0])
    declared = declared_nominal(X, estimator.categorical_features, d)
    names = getattr(estimator, "feature_names_in_", None)
    found = [
        _label(f, names)
        for f, words in enumerate(estimator.columns_.categories)
        if not declared[f] and words.dtype.kind in NUMBERS and _are_quantities(words, n)
    ]
    if found:
        columns, each = ("Columns", "contain") if len(found) > 1 else ("Column", "contains")
        name, more = estimator._called, len(found) - MOST_LISTED
        rest = f" and {more} more" if more > 0 else ""
        warn(
            f"{columns} {', '.join(found[:MOST_LISTED])}{rest} of X {each} numbers: {name} creates "
            "a branch for each value, and has none for unseen values. Use C45Classifier, which has "
            "thresholds, or discretize them with MDLPDiscretizer. If they are codes, list them in "
            "'categorical_features'.",
        )


def _are_quantities(words: NDArray, n: int) -> bool:
    """Return whether the distinct values in n rows are fractions or too many for codes."""
    if words.dtype.kind == "b":
        return False
    fine = words.dtype.kind == "f" and (words != np.trunc(words)).any()
    return bool(fine) or words.size > MOST_CODES or 2 * words.size > n


def warn_of_mixed_columns(
    caller: str,
    columns: Columns,
    names: NDArray | None,
    categorical_features: Any,
    count: Callable[[int], NDArray],
    declared: Callable[[], Bools],
) -> list[int]:
    """Warn of each column of text that is nearly one of numbers, unless it is listed.

    A column of numbers alone is not meant, either, if its type declares categories. `count` returns
    the rows of each category of a column, and `declared` the mask of columns that are listed, or
    categorical by their types. Returns the columns that it has warned of.
    """
    mixed = list(_mixed_columns(columns, count))
    if not mixed:
        return []
    listed, by_type = _listed(categorical_features, names, columns.nominal.size), declared()
    mixed = [(f, found) for f, found in mixed if not (listed if found.n_text else by_type)[f]]
    for f, found in mixed:
        label = str(f) if names is None else repr(names[f])
        warn(
            f"Column {label} of X {claim(found)}, and {caller} takes all of it for categories, "
            f"which have no order. {conversion(found)}; if it holds categories, list it in "
            "'categorical_features'.",
            MixedColumnWarning,
        )
    return [f for f, _ in mixed]


def _listed(categorical_features: Any, names: NDArray | None, d: int) -> Bools:
    """The columns that the user lists, of a table of such names."""
    table: Any = np.empty((0, d))
    if names is not None:
        import pyarrow as pa

        table = pa.table([[]] * d, names.tolist())
    listed = listed_columns(categorical_features, table)
    return np.zeros(d, np.bool_) if listed is None else listed


def mixed_column(words: NDArray | None, count: Callable[[], NDArray]) -> NearlyNumeric | None:
    """The numbers and the texts of a column of such categories, if it is nearly one of numbers."""
    if words is None or words.dtype.kind in NUMBERS:
        return None
    texts = list(map(_as_text, words.tolist()))
    if not _has_few_texts(texts):
        return None
    return nearly_numeric(texts, count())


def claim(found: NearlyNumeric) -> str:
    """Number of cells of either kind in a column, with examples of text, for the warning."""
    numbers = f"{found.n_numbers:,} number{'s' * (found.n_numbers > 1)}"
    if not found.n_text:
        return f"holds {numbers} as text"
    cells = "cell is" if found.n_text == 1 else "cells are"
    shown = ", ".join(map(repr, found.examples))
    such = "such as " if len(found.examples) == MOST_EXAMPLES else ""
    return f"holds {numbers}, but {found.n_text:,} {cells} text ({such}{shown})"


def conversion(found: NearlyNumeric) -> str:
    """Advice on the conversion of a column to numbers, without its stop."""
    column = f"column.str.replace({MINUS!r}, '-')" if found.has_minus else "column"
    if not found.n_text:
        return f"Convert it, as by pandas.to_numeric({column})"
    return (
        "If other cells than numbers are missing values, convert it, as by "
        f"pandas.to_numeric({column}, errors='coerce')"
    )


def _mixed_columns(
    columns: Columns, count: Callable[[int], NDArray]
) -> Iterator[tuple[int, NearlyNumeric]]:
    for f in np.flatnonzero(columns.nominal).tolist():
        found = mixed_column(columns.categories[f], partial(count, f))
        if found is not None:
            yield f, found


def _as_text(word: Any) -> Any:
    """A number among text as a text."""
    return repr(word) if isinstance(word, Real) and not isinstance(word, bool) else word


def _has_few_texts(words: list[Any]) -> bool:
    """Return whether few enough categories are text for the others to be meant as numbers."""
    most, texts = max(len(words) // (LEAST_NUMBERS + 1), len(MARKS)), 0
    for word in words:
        texts += not (isinstance(word, str) and is_decimal(word))
        if texts > most:
            return False
    return texts < len(words)


# Number of rows sampled at even distances: enough to estimate 5 % quantiles.
SAMPLE_ROWS = 1 << 12

# Fraction of the rows on either side that may be extreme.
EXTREME_SHARE = 0.05

# The middle 90 % span fewer steps than this where targets are coarse. Normal targets span 3.3
# standard deviations; at 8 steps to one of these, rounding adds 1 part in 800 to the variance.
FEWEST_STEPS = 16.0

# A weight that is off by more than this fraction of itself is coarse.
MOST_WEIGHT_ERROR = 1.0 / FEWEST_STEPS / 2.0


def warn_if_coarse(
    sample_weight: Weight,
    weights: Weights,
    y: Floats | None = None,
    targets: Targets | None = None,
    rows: Int64s | None = None,
    subject: str = "Targets",
) -> None:
    """Warn where extreme rows make steps so wide that ordinary ones cannot be distinguished.

    `weights` and `targets` are `sample_weight` and regression targets `y` in fixed point; `rows`
    are those with weight, None for all. `subject` begins the message on targets. The warning says
    what is lost, in what range it would not be, and what to do.
    """
    if rows is not None:
        sample_weight = None if sample_weight is None else sample_weight[rows]
        if weights.weight is not None:
            weights = weights._replace(weight=weights.weight[rows])
        if y is not None and targets is not None:
            y, targets = y[rows], targets._replace(target=targets.target[rows])
    if sample_weight is not None and weights.weight is not None:
        _look_at_weights(sample_weight, weights)
    if y is not None and targets is not None:
        _look_at_targets(y, weights, targets, subject)


def _look_at_weights(sample_weight: Floats, weights: Weights) -> None:
    assert weights.weight is not None
    rows = _sample(sample_weight.size)
    given = sample_weight[rows]
    unit = weights.unit * weights.scale
    error = np.abs(weights.weight[rows] * unit / given - 1.0)
    if np.median(error) <= MOST_WEIGHT_ERROR:
        return
    warn(
        f"Sample weights reach up to {sample_weight.max():.3g} and are rounded to multiples of "
        f"{unit:.2g}, for exact sums; most of them, {np.median(given):.3g} in the median, change. "
        "Clip the largest weights, or leave their rows out: up to a maximum of "
        f"{sample_weight.max() * np.median(given) / FEWEST_STEPS / unit:.2g} the others are exact.",
    )


def _look_at_targets(y: Floats, weights: Weights, targets: Targets, subject: str) -> None:
    rows = _sample(y.size)
    given = y[rows]
    extreme = max(int(EXTREME_SHARE * rows.size), 1)
    if rows.size <= 2 * extreme + 1:
        return
    # each of the extreme rows has two neighbours: if more pairs are far apart, so are some others
    rounding = targets.unit + 4.0 * np.finfo(np.float64).eps * (abs(targets.centre) + targets.reach)
    apart = np.abs(given[1:] - given[:-1]) >= FEWEST_STEPS * 4.0 * rounding
    if not targets.rounded and np.count_nonzero(apart) > 4 * extreme:
        return
    fixed = targets.target[rows] * targets.unit
    weight = None if weights.weight is None else weights.weight[rows]
    if weight is not None:
        fixed = fixed / weight
    # numbers are off by a quarter of a step in the mean, unless steps suit them
    error = float(np.average(np.abs(targets.centre + fixed - given), weights=weight))
    if error == 0.0:
        return
    ordered = np.partition(given, (extreme, rows.size - 1 - extreme))
    low, high = float(ordered[extreme]), float(ordered[-1 - extreme])
    noise = 8.0 * np.finfo(np.float64).eps * max(abs(low), abs(high))
    if high - low <= noise or high - low >= FEWEST_STEPS * 4.0 * error:
        return
    step = targets.unit
    if weight is not None and targets.rounded:
        step /= float(np.median(weight))
    lowest, highest = float(y.min()), float(y.max())
    kept = (highest - lowest) * (high - low) / FEWEST_STEPS / step / 4.0  # steps double
    warn(
        f"{subject} range from {lowest:.3g} to {highest:.3g} and are rounded to multiples of about "
        f"{step:.2g}, for exact sums, but most of them are between {low:.3g} and {high:.3g}, so "
        "that smaller differences are lost. Clip the extreme targets, leave their rows out, or "
        "transform all targets, by a logarithm for instance: in a range of "
        f"{kept:.2g} the others are distinguished.",
    )


def _sample(n: int) -> Int64s:
    return np.linspace(0, n - 1, min(n, SAMPLE_ROWS)).astype(np.int64)
