"""Guesses about the feature columns of a table that was read."""

from __future__ import annotations

import pyarrow as pa

from gputree.datasets.conversion import Kinds, is_number_type
from gputree.datasets.csv_head import Opened
from gputree.datasets.file_format import FileFormat
from gputree.datasets.first_rows import guesses_of_first_rows
from gputree.datasets.guesses import Guess
from gputree.datasets.row_names import guesses_of_counters
from gputree.datasets.words import guesses_of_integers, guesses_of_text


def guesses_about(
    columns: pa.Table, opened: Opened | None, kinds: Kinds, form: FileFormat
) -> list[Guess]:
    """Guesses about the feature columns of a table; those with a given kind are none."""
    sure = {*kinds.text, *kinds.numeric, *kinds.categorical, *kinds.whole}
    open_ = columns.drop_columns([name for name in columns.column_names if name in sure])
    texts = guesses_of_text(open_, opened is not None)
    found = [*guesses_of_counters(open_), *guesses_of_integers(open_), *texts]
    if opened is not None:
        numbers = [field.name for field in columns.schema if is_number_type(field.type)]
        first = guesses_of_first_rows(opened, numbers, sure, form.decimal is not None)
        found = [*first, *found]
    return found
