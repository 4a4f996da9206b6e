"""Keys of nodes: hashes that depend on a path from the root, not on the order of work.

Kernels call these on single numbers, growth on arrays of them; CUDA has the same in draw.cuh.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gputree.compilation import jitable

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@jitable
def mix(key: Any) -> Any:
    """SplitMix64 (Steele, Lea and Flood 2014): a well-mixed 64-bit hash of `key`."""
    z = np.uint64(key) + _INCREMENT
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@jitable
def child_key(key: Any, ordinal: Any) -> Any:
    """Key of a child: a hash of the path from the root."""
    return mix(np.uint64(key) ^ mix(np.uint64(ordinal + 1)))
