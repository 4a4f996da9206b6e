"""Sorting of values together with the items they belong to."""

from __future__ import annotations

from gputree.backends.cpu.jit import inner

# Below this many pairs insertion beats partitioning; 12 to 40 measured alike.
INSERTION_PAIRS = 24


@inner
def insertion_sort(values, items, begin, end):
    for i in range(begin + 1, end):
        value = values[i]
        item = items[i]
        j = i - 1
        while j >= begin and values[j] > value:
            values[j + 1] = values[j]
            items[j + 1] = items[j]
            j -= 1
        values[j + 1] = value
        items[j + 1] = item


@inner
def swap(values, items, i, j):
    values[i], values[j] = values[j], values[i]
    items[i], items[j] = items[j], items[i]


@inner
def sift_down(values, items, begin, root, size):
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and values[begin + child] < values[begin + child + 1]:
            child += 1
        if values[begin + root] >= values[begin + child]:
            return
        swap(values, items, begin + root, begin + child)
        root = child


@inner
def heap_sort(values, items, begin, end):
    size = end - begin
    for root in range(size // 2 - 1, -1, -1):
        sift_down(values, items, begin, root, size)
    for last in range(size - 1, 0, -1):
        swap(values, items, begin, begin + last)
        sift_down(values, items, begin, 0, last)


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

    Introspective sort (Musser 1997): quicksort, insertion sort for short runs, heap sort
    past a depth of 64, so O(n log n) always. Equal values come in no stated order.
    `stack` is scratch, (64, 2) integers.
    """
    depth = 0
    while True:
        if end - begin <= INSERTION_PAIRS:
            insertion_sort(values, items, begin, end)
        elif depth == stack.shape[0]:
            heap_sort(values, items, begin, end)
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
