"""Sets of rows as bits, 64 rows a word with the first row in the lowest bit; and keys of nodes.

A key is a hash of the path from the root, which does not depend on the order of work. Kernels call
these functions on single numbers, growth on arrays of them; CUDA has the same in draw.cuh.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools, Int64s
from gputree.compilation import borrowing, jitable

Words = NDArray[np.uint64]

WORD = 64

# Words that are worked on at a time: their masks stay in the caches from rule to rule.
SPAN = 64

# As uint64: numba makes a float of an unsigned and a signed number.
_ONE, _TWO, _FOUR = np.uint64(1), np.uint64(2), np.uint64(4)
_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_SMEARED = tuple(np.uint64(1 << shift) for shift in range(6))
_SUM, _TOP = np.uint64(0x0101010101010101), np.uint64(56)


def pack(mask: Bools) -> Words:
    """A mask of rows, shape (..., n), as words; rows behind the last are in no set."""
    n_words = -(-mask.shape[-1] // WORD)
    packed = np.zeros((*mask.shape[:-1], n_words * 8), np.uint8)
    packed[..., : -(-mask.shape[-1] // 8)] = np.packbits(mask, axis=-1, bitorder="little")
    return packed.view(np.dtype("<u8")).astype(np.uint64, copy=False)


@borrowing
def count_bits(word: np.uint64) -> Any:
    """Number of bits that are set in a word."""
    word = word - ((word >> _ONE) & _PAIRS)
    word = (word & _FOURS) + ((word >> _TWO) & _FOURS)
    word = (word + (word >> _FOUR)) & _BYTES
    return np.int64((word * _SUM) >> _TOP)


@borrowing
def lowest_bit(word: np.uint64) -> Any:
    """Place of the lowest bit of a word that is not 0."""
    return count_bits((word & (~word + _ONE)) - _ONE)


@borrowing
def highest_bit(word: np.uint64) -> Any:
    """Place of the highest bit of a word that is not 0."""
    for shift in _SMEARED:
        word |= word >> shift
    return count_bits(word) - 1


@borrowing
def meet_all(
    rows: np.uint64, masks: Words, w: int, begin: Int64s, condition: Int64s, rule: int
) -> Any:
    """Clear the bits of `rows`, rows of word w, that do not satisfy all conditions of a rule."""
    for i in range(begin[rule], begin[rule + 1]):
        rows &= masks[condition[i], w]
        if rows == 0:
            break
    return rows


@borrowing
def weigh(word: np.uint64, first: int, weight: Int64s) -> Any:
    """Weight of the rows in a word whose lowest bit is row `first`; without weights their count."""
    if weight.size == 0:
        return count_bits(word)
    total = np.int64(0)
    while word != 0:
        total += weight[first + lowest_bit(word)]
        word &= word - _ONE
    return total


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
