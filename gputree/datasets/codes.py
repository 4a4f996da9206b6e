"""Columns of classes and categories whose cells say more than a number or a time that they spell.

As numbers 007, 07 and 7 are one; as classes and categories they are three. So a column that is
used as such keeps its text where an integer in it has leading zeros or is of the kind 0x1F,
and where a reader takes its cells for dates or times, such as 10:30. Integers beyond 64 bits,
which a reader rounds to float64, are decimals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from gputree.datasets.conversion import is_date

_WHOLE = r"^[+-]?\d+$"
_MOST_DIGITS = 38  # of a decimal
_EXACT = float(1 << 53)  # integers up to this are float64

_LEADING_ZEROS = r"^\s*[+-]?0(\d+|[xX][0-9a-fA-F]+)\s*$"


def says_more_than(kind: pa.DataType, words: pa.ChunkedArray) -> bool:
    """Return whether values of the type that a reader infers would lose something of their text."""
    if is_date(kind):
        return True
    number = types.is_integer(kind) or types.is_floating(kind)
    return number and leading_zeros(words) is not None


def exact_numbers(found: pa.ChunkedArray, words: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers as a reader found them in `words`, or as decimals where it has rounded whole ones.

    `words` themselves where those have too many digits. Where a cell has a fraction, all are as
    found.
    """
    if not pa.types.is_floating(found.type):
        return found
    if not pc.any(pc.greater(pc.abs(found), _EXACT)).as_py():
        return found
    digits = pc.if_else(found.is_null(), pa.scalar(None, pa.string()), words)
    digits = pc.utf8_trim_whitespace(digits)
    if not pc.all(pc.match_substring_regex(digits, _WHOLE)).as_py():
        return found
    digits = pc.utf8_ltrim(digits, "+")
    longest = pc.max(pc.utf8_length(pc.utf8_ltrim(digits, "-"))).as_py()
    # more digits wrap around in a cast
    return words if longest > _MOST_DIGITS else digits.cast(pa.decimal128(_MOST_DIGITS))


def leading_zeros(words: pa.ChunkedArray | NDArray[Any]) -> str | None:
    """The first cell of text that is an integer with leading zeros; None if there is none."""
    words = pa.array(words) if isinstance(words, np.ndarray) else words
    place = pc.index(pc.match_substring_regex(words, _LEADING_ZEROS), True).as_py()
    return None if place < 0 else str(words[place])
