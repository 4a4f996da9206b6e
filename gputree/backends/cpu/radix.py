"""Stable sorting of whole columns by their bits.

    float     sign and magnitude, NaN last      ->  unsigned key of the same order
    key       digits of 11 bits, lowest first   ->  one counting pass a digit

Digits that all keys share are skipped: columns of small integers, or of few distinct
values, cost two or three passes whatever their width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.jit import borrowing, kernel

DIGIT_BITS = 11
DIGITS = 1 << DIGIT_BITS


def radix_argsort(column: NDArray) -> tuple[NDArray[np.int32], NDArray[np.unsignedinteger]]:
    """Rows of a float32 or float64 column in ascending order, NaN last; stable.

    Also returns keys of the sorted values: equal where these are (both zeros are), all ones for
    NaN.
    """
    kind = np.uint32 if column.dtype == np.float32 else np.uint64
    bits = 8 * column.dtype.itemsize
    keys = np.empty(column.size, kind)
    to_keys(column, column.view(kind), keys, kind(1), kind(bits - 1))
    return sort_keys(keys, np.arange(column.size, dtype=np.int32), bits)


@kernel
def to_keys(column, bits, keys, one, top):
    """Write unsigned keys in the order of the values: negative numbers with all bits inverted."""
    sign = one << top
    for i in range(keys.size):
        x = bits[i]
        if column[i] != column[i]:
            keys[i] = ~(sign ^ sign)  # all ones
        elif column[i] == 0:
            keys[i] = sign
        else:
            keys[i] = ~x if x & sign else x | sign


@borrowing
def count_digits(keys, shift, counts):
    """Count the keys with each digit at `shift`."""
    counts[:] = 0
    for i in range(keys.size):
        counts[np.intp((keys[i] >> shift) & (DIGITS - 1))] += 1


@kernel
def sort_keys(keys, order, bits):
    """`order` and `keys` rearranged so that the keys ascend; the arguments are used up."""
    other_keys = np.empty_like(keys)
    other = np.empty_like(order)
    counts = np.empty(DIGITS, np.int64)
    for shift in range(0, bits, DIGIT_BITS):
        step = keys.dtype.type(shift)
        count_digits(keys, step, counts)
        if counts[np.intp((keys[0] >> step) & (DIGITS - 1))] == keys.size:
            continue
        place = np.int64(0)
        for digit in range(DIGITS):
            n = counts[digit]
            counts[digit] = place
            place += n
        for i in range(keys.size):
            digit = np.intp((keys[i] >> step) & (DIGITS - 1))
            position = counts[digit]
            counts[digit] = position + 1
            other_keys[position] = keys[i]
            other[position] = order[i]
        keys, other_keys = other_keys, keys
        order, other = other, order
    return order, keys
