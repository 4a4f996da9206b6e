"""Which subsets of categories are tried, and how much is held for it: on every device the same."""

from __future__ import annotations

from typing import NamedTuple

# Statistics of all categories of a node, at most, that are held at once (128 MB). Beyond,
# with more than two classes, single categories are tried, counted row by row.
MOST_CELLS = 1 << 24

# Runs up to which every one is moved at every head; beyond, at no and at all runs: the moves
# are as many as the square. Of 256, they take 2 ms on one core.
MOST_MOVED = 256


class SubsetSearch(NamedTuple):
    """Which subsets of a column's categories are tried.

    With two classes or a regression target, the best of all subsets is a head of the categories
    ordered by the share of one class or by the mean target (Breiman et al. 1984, section
    4.2.2; Fisher 1958); the best admissible one need not be where limits keep that head out, see
    `gputree.backends.cpu.subsets`. For more classes the best head over the orders by the share of
    each class is taken, beyond what is tried exhaustively.
    """

    # Of more than `many_categories` present in a node, one is split off the others, if they have
    # fewer known rows on average than `rows_per_category`.
    many_categories: int
    rows_per_category: float
    # Categories present in a node up to which every subset is tried: of more than two classes;
    # and where the least rows or weight of children keep a head out that is better than those
    # they admit. Of more, the heads with one category moved to the other side are tried.
    most_exhaustive: int
    most_limited: int
