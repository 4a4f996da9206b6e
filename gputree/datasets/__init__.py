"""Textbook tables, and readers for the user's own.

The tables are small enough to check by hand and are shipped with the package;
`read_table` brings CSV, Parquet, Arrow and ARFF files in, `read_batches` one that is too large
for the memory, `open_batches` one or many, `ArrayBatches` arrays that are mapped from files, for
`gputree.CodedTable.from_batches`.
"""

from gputree.datasets.arrays import ArrayBatches
from gputree.datasets.files import FileBatches, open_batches
from gputree.datasets.readers import Table, read_batches, read_table
from gputree.datasets.targets import infer_task
from gputree.datasets.textbook import (
    load_auto_mpg,
    load_contact_lenses,
    load_fish,
    load_golf,
    load_iris,
    load_loan,
    load_watermelon,
)

__all__ = [
    "ArrayBatches",
    "FileBatches",
    "Table",
    "infer_task",
    "load_auto_mpg",
    "load_contact_lenses",
    "load_fish",
    "load_golf",
    "load_iris",
    "load_loan",
    "load_watermelon",
    "open_batches",
    "read_batches",
    "read_table",
]
