"""Sorting of values together with the items they belong to, and of whole columns.

Whole columns are sorted stably by their bits:

    float     sign and magnitude, NaN last      ->  unsigned key of the same order
    key       digits of 11 bits, lowest first   ->  one counting pass a digit

Digits that all keys share are skipped: columns of small integers, or of few distinct
values, cost two or three passes whatever their width.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Int32s, Int64s
from gputree.compilation import borrowing, inner, kernel, overload_borrowing

DIGIT_BITS = 11
DIGITS = 1 << DIGIT_BITS


def radix_argsort(column: NDArray) -> tuple[Int32s, NDArray[np.unsignedinteger]]:
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


# Maximum number of pairs that are sorted by rank, not partitioned: vectors of a known length.
FEW_PAIRS = 32
# Maximum number that is sorted by insertion: most elements of the vectors would be unused.
FEWEST_PAIRS = 8


def insertion_pairs() -> int:
    """Return the maximum number of pairs that are sorted by insertion.

    `FEWEST_PAIRS`, once compiled. Interpreted, ranks have no vectors and take 30 times as long.
    """
    return FEW_PAIRS


@overload_borrowing(insertion_pairs)
def _insertion_pairs_compiled():
    return lambda: FEWEST_PAIRS


class Sorter(NamedTuple):
    """Scratch of `sort_pairs`."""

    stack: Int64s  # (64, 2): ends of the runs that wait
    values: Floats  # (FEW_PAIRS,) a run, and what each pair has before it
    items: Int64s
    rank: Int64s


@inner
def new_sorter():
    """Scratch of `sort_pairs`."""
    return Sorter(
        np.empty((64, 2), np.int64),
        np.empty(FEW_PAIRS, np.float64),
        np.empty(FEW_PAIRS, np.int64),
        np.empty(FEW_PAIRS, np.int64),
    )


@borrowing
def rank_sort(values, items, begin, end, sorter):
    """Sort at most `FEW_PAIRS` pairs, without a branch, by counting the pairs before each."""
    copied, copied_items, rank = sorter.values, sorter.items, sorter.rank
    first = np.uintp(begin)
    size = np.uintp(end - begin)
    for i in range(size):
        copied[i] = values[first + i]
        copied_items[i] = items[first + i]
    for i in range(np.uintp(FEW_PAIRS)):
        rank[i] = 0
    for j in range(size):
        value = copied[j]
        for i in range(np.uintp(FEW_PAIRS)):
            rank[i] += np.int64((value < copied[i]) | ((value == copied[i]) & (j < i)))
    for i in range(size):
        place = first + np.uintp(rank[i])
        values[place] = copied[i]
        items[place] = copied_items[i]


@borrowing
def insert_pairs(values, items, begin, end, gap):
    """Insertion sort of every `gap`-th pair."""
    for i in range(begin + gap, end):
        value = values[i]
        item = items[i]
        j = i - gap
        while j >= begin and values[j] > value:
            values[j + gap] = values[j]
            items[j + gap] = items[j]
            j -= gap
        values[j + gap] = value
        items[j + gap] = item


@borrowing
def shell_sort(values, items, begin, end):
    """Sort in O(n**1.5), with gaps 1, 4, 13, ... (Knuth, Art of Computer Programming 5.2.1)."""
    gap = 1
    while 3 * gap + 1 < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        insert_pairs(values, items, begin, end, gap)
        gap //= 3


@borrowing
def swap(values, items, i, j):
    values[i], values[j] = values[j], values[i]
    items[i], items[j] = items[j], items[i]


@borrowing
def split_pairs(values, items, begin, end):
    """Hoare partition around the median of three; returns the first place of the right part."""
    a = values[begin]
    b = values[(begin + end) // 2]
    c = values[end - 1]
    pivot = max(min(a, b), min(max(a, b), c))
    i = begin
    j = end - 1
    while True:
        while values[i] < pivot:
            i += 1
        while values[j] > pivot:
            j -= 1
        if i >= j:
            return j + 1 if i > j else i
        swap(values, items, i, j)
        i += 1
        j -= 1


@borrowing
def sort_pairs(values, items, begin, end, sorter):
    """Sort ``values[begin:end]`` ascending and `items` along with it.

    Introspective sort (Musser 1997): quicksort, short runs by rank, and past a depth of 64
    Shell's sort, whose worst case is bounded. Equal values come in no stated order.
    """
    stack = sorter.stack
    depth = 0
    # Pairs before `begin` are sorted. Then come begin .. end and, the last one first, the `depth`
    # ranges on the stack: unsorted, but no pair of one is larger than any of the next.
    while True:
        if end - begin <= 1:
            pass
        elif end - begin <= insertion_pairs():
            insert_pairs(values, items, begin, end, 1)
        elif end - begin <= FEW_PAIRS:
            rank_sort(values, items, begin, end, sorter)
        elif depth == stack.shape[0]:
            shell_sort(values, items, begin, end)
        else:
            middle = split_pairs(values, items, begin, end)
            middle = min(max(middle, begin + 1), end - 1)
            stack[depth, 0] = middle
            stack[depth, 1] = end
            depth += 1
            end = middle
            continue
        if depth == 0:
            return
        depth -= 1
        begin = stack[depth, 0]
        end = stack[depth, 1]
