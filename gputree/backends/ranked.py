"""Interface of growth over ranked lists: the rows that it is given, and the nodes that it returns.

For criteria whose losses are no sums over rows, so that a histogram does not give them: a list has
the rows of a node by one column, and a sweep through it finds the losses of all cuts. It runs on
the CPU, from one row to the next.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools, Floats, Int64s

Int32s = NDArray[np.int32]


class NodeRows(NamedTuple):
    """Rows by node; `weight` is None where every weight is one unit.

    By quantiles, each of k targets has the rows of a node in its order, as do their weights:
    `order` are their places in `row`, and None of one target, whose order `row` has.
    """

    row: Int32s  # of the table
    target: NDArray[Any]  # (k, n) in fixed point, per unit of weight; (n, k) of sums
    weight: Int64s | None  # (k, n); (n,) of sums
    order: Int32s | None = None  # (k, n)


class RankedNodes(NamedTuple):
    """Nodes of a tree, children in pairs; predictions and thresholds as rows that have them."""

    first_child: Int64s  # -1 at leaves
    feature: Int32s
    missing_left: Bools
    gain: Floats
    begin: Int64s
    end: Int64s
    loss: Int64s  # at the quantile
    weight: Int64s
    quantile: Int32s  # (N, k, 2): rows whose mean target the node predicts; none of sums
    cut: Int32s  # (N, 2): rows next to the cut; twice the same before missing values
