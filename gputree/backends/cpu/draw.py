"""Random column subsets that depend on the node alone, not on the order of work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import kernel, lent
from gputree.hashing import mix


@lent
def draw_columns(key, order):
    """Fill `order` with a permutation of its indices drawn from `key` (Fisher-Yates)."""
    for i in range(order.size):
        order[i] = i
    state = np.uint64(key)
    for i in range(order.size - 1, 0, -1):
        state = mix(state)
        j = np.int64(state % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]


@kernel
def _draw(key, order):
    draw_columns(key, order)


def drawn_columns(max_features: int, key: np.uint64, d: int) -> NDArray[np.int64]:
    """The d columns in the order in which a node looks at them."""
    order = np.arange(d)
    if max_features < d:
        _draw(key, order)
    return order
