"""Which nodes are opened, and how: histograms for large nodes, finishing for small ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s, Limits

# A node's histogram costs its bins, whatever its size; finishing costs its rows. Nodes of
# up to so many rows a bin of an average column are finished. Measured at unlimited depth,
# CPU seconds with 3, 6, 12, 25, 50: 1,000,000 x 28 distinct values 5.6, 4.7, 4.6, 4.7, 5.0;
# with 9, 18, 36, 70: 580,000 x 54, most columns binary, 2.3, 2.0, 2.0, 2.0.
ROWS_PER_BIN = 14

# Sorting pays over the levels that are left: with few, fewer rows are worth it. Measured
# on the first table at depth 8, CPU seconds: 1.05 without this limit, 0.75 with.
ROWS_PER_BIN_LEVEL = 3

# Tables this small are finished from the root: coding them costs more than it saves.
FEWEST_ROWS = 256

# Rows x columns of the largest node that is finished: its sorted columns, at 8 bytes
# each, stay in a shared cache.
MOST_CELLS = 1 << 19


def can_split(begin: Int64s, end: Int64s, depth: int, limits: Limits) -> NDArray[np.bool_]:
    """Nodes that are deep and large enough to be looked at."""
    size = end - begin
    least = max(limits.min_samples_split, 2 * limits.min_samples_leaf, 2)
    return (size >= least) & (depth < limits.max_depth)


def finish_rows(columns: int, cells: int, levels: int) -> int:
    """Nodes of at most this many rows, `levels` above the depth limit, are finished whole."""
    balance = min(ROWS_PER_BIN, ROWS_PER_BIN_LEVEL * levels) * cells // columns
    return max(FEWEST_ROWS, min(balance, MOST_CELLS // columns))
