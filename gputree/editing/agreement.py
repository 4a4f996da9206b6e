"""Agreement of splits of one node: the sides of its rows by each, and their weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import THRESHOLD_SPLIT, Bools, Floats, Int64s
from gputree.base.threads import even_spans, run
from gputree.compilation import kernel
from gputree.tree import Tree

# Sides of a row.
SECOND, FIRST, UNKNOWN = 0, 1, 2

# Rows whose values stay in the cache while every split is looked at.
BLOCK_ROWS = 512
# Cells that a thread takes at least.
FEW_CELLS = 1 << 16
# Splits compared at a time, which bounds the memory for their sides.
GROUP = 16


class Agreement(NamedTuple):
    """Agreement of a split with the one in use; see `Alternative`."""

    share: float | None = None
    adjusted: float | None = None
    is_reversed: bool = False


def agreements(
    values: NDArray,
    rows: Int64s,
    weight: Floats | None,
    used: tuple[Tree, int],
    stumps: Sequence[Tree],
    n_threads: int,
) -> list[Agreement]:
    """Agreement of each stump with the split in use, a node of a tree.

    Rows that lack the value of the tested column do not count, those that lack the other value
    disagree. The adjusted agreement is None where the split in use sends all rows to one side, both
    are where one of the splits is not binary.
    """
    found = [Agreement()] * len(stumps)
    if used[0].n_children[used[1]] != 2:
        return found
    (base,) = sides_of(values, rows, [used], n_threads)
    is_known, is_first = base != UNKNOWN, base == FIRST
    total, first = _sum(is_known, weight), _sum(is_first, weight)
    most = max(first, total - first) / total

    def agree(mine: NDArray[np.uint8]) -> Agreement:
        both = is_known & (mine != UNKNOWN)
        same = _sum(both & (mine == base), weight)
        other = _sum(both, weight) - same
        share = max(same, other) / total
        adjusted = (share - most) / (1.0 - most) if most < 1.0 else None
        return Agreement(share, adjusted, other > same)

    binary = [i for i, stump in enumerate(stumps) if stump.n_children[0] == 2]
    for begin in range(0, len(binary), GROUP):
        group = binary[begin : begin + GROUP]
        sides = sides_of(values, rows, [(stumps[i], 0) for i in group], n_threads)
        for i, one in zip(group, run(n_threads, agree, [(s,) for s in sides]), strict=True):
            found[i] = one
    return found


def _sum(is_counted: Bools, weight: Floats | None) -> float:
    """Weight of the rows that are counted, or their number."""
    return float(np.count_nonzero(is_counted) if weight is None else weight[is_counted].sum())


def sides_of(
    values: NDArray, rows: Int64s, splits: list[tuple[Tree, int]], n_threads: int
) -> NDArray[np.uint8]:
    """Side of each row by each binary split, a node of a tree: (splits, rows)."""
    feature = np.array([tree.feature[node] for tree, node in splits], np.int64)
    threshold = np.array([tree.threshold[node] for tree, node in splits])
    codes = [
        np.empty(0, np.int64)
        if tree.split_kind[node] == THRESHOLD_SPLIT
        else np.asarray(tree.categories(int(tree.first_child[node])), np.int64)
        for tree, node in splits
    ]
    # categories up to the last one that goes to the first child; none for thresholds
    is_first = [np.bincount(listed).astype(np.bool_) for listed in codes]
    ends = np.cumsum([0, *(listed.size for listed in is_first)])
    out = np.empty((len(splits), rows.size), np.uint8)
    given = values, rows, feature, threshold, ends, np.concatenate(is_first), out
    parts = even_spans(rows.size, len(splits), n_threads, FEW_CELLS)
    run(n_threads, assign_sides, [(*given, begin, end) for begin, end in parts])
    return out


@kernel
def assign_sides(values, rows, feature, threshold, ends, is_first, out, begin, end):
    """Write the sides of rows ``begin .. end`` by each split to `out`.

    Split j has a threshold where ``ends[j] == ends[j + 1]``; else the category c goes to the first
    child by ``is_first[ends[j] + c]``, those beyond ``ends[j + 1]`` to the second.
    """
    one = np.uintp(1)
    for a in range(begin, end, BLOCK_ROWS):
        first, last = np.uintp(a), np.uintp(min(a + BLOCK_ROWS, end))
        for j in range(np.uintp(feature.size)):
            f, cut = np.uintp(feature[j]), threshold[j]
            start, n_codes = ends[j], ends[j + one] - ends[j]
            # The rows before i have their sides by split j, the rest by the splits before it.
            for i in range(first, last):
                value = np.float64(values[np.uintp(rows[i]), f])
                is_unknown = value != value
                if n_codes == 0 or is_unknown:
                    to_first = value <= cut
                else:
                    code = np.int64(value)
                    to_first = code < n_codes and is_first[start + code]
                out[j, i] = np.uint8(to_first) * FIRST + np.uint8(is_unknown) * UNKNOWN
