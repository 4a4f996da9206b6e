"""Textbook tables, and readers for the user's own.

The tables are small enough to check by hand and are shipped with the package;
`read_table` brings CSV, Parquet, Arrow and ARFF files in, `read_batches` one that is too large
for the memory, `open_batches` one or many, `ArrayBatches` arrays that are mapped from files, for
`gputree.CodedTable.from_batches`. Readers import pyarrow, and are imported on first use.
"""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.datasets.file_format import FileFormat as FileFormat
    from gputree.datasets.file_format import ReadingWarning as ReadingWarning
    from gputree.datasets.files import FileBatches as FileBatches
    from gputree.datasets.files import open_batches as open_batches
    from gputree.datasets.readers import Table as Table
    from gputree.datasets.readers import read_batches as read_batches
    from gputree.datasets.readers import read_table as read_table
    from gputree.datasets.sources import ArrayBatches as ArrayBatches
    from gputree.datasets.targets import infer_task as infer_task
    from gputree.datasets.textbook import load_auto_mpg as load_auto_mpg
    from gputree.datasets.textbook import load_contact_lenses as load_contact_lenses
    from gputree.datasets.textbook import load_fish as load_fish
    from gputree.datasets.textbook import load_golf as load_golf
    from gputree.datasets.textbook import load_iris as load_iris
    from gputree.datasets.textbook import load_loan as load_loan
    from gputree.datasets.textbook import load_watermelon as load_watermelon
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(__name__)
