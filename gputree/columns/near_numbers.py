"""Columns of text that are nearly numbers, such as 59 numbers and one "unknown", or all numbers.

A tree takes such a column for categories: one branch or subset for each number, and no order.
"""

import re
from collections import Counter
from typing import Any, NamedTuple

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
