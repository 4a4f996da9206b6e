"""Columns of text that are nearly numbers."""

import numpy as np
import pyarrow as pa
import pytest

from gputree.columns.categories import is_decimal, nearly_numeric

NUMBERS = list(map(str, range(59)))


@pytest.mark.parametrize(
    "form", [list, np.array, pa.array, lambda words: pa.chunked_array([words])]
)
def test_counts_the_numbers_and_the_texts(form):
    found = nearly_numeric(form([*NUMBERS, "x"]))
    assert found is not None
    assert (found.n_numbers, found.n_text, found.examples, found.marks) == (59, 1, ["x"], [])


def test_examples_are_the_most_frequent_texts_and_marks_are_known_ones():
    found = nearly_numeric([*NUMBERS, "0", "7"], [*[10] * 59, 1, 1])
    assert found is None  # all are numbers
    found = nearly_numeric([*NUMBERS, "x", "?", "y", "z"], [*[10] * 59, 2, 5, 1, 1])
    assert (found.n_numbers, found.n_text) == (590, 9)
    assert found.examples == ["?", "x", "y"]
    assert found.marks == ["?"]


@pytest.mark.parametrize(
    "words",
    [
        ["2", "3", "4", "5more"] * 9,  # codes
        ["2", "4", "more"] * 9,
        ["a", "b", "c"],
        NUMBERS,
        [],
        [None, "", " "],
        ["?", "-"],  # no number at all
        [*NUMBERS, *(f"w{j}" for j in range(7))],  # 59 of 66
        ["1"] * 30 + ["x"],  # one number
    ],
)
def test_other_columns_are_categories(words):
    assert nearly_numeric(words) is None


def test_usual_marks_may_be_many():
    found = nearly_numeric(["1", "2", "-", "-", "-", "."])
    assert (found.n_numbers, found.n_text, found.marks) == (2, 4, ["-", "."])


def test_missing_cells_and_counts_of_zero_do_not_count():
    found = nearly_numeric([*NUMBERS, "x", "gone", None, np.nan, " "], [*[1] * 59, 1, 0, 9, 9, 9])
    assert (found.n_numbers, found.n_text, found.examples) == (59, 1, ["x"])


def test_decimals_are_ascii_digits_and_no_words():
    assert all(map(is_decimal, ["1", "-1.5", "+.5e-3", " 7. ", "007"]))
    assert not any(map(is_decimal, ["nan", "inf", "1_000", "0x1f", "1,5", "", ".", "٣"]))
