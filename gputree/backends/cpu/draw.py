"""Random column subsets that depend on the node only, not on the order of work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import borrowing, kernel
from gputree.hashing import mix

# Hashed with the node's key and the column to a rank.
_TIES = np.uint64(0x7469657362796861)


@borrowing
def draw_columns(key, order, done, upto):
    """Draw places ``done .. upto`` of a permutation (Fisher-Yates), those before them known.

    A number is the high half of a hash times their count, by 2**32 (Lemire 2019). Only as many are
    drawn as the node searches.
    """
    half = np.uint64(32)
    d = order.size
    if done == 0:
        for i in range(d):
            order[i] = i
    for i in range(done, upto):
        bits = mix(np.uint64(key) + np.uint64(i)) >> half
        j = i + np.int64((bits * np.uint64(d - i)) >> half)
        order[i], order[j] = order[j], order[i]


@borrowing
def tie_rank(limits, key, f):
    """Rank of column f among cuts of equal score in the node of `key`: the lowest wins."""
    return mix((np.uint64(key) ^ _TIES) + np.uint64(f)) if limits.random_ties else np.uint64(f)


@kernel
def _draw(key, order):
    draw_columns(key, order, 0, order.size)


def drawn_columns(max_features: int, key: np.uint64, d: int) -> NDArray[np.int64]:
    """The d columns in the order in which a node searches them."""
    order = np.arange(d)
    if max_features < d:
        _draw(key, order)
    return order
