"""Textbook tables, and readers for the user's own.

The tables are small enough to check by hand and are shipped with the package;
`read_table` brings CSV and Parquet files in.
"""

from gputree.datasets.readers import Table, infer_task, read_table
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
    "Table",
    "infer_task",
    "load_auto_mpg",
    "load_contact_lenses",
    "load_fish",
    "load_golf",
    "load_iris",
    "load_loan",
    "load_watermelon",
    "read_table",
]
