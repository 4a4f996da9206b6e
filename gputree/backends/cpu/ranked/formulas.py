"""The parts of growth over ranked lists that depend on the criterion, as stubs.

Kernels call them, and the type of the criterion selects the formula: those of losses are in
`losses`, those of sums over several targets in `sums`.
"""

from __future__ import annotations

from gputree.criteria.dispatch import stub


@stub
def new_totals(criterion, rows, size):
    """Memory for the statistics of nodes of at most `size` rows that `open_node` finds."""


@stub
def new_sides(criterion, rows, size):
    """Memory for the sides of a cut, in nodes of at most `size` rows."""


@stub
def measure_targets(criterion, rows, s, t, out, node):
    """Write the weight of a node and what it predicts; the loss is 0 where no cut gains."""


@stub
def open_node(criterion, rows, s, t, totals):
    """Statistics of a node that is searched: scalars; arrays are written into `totals`."""


@stub
def group_keys(criterion, elements, begin, rows, s):
    """Two arrays by which groups of equal values, from ``begin[g]`` on, are ordered."""


@stub
def search_subsets(
    criterion, limits, elements, begin, rows, s, totals, opened, sides, order
):  # fmt: skip
    """Change the `order` of few groups so that a prefix of it is the best of their subsets."""


@stub
def sweep(
    criterion, limits, elements, known, missing_left, rows, s, totals, opened, sides, cut,
    column, column_rank,
):  # fmt: skip
    """The better of `cut` and the best cut of a column's list.

    `known` elements have a value; the rows of the others are on the left from the beginning if
    `missing_left`. `totals` and `opened` are the node's, and `sides` is scratch.
    """


@stub
def cut_of_sides(criterion, limits, rows, s, totals, opened, sides, ranks, column, column_rank):
    """The cut of a column with the rows of `ranks` 0 on its left, and of -1 on its right.

    `no_cut` where the limits do not admit it.
    """


@stub
def new_counts(criterion, codes, slots):
    """Memory for `count_rows`, for so many nodes."""


@stub
def count_rows(criterion, codes, columns, counts, slot, rows, s, t):
    """Add up the rows of a node by their codes in those of some columns that have no list."""


@stub
def slot_of(criterion, ranked, counts, n, source):
    """A slot for the counts of a node of n rows; 0, that of any node, where it needs none."""


@stub
def slot_below(criterion, ranked, counts, slot, source, n, both):
    """The slot of the larger child of a node, of n rows, where `both` children are searched; or 0.

    It becomes its counts when those of the smaller child are subtracted: as these counts now are
    from the slot `source`, if that is not 0.
    """


@stub
def count_cuts(criterion, ranked, size, totals, opened, counts, slot, cut, column, rank):
    """The better of `cut` and the best cut of a column by its codes, as `sweep` finds it.

    `size` is the number of rows. Counts of slot 0 are cleared. The place of a cut is the code of
    the last value on its left.
    """


@stub
def no_cut(criterion):
    """The cut that every other precedes; its column is -1."""


@stub
def precedes(criterion, a, b):
    """Return True if cut `a` is chosen before cut `b`."""


@stub
def is_best(criterion, cut, rows, size, opened):
    """Return True if no cut by a later column precedes `cut` in a node of `size` rows."""


@stub
def gain_of(criterion, cut, out, node, totals, opened):
    """Decrease of the loss by a cut of a node, and per unit of weight."""


@stub
def partition_targets(criterion, rows, s, ranks, sides):
    """Partition the targets and weights of a node's rows, as `partition_values`."""
