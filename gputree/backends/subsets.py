"""Searches of category subsets, and their memory: the same on every device."""

from __future__ import annotations

from typing import NamedTuple

# Maximum number of statistics of categories of a node that are stored at once (128 MB). Beyond,
# with more than two classes, only single categories are tried, counted row by row.
MOST_CELLS = 1 << 24

# Maximum number of runs that are all moved at every prefix; beyond, only at the empty and the
# full prefix, since the number of moves is quadratic. For 256 runs, they take 2 ms on one core.
MOST_MOVED = 256


class SubsetSearch(NamedTuple):
    """Sizes that decide which subsets of a column's categories are tried.

    With two classes or a regression target, the best of all subsets is a prefix of the categories
    ordered by the probability of one class or by the mean target (Breiman et al. 1984, section
    4.2.2; Fisher 1958); the best admissible one may be another where limits exclude that prefix
    (`gputree.backends.cpu.subsets`). For more classes, where not every subset is tried, it is the
    best prefix over the orders by the probability of each class.
    """

    # With more than `many_categories` in a node, a single one is split off the others, if these
    # have fewer known rows on average than `rows_per_category`.
    many_categories: int
    rows_per_category: float
    # Maximum number of categories in a node with which every subset is tried: of more than two
    # classes; and where the minimum rows or weight of children exclude a prefix that is better than
    # the admitted ones. With more, the prefixes with one category moved to the other side are
    # tried.
    most_exhaustive: int
    most_limited: int
