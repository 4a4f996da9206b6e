"""Keys: integers that increase with the values, so that ranges of values are ranges of integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.binning import MAX_BINS, Bins
from gputree.backends.cpu.jit import kernel
from gputree.compilation import jitable

Keys = NDArray[np.uint64]

# Bits of a float64 that are zero in values of float32.
FLOAT32_SHIFT = 29


@jitable
def key_of(x):
    """Bits of a float64 as an integer that increases with it: negative numbers are inverted."""
    bits = np.float64(np.float64(x) + 0.0).view(np.int64)  # -0.0 and 0.0 are one value
    flipped = bits ^ ((bits >> np.int64(63)) & np.int64(0x7FFFFFFFFFFFFFFF))
    return np.int64(flipped).view(np.uint64) ^ np.uint64(0x8000000000000000)


@kernel
def _fill_keys(values, shift, keys):
    for i in range(values.size):
        keys[i] = key_of(values[i]) >> np.uint64(shift)


def keys_of(values: NDArray, shift: int) -> Keys:
    """Keys of values without their last `shift` bits, which are all zero."""
    keys = np.empty(values.shape, np.uint64)
    _fill_keys(values.ravel(), shift, keys.reshape(-1))
    return keys


class BinKeys(NamedTuple):
    """Keys of the values in the bins of d columns."""

    low: Keys  # (d, 256)
    high: Keys  # (d, 256), included
    shift: int  # number of low bits dropped

    @classmethod
    def of(cls, bins: Bins, lowest: NDArray, highest: NDArray) -> BinKeys:
        """Compute keys from bins; no value of a column is beyond its `lowest` and `highest`."""
        d = bins.count.size
        shift = FLOAT32_SHIFT if bins.edge.dtype == np.float32 else 0
        edges = keys_of(bins.edge[:, : MAX_BINS - 1].copy(), shift)
        low, high = np.zeros((d, MAX_BINS), np.uint64), np.zeros((d, MAX_BINS), np.uint64)
        low[:, 1:], high[:, :-1] = edges + np.uint64(1), edges
        low[:, 0] = keys_of(lowest, shift)
        high[np.arange(d), bins.count - 1] = keys_of(highest, shift)
        return cls(low, high, shift)
