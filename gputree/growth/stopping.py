"""Limits on the nodes that are split, and the choice between histograms and small subtrees."""

from __future__ import annotations

import numpy as np

from gputree.backends.base import Bools, Finishing, Int64s, Limits
from gputree.backends.rules import fewest_rows

# Sorting pays over the remaining levels: with few, it does for fewer rows. Measured on the first
# table at depth 8, CPU seconds: 1.05 without this limit, 0.75 with.
ROWS_PER_STATISTIC_LEVEL = 1.5

# In a column of very many categories, the rows of a node are counted again on every level: building
# a small subtree saves so many statistics per row there. Measured on 1,000,000 rows x 14 and a
# column of 100,000 categories, skewed, CPU seconds with 0.5 and 2.5: 1.25 and 1.50 at depth 8, 5.8
# and 7.0 at depth 16, 23.6 and 23.1 grown to full depth.
STATISTICS_PER_CODE = 0.5
ROWS_PER_STATISTIC_OF_MANY = 6.0  # with which that was measured

# Maximum number of levels that building all subtrees of a level saves: more are seldom as large.
# CPU ms of 4,500 x 28, depth 1, 2, 3, 4, 8, by histograms and with the root as a small node: 5.3
# and 7.4, 6.2 and 8.0, 7.9 and 8.6, 10.4 and 9.7, 13.0 and 12.3.
LEVELS_SAVED = 4

# The root of a table this small is a small node: coding the table costs more than it saves.
FEWEST_ROWS = 256

# Maximum rows x columns of a small node: its sorted columns, at 8 bytes each, stay in a shared
# cache.
MOST_CELLS = 1 << 19


def can_split(rows: Int64s, depth: int, limits: Limits) -> Bools:
    """Mark nodes of `rows` rows that may be split by depth and size."""
    return (rows >= fewest_rows(limits)) & (depth < limits.max_depth)


def finish_rows(
    finishing: Finishing, level: tuple[int, int], statistics: int, levels: int, many: int
) -> int:
    """Maximum number of rows of small nodes, `levels` above the depth limit.

    A node's histogram costs its statistics, over all columns, whatever its rows; building its
    subtree costs its rows. `level` has (entries, columns); `many` of the columns have more
    categories than bins.
    """
    rows, columns = level
    if rows * columns <= min(levels, LEVELS_SAVED) * finishing.level_cells:
        return rows
    cost, share = finishing.columns, finishing.rows_per_statistic
    if many:
        cost, share = columns, min(share, ROWS_PER_STATISTIC_OF_MANY)
    share = min(share, ROWS_PER_STATISTIC_LEVEL * levels)
    most = min(MOST_CELLS // columns, finishing.most_rows)
    row = cost / share - many * STATISTICS_PER_CODE if share > 0.0 else np.inf
    return max(FEWEST_ROWS, most if row * most <= statistics else int(statistics / row))
