"""Columns of numbers that are codes already: integers from 0 on, as ordinal encoders leave them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Int64s
from gputree.compilation import kernel
from gputree.compilation.arrays import writable

# Columns of larger integers are coded: a table of this size marks the codes that occur.
MOST_CODES = 1 << 16

# Of the numbers that are read as they are; others are coded.
TYPES = (np.float32, np.float64, np.int32, np.int64)


@kernel
def mark_codes(values, columns, limits, seen):
    """Mark in ``seen[j]``, if there is any, the numbers of column ``columns[j]``.

    False as soon as one is no integer of ``0 .. limits[j]``; NaN is passed over.
    """
    for i in range(values.shape[0]):
        for j in range(columns.size):
            x = np.float64(values[i, columns[j]])
            if x != x:
                continue
            if not 0.0 <= x < limits[j]:
                return False
            code = np.int64(x)
            if np.float64(code) != x:
                return False
            if seen.size:
                seen[j, code] = True
    return True


@kernel
def count_rows(codes, counts):
    """Add the rows of each code to `counts`; NaN is passed over."""
    for code in codes:
        if code == code:
            counts[np.int64(code)] += 1


def count_codes(code: NDArray, categories: int) -> Int64s:
    """Rows of each category; codes as a table has them, NaN where missing."""
    counts = np.zeros(categories, np.int64)
    count_rows(code, counts)
    return counts


def codes_present(values: NDArray, columns: Int64s) -> list[int] | None:
    """Number of codes of each column in `columns`, if all from 0 on are present.

    None where a column holds other numbers, or misses some: they are to be coded. None of a matrix
    that the kernel has no form for, either.
    """
    if not _is_read(values):
        return None
    most = min(MOST_CODES, len(values))  # of more codes than rows some are missing
    limits = np.full(columns.size, most)
    seen = np.zeros((columns.size, most), np.bool_)
    if not mark_codes(writable(values), columns, limits, seen):
        return None
    counts = np.count_nonzero(seen, axis=1)
    present: list[int] | None = counts.tolist()
    return (
        present
        if all(mask[:count].all() for mask, count in zip(seen, counts, strict=True))
        else None
    )


def hold_codes(values: NDArray, columns: Int64s, counts: Int64s) -> bool:
    """Return whether columns of a matrix hold nothing but codes below `counts`, and NaN."""
    if not _is_read(values):
        return False
    return bool(mark_codes(writable(values), columns, counts, np.zeros((0, 0), np.bool_)))


def _is_read(values: NDArray) -> bool:
    """Return whether there is a form of the kernel for a matrix."""
    return values.dtype in TYPES and values.flags.c_contiguous
