"""The categories that the splits of a grown tree send left and right, from its nodes' rows.

Growth does not record them: once a tree is grown, a category goes to the child that has rows of it.
If the parent of a split tests the same column, only the smaller child is read: a chain of tests
that separate single categories from the rest costs n log n rows, not n^2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Backend, Int64s
from gputree.growth.assembly import GrownNodes
from gputree.nesting import Subsets


def list_subsets(
    backend: Backend, nodes: GrownNodes, parent: NDArray[np.int32], subset: Int64s
) -> Subsets:
    """List the subsets of a tree, numbered by `subset` (N,); -1 where a node tests none.

    `nodes` are breadth-first, and the backend's entries in the order after growth.
    """
    tested = np.flatnonzero(subset >= 0)
    first, above = nodes.first_child[tested], parent[tested]
    chained = (above >= 0) & (subset[above] >= 0) & (nodes.feature[above] == nodes.feature[tested])
    sizes = nodes.end - nodes.begin
    left_told = ~chained | (sizes[first] <= sizes[first + 1])
    right_told = ~chained | ~left_told
    split = np.concatenate([np.flatnonzero(left_told), np.flatnonzero(right_told)])
    n_left = int(left_told.sum())
    child = first[split]
    child[n_left:] += 1
    counts, code = backend.categories(
        nodes.begin[child], nodes.end[child], nodes.feature[tested[split]]
    )
    owner = np.repeat(split, counts)
    is_left = np.repeat(np.arange(split.size) < n_left, counts)
    order = np.lexsort((code, owner))
    begin = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=tested.size))])
    return Subsets(begin, code[order], is_left[order])
