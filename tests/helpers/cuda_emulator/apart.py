"""Separate places for the arrays of a checked launch: no access of one can reach another.

Arrays of one allocation are next to each other, and an index beyond the end of one is
within the bounds of the next. Kernels therefore get copies that lie far apart:

    one allocation   |  a  |  b  |  c  |
    a launch         |  a  |      ...      |  b  |      ...      |  c  |

Those as large as the gap stay where they are: the system maps each alone, and copies of them would
fill the memory that their untouched pages do not take.
"""

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PAGE = 4096

# Bytes between two arrays; untouched pages use no memory.
GAP = 1 << 28

MAP_NORESERVE = 0x4000


class Pointed(NamedTuple):
    """A device array that a kernel is given, and where the kernel reads its address."""

    host: NDArray
    read_only: bool
    pointer: NDArray[np.uint64]  # (1,)


@contextmanager
def set_apart(arrays: list[Pointed]) -> Iterator[None]:
    """Replace pointers by those of separate copies; changes of these are copied back."""
    groups = [group for group in _overlapping(arrays) if group[1] < GAP]
    places = np.cumsum([0, *(size // PAGE * PAGE + 2 * PAGE + GAP for _, size, _ in groups)])
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    with mmap.mmap(-1, int(places[-1]) + PAGE, flags) as room:
        copies = []
        buffer = ctypes.c_char.from_buffer(room)
        first = ctypes.addressof(buffer)
        del buffer  # or it could not be closed
        for (begin, size, members), place in zip(groups, places, strict=False):
            copy = first + int(place) + begin % PAGE  # aligned as the array itself
            ctypes.memmove(copy, begin, size)
            for array in members:
                array.pointer[0] = int(array.pointer[0]) - begin + copy
            copies.append((copy, begin, size))
        yield
        for (copy, begin, size), (*_, members) in zip(copies, groups, strict=True):
            if not all(array.read_only for array in members):
                ctypes.memmove(begin, copy, size)


def _overlapping(arrays: list[Pointed]) -> Iterator[tuple[int, int, list[Pointed]]]:
    """Addresses and sizes of memory, each with the arrays that share it."""
    group: list[Pointed] = []
    begin = end = 0
    for array in sorted(arrays, key=lambda array: int(array.pointer[0])):
        address = int(array.pointer[0])
        if group and address >= end:
            yield begin, end - begin, group
            group = []
        if not group:
            begin = end = address
        group.append(array)
        end = max(end, address + array.host.nbytes)
    if group:
        yield begin, end - begin, group
