"""Columns with many categories, and identifiers: hardly any two rows have the same category."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._warnings import warn
from gputree.columns import Columns
from gputree.columns.categories import NUMBERS, hold_text
from gputree.columns.options import declared_nominal
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
    """A column of categories that names rows.

    Attributes
    ----------
    feature : int
    label : str
    share : float
        Of the rows where it is not missing, those with a unique value.
    """

    feature: int
    label: str
    share: float

    @property
    def claim(self) -> str:
        """Reason why the column is taken for an identifier, for the warning."""
        rows = "every row" if self.share == 1.0 else f"{_percent(self.share)} of the rows"
        return f"has a unique value in {rows}"


def have_few_categories(columns: Columns, n: int) -> NDArray[np.bool_]:
    """Mark columns that are numeric or have fewer than ``FEW_CATEGORIES * n`` categories.

    All columns if there are none.
    """
    few = ~columns.nominal | (columns.n_categories < FEW_CATEGORIES * n)
    return few if few.any() else ~few


def warn_of_excluded(
    columns: Columns, excluded: NDArray[np.bool_], n: int, names: NDArray | None, estimator: str
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

    Nearly all values are unique, in less than 100 rows all, and text.

    Parameters
    ----------
    columns : Columns
    count : function of an index
        Rows of each category of that column.
    names : array of str or None
    every_nominal : bool
        Numbers are categories, too, whatever they stand for: they name no rows.
    mixed : collection of int
        Columns of numbers as text, which name no rows: `warn_of_mixed_columns` has warned of them.
    """
    found = []
    for f, words in enumerate(columns.categories):
        if f in mixed or words is None or columns.ordered[f] or words.size < LEAST_ROWS_OF_TEXT:
            continue
        if every_nominal and words.dtype.kind in NUMBERS:
            continue
        rows = count(f)
        known, single = int(rows.sum()), np.count_nonzero(rows == 1)
        many = known >= LEAST_ROWS and single >= OWN_SHARE * known
        if many or (known >= LEAST_ROWS_OF_TEXT and single == known and hold_text(words)):
            found.append(Identifier(f, _label(f, names), single / known))
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
    """Warn about numeric columns used as categories without being declared categorical.

    Parameters
    ----------
    estimator : estimator
        Fitted, with all columns as categories.
    X : array or data frame
        The training data.
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


def _percent(share: float) -> str:
    return f"{np.floor(1000 * share) / 10:g}%"
