"""Categories of a column: their order, and the code of a value.

Columns of numbers that are codes already: integers from 0 on, as ordinal encoders leave them.

Columns of text that are nearly numbers, such as 59 numbers and one "unknown": a tree takes them for
categories, one branch or subset for each number, and no order.
"""

import re
from collections import Counter
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import UNSEEN, Floats, Int64s, writable
from gputree.compilation import kernel

NUMBERS = "biuf"  # kinds of NumPy types whose values are numbers here; booleans are 0 and 1

EXACT_IN_FLOAT64 = 1 << 53  # integers up to this


def is_missing(value: Any) -> bool:
    """None, NaN in any of its types, and pandas.NA, which refuses to be compared."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def text_first_seen(values: NDArray) -> tuple[Int64s, NDArray[Any]]:
    """Code each object by its first appearance; also the distinct objects."""
    seen: dict[Any, int] = {}
    code = np.array([seen.setdefault(value, len(seen)) for value in values.tolist()], np.int64)
    return code, as_objects(list(seen))


def as_objects(values: list[Any]) -> NDArray[Any]:
    """The list as an array of objects, which NumPy does not inspect."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def as_numbers(values: list[Any]) -> NDArray[Any]:
    """Python's numbers as the smallest type that distinguishes them: objects where none does."""
    found = np.array(values) if values else np.empty(0)
    beyond = any(abs(value) > EXACT_IN_FLOAT64 for value in values if not isinstance(value, float))
    if found.dtype.kind not in NUMBERS or (found.dtype.kind == "f" and beyond):
        return _whole(values) if beyond else as_objects(values)
    return found


def _whole(values: list[Any]) -> NDArray[Any]:
    """Convert numbers, some of them large integers, to an array of integers if all are."""
    if all(isinstance(value, int) or value.is_integer() for value in values):
        values = list(map(int, values))
        for kind in (np.int64, np.uint64):
            if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
                return np.array(values, kind)
    return as_objects(values)


def in_order(values: NDArray) -> NDArray:
    """Distinct values in the order of categories: numbers by value, then text by code point."""
    if values.dtype.kind in NUMBERS:
        return np.sort(values)
    return as_objects(sorted(values.tolist(), key=lambda value: (isinstance(value, str), value)))


def kind_of(values: NDArray) -> str | None:
    """Return "numbers" (or booleans) or "text"; None if values are neither, or there are none."""
    if values.size == 0:
        return None
    if values.dtype.kind in NUMBERS:
        return "numbers"
    texts = sum(isinstance(value, str) for value in values.tolist())
    return {0: "numbers", values.size: "text"}.get(texts)


def hold_text(categories: NDArray | None) -> bool:
    """Return whether categories are text, or text among numbers."""
    if categories is None or categories.dtype.kind in NUMBERS:
        return False
    return any(isinstance(value, str) for value in categories) or categories.size == 0


class Lookup:
    """Codes of the values of a column with the categories `categories`; tables are made once."""

    def __init__(self, categories: NDArray) -> None:
        self.categories = categories

    @cached_property
    def kind(self) -> str | None:
        """See `kind_of`."""
        return kind_of(self.categories)

    def match(self, values: NDArray) -> Floats:
        """Code of each value: its place among the categories, or UNSEEN."""
        kinds = {self.categories.dtype.kind, values.dtype.kind}
        if kinds <= set(NUMBERS) and (len(kinds) == 1 or _are_small(values, self.categories)):
            return self._match_numbers(values)
        place = self._place
        return np.array([place.get(value, UNSEEN) for value in values.tolist()], np.float64)

    def _match_numbers(self, values: NDArray) -> Floats:
        categories, order = self.categories, self._order
        if categories.size == 0:
            return np.full(values.size, UNSEEN)
        place = np.searchsorted(categories, values, sorter=order).clip(max=categories.size - 1)
        code = order[place]
        return np.where(categories[code] == values, code, UNSEEN)

    @cached_property
    def _order(self) -> Int64s:
        return np.argsort(self.categories, kind="stable")

    @cached_property
    def _place(self) -> dict[Any, int]:
        return {category: code for code, category in enumerate(self.categories.tolist())}


def _are_small(*arrays: NDArray) -> bool:
    """Return whether all integers are exact as float64, which NumPy compares them as."""
    return all(
        array.size == 0
        or array.dtype.kind in "bf"
        or -EXACT_IN_FLOAT64 <= int(array.min()) <= int(array.max()) <= EXACT_IN_FLOAT64
        for array in arrays
    )


# Columns of larger integers are coded: a table of this size marks the codes that occur.
MOST_CODES = 1 << 16

# Of the numbers that are read as they are; others are coded.
TYPES = (np.float32, np.float64, np.int32, np.int64)


@kernel
def mark_codes(values: NDArray, columns: Int64s, limits: Int64s, seen: NDArray) -> bool:
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
def count_rows(codes: NDArray, counts: Int64s) -> None:
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


# What often stands in a cell that is missing. Columns of numbers and these alone are no categories.
MARKS = (
    "?", "-", "--", ".", "..", "*", "None", "none", "unknown", "missing", "na", "n.a.", "n.d.",
    "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null",
)  # fmt: skip

# Fraction of the cells that are numbers, and distinct numbers for each distinct text, from which
# other texts are a fault: codes such as 2, 4 and "more" are categories.
LEAST_SHARE = 0.9
LEAST_NUMBERS = 4

# Distinct decimals with a point from which a column of these alone is one of numbers. Integers as
# text may be codes, and so may a few decimals, such as engine sizes.
LEAST_DECIMALS = 20

MOST_EXAMPLES = 3

MINUS = "\u2212"  # as typeset tables have it

_NUMBER = re.compile(rf"\s*[+{MINUS}-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


class NearlyNumeric(NamedTuple):
    """Counts and examples of the cells of a column of text that is nearly numbers, or numbers."""

    n_numbers: int
    n_text: int  # other cells that are not missing; there may be none
    examples: list[str]  # different texts, the most frequent first, at most three
    marks: list[str]  # those of `MARKS` among all texts, the most frequent first
    has_minus: bool = False  # a number is negative by `MINUS`


def is_decimal(text: str) -> bool:
    """Return whether a text is a decimal number, perhaps with an exponent and blanks around it."""
    return _NUMBER.fullmatch(text) is not None


def nearly_numeric(words: Any, counts: Any = None) -> NearlyNumeric | None:
    """Count the numbers and the texts of a column, if it is nearly one of numbers.

    `words` are the cells, or the different ones and the number of cells of each, `counts`; blanks
    and what is no string are skipped. None where too many cells are no numbers: unless the texts
    are usual markers of missing values, at least 90% of the cells and four distinct numbers for
    each distinct text. None where all cells are numbers, too, but for 20 different decimals with a
    point.
    """
    cells: Counter[str] = Counter()
    listed = words.to_pylist() if hasattr(words, "to_pylist") else list(words)
    numbers_of_cells = [1] * len(listed) if counts is None else list(map(int, counts))
    for word, count in zip(listed, numbers_of_cells, strict=True):
        if count and isinstance(word, str) and (text := word.strip()):
            cells[text] += count
    texts = Counter({text: count for text, count in cells.items() if not is_decimal(text)})
    n_text, n_cells = texts.total(), cells.total()
    n_distinct = len(cells) - len(texts)
    has_minus = any(MINUS in text for text in cells.keys() - texts.keys())
    if not n_text:
        is_decimals = n_distinct >= LEAST_DECIMALS and all("." in text for text in cells)
        return NearlyNumeric(n_cells, 0, [], [], has_minus) if is_decimals else None
    if not n_distinct:
        return None
    ranked = [text for text, _ in texts.most_common()]
    marks = [text for text in ranked if text in MARKS]
    few = n_cells - n_text >= LEAST_SHARE * n_cells and n_distinct >= LEAST_NUMBERS * len(texts)
    if not few and len(marks) < len(texts):
        return None
    return NearlyNumeric(n_cells - n_text, n_text, ranked[:MOST_EXAMPLES], marks, has_minus)
