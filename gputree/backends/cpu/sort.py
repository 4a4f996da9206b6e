"""Sorting of values together with the items they belong to."""

from __future__ import annotations

from gputree.backends.cpu.jit import inner

# Runs of up to so many pairs are sorted by insertion, not cut further.
INSERTION_PAIRS = 24


@inner
def insert_pairs(values, items, begin, end, gap):
    """Insertion sort of every `gap`-th pair among its like."""
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


@inner
def insertion_sort(values, items, begin, end):
    insert_pairs(values, items, begin, end, 1)


@inner
def shell_sort(values, items, begin, end):
    """O(n**1.5) at worst, with gaps 1, 4, 13, ... (Knuth, Art of Computer Programming 5.2.1)."""
    gap = 1
    while 3 * gap + 1 < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        insert_pairs(values, items, begin, end, gap)
        gap //= 3


@inner
def swap(values, items, i, j):
    values[i], values[j] = values[j], values[i]
    items[i], items[j] = items[j], items[i]


@inner
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


@inner
def sort_pairs(values, items, begin, end, stack):
    """Sort ``values[begin:end]`` ascending and `items` along with it.

    Introspective sort (Musser 1997): quicksort, insertion sort for short runs, and past a
    depth of 64 Shell's sort, whose worst case is bounded. Equal values come in no stated order.
    `stack` is scratch, (64, 2) integers.
    """
    depth = 0
    while True:
        if end - begin <= INSERTION_PAIRS:
            insertion_sort(values, items, begin, end)
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
