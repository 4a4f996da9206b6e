"""Columns of many categories, and those that name rows: hardly any two share a category."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._warnings import warn
from gputree.columns import Columns
from gputree.columns.categories import NUMBERS
from gputree.columns.integers import count_rows
from gputree.columns.specification import declared_nominal
from gputree.tree import Tree

# Categories of a column whose gain counts for C4.5's average, as a share of all rows.
FEW_CATEGORIES = 0.3

# In fewer rows, words that differ are no sign of a name.
LEAST_ROWS = 100

# Fraction of the rows with a unique value from which a column is taken to name them. Of
# words drawn from n equally frequent ones, 37% are drawn once in n rows.
OWN_SHARE = 0.95


# Whole numbers of more values are no codes, nor classes where a task is inferred.
MOST_CODES = 20

# Columns that a warning names.
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
        """What makes it one."""
        rows = "every row" if self.share == 1.0 else f"{_percent(self.share)} of the rows"
        return f"has a unique value in {rows}"


def have_few_categories(columns: Columns, n: int) -> NDArray[np.bool_]:
    """Which columns are numeric, or of fewer categories than `FEW_CATEGORIES` of n rows.

    All columns where none is.
    """
    few = ~columns.nominal | (columns.n_categories < FEW_CATEGORIES * n)
    return few if few.any() else ~few


def warn_of_excluded(
    columns: Columns, excluded: NDArray[np.bool_], n: int, names: NDArray | None, estimator: str
) -> None:
    """Warn once of the columns that are not tested for their many categories."""
    found = [
        f"{f if names is None else repr(names[f])} ({columns.n_categories[f]:,} categories)"
        for f in np.flatnonzero(excluded).tolist()
    ]
    if found:
        of = f"column {found[0]}" if len(found) == 1 else f"columns {', '.join(found)}"
        warn(
            f"{estimator} does not test {of} of X: that many for {n:,} rows tell single rows "
            "apart. To test all columns, pass exclude_high_cardinality=False.",
        )


def find_identifiers(
    columns: Columns, count: Callable[[int], NDArray], names: NDArray | None, every_nominal: bool
) -> list[Identifier]:
    """The columns of categories that name rows.

    Parameters
    ----------
    columns : Columns
    count : function of an index
        Rows of each category of that column, see `count_codes`.
    names : array of str or None
    every_nominal : bool
        Numbers are categories, too, whatever they stand for: they name no rows.
    """
    found = []
    for f, words in enumerate(columns.categories):
        if words is None or words.size < OWN_SHARE * LEAST_ROWS:
            continue
        if every_nominal and words.dtype.kind in NUMBERS:
            continue
        rows = count(f)
        known, own = int(rows.sum()), np.count_nonzero(rows == 1)
        if known >= LEAST_ROWS and own >= OWN_SHARE * known:
            found.append(Identifier(f, _label(f, names), own / known))
    return found


def _label(f: int, names: NDArray | None) -> str:
    return str(f) if names is None else repr(names[f])


def count_codes(code: NDArray, categories: int) -> NDArray[np.int64]:
    """Rows of each category; codes as a table has them, NaN where missing."""
    counts = np.zeros(categories, np.int64)
    count_rows(code, counts)
    return counts


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
    """Warn of columns of numbers, each a category, that no type and no parameter says to be some.

    Parameters
    ----------
    estimator : estimator
        That has learned all columns as categories.
    X : array or data frame
        What it has learned from.
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
        columns, each = ("Columns", "hold") if len(found) > 1 else ("Column", "holds")
        name, more = type(estimator).__name__, len(found) - MOST_LISTED
        rest = f" and {more} more" if more > 0 else ""
        warn(
            f"{columns} {', '.join(found[:MOST_LISTED])}{rest} of X {each} numbers, and {name} has "
            "a branch for each that occurs: others stop at the node. Use C45Classifier, which has "
            "thresholds, or make ranges of them with MDLPDiscretizer. If they are codes, list them "
            "in 'categorical_features'.",
        )


def _are_quantities(words: NDArray, n: int) -> bool:
    """Whether different numbers in n rows are more, or finer, than codes are, as of targets."""
    if words.dtype.kind == "b":
        return False
    fine = words.dtype.kind == "f" and (words != np.trunc(words)).any()
    return bool(fine) or words.size > MOST_CODES or 2 * words.size > n


def _percent(share: float) -> str:
    return f"{np.floor(1000 * share) / 10:g}%"
