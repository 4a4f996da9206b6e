"""Which nodes are opened, and how: histograms for large nodes, finishing for small ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Limits

# A node's histogram costs its cells, whatever its size; finishing costs its rows. Nodes of
# up to so many rows a statistic of an average column's histogram are finished. Measured at
# unlimited depth, CPU seconds with 1.5, 3, 6, 12, 25: 1,000,000 x 28 distinct values, 2
# classes, 5.6, 4.7, 4.6, 4.7, 5.0; with 3.5, 5, 7: 580,000 x 54, most columns binary,
# 7 classes, 2.3, 2.2, 2.0.
ROWS_PER_STATISTIC = 6.0

# Sorting pays over the levels that are left: with few, fewer rows are worth it. Measured
# on the first table at depth 8, CPU seconds: 1.05 without this limit, 0.75 with.
ROWS_PER_STATISTIC_LEVEL = 1.5

# Of a column of very many categories, the rows of a node are counted again on every level: so many
# statistics a row is what finishing saves there. Measured on 1,000,000 rows x 14 and a column of
# 100,000 categories, skewed, CPU seconds with 0.5 and 2.5: 1.25 and 1.50 at depth 8, 5.8 and 7.0
# at depth 16, 23.6 and 23.1 grown out.
STATISTICS_PER_CODE = 0.5

# Tables this small are finished from the root: coding them costs more than it saves.
FEWEST_ROWS = 256

# Rows x columns of the largest node that is finished: its sorted columns, at 8 bytes
# each, stay in a shared cache.
MOST_CELLS = 1 << 19


def can_split(rows: Int64s, depth: int, limits: Limits) -> NDArray[np.bool_]:
    """Nodes of so many rows that are deep and large enough to be looked at."""
    least = max(limits.min_samples_split, 2 * limits.min_samples_leaf, 2)
    return (rows >= least) & (depth < limits.max_depth)


def finish_rows(columns: int, statistics: int, levels: int, many: int = 0) -> int:
    """Nodes of at most this many rows, `levels` above the depth limit, are finished whole.

    `statistics` are those of a node's histogram, over all columns; `many` of the columns have
    more categories than histograms count.
    """
    share = min(ROWS_PER_STATISTIC, ROWS_PER_STATISTIC_LEVEL * levels)
    most = MOST_CELLS // columns
    row = columns / share - many * STATISTICS_PER_CODE if share > 0.0 else np.inf
    return max(FEWEST_ROWS, most if row * most <= statistics else int(statistics / row))
