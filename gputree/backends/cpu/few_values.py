"""The distinct values of a column that has few, without sorting all of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import kernel

# Slots of the table that values are looked up in: at least four for each.
SLOT_BITS = 10
SLOTS = 1 << SLOT_BITS
MOST = SLOTS // 4

# Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): the highest bits count.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - SLOT_BITS)


def few_values(values: NDArray, most: int) -> NDArray | None:
    """Distinct known values of a column in ascending order; None if there are more than `most`.

    Parameters
    ----------
    values : float32 or float64 array of shape (n,)
        NaN where missing; both zeros are one value, 0.0.
    most : int
        At most `MOST`.
    """
    bits = values.view(np.uint32 if values.dtype == np.float32 else np.uint64)
    sign, infinity = (np.array([x], values.dtype).view(bits.dtype)[0] for x in (-0.0, np.inf))
    found = np.empty(most, bits.dtype)
    count = collect_few(bits, sign, infinity, found)
    return None if count < 0 else np.sort(found[:count].view(values.dtype))


@kernel
def collect_few(bits, sign, infinity, found):
    """Collect distinct values, by their bits, in `found`; how many, -1 if it has no room."""
    free = ~np.uint64(0)  # the bits of no number
    slots = np.full(SLOTS, free, np.uint64)
    count = 0
    for i in range(bits.size):
        key = bits[i]
        if key & ~sign > infinity:  # NaN
            continue
        own = np.uint64(key) * np.uint64(key != sign)
        slot = np.uint64(own * _GOLDEN) >> _SHIFT
        while slots[slot] != own:
            if slots[slot] == free:
                if count == found.size:
                    return -1
                slots[slot] = own
                found[count] = own
                count += 1
                break
            slot = (slot + np.uint64(1)) & np.uint64(SLOTS - 1)
    return count
