"""Random column subsets that depend on the node alone, not on the order of work."""

from __future__ import annotations

import numpy as np

from gputree.backends.cpu.jit import inner

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@inner
def mix(key):
    """SplitMix64 (Steele, Lea and Flood 2014): a well-mixed 64-bit hash of `key`."""
    z = np.uint64(key) + _INCREMENT
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@inner
def child_key(key, ordinal):
    """Key of a child: a hash of the path from the root."""
    return mix(np.uint64(key) ^ mix(np.uint64(ordinal + 1)))


@inner
def draw_columns(key, order):
    """Fill `order` with a permutation of its indices drawn from `key` (Fisher-Yates)."""
    for i in range(order.size):
        order[i] = i
    state = np.uint64(key)
    for i in range(order.size - 1, 0, -1):
        state = mix(state)
        j = np.int64(state % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
