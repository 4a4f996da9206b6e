"""Tables with strings and holes, from the libraries that hold them: fitted and coded."""

import pyarrow

from benchmarks.common import timer as timer
from benchmarks.data import mixed_table
from gputree.columns import fit_columns


class Columns:
    """10 columns of strings, 10 of numbers; "objects" is an array of Python's."""

    params = ([10_000, 100_000], ["pandas", "pyarrow", "objects"])
    param_names = ("rows", "library")

    def setup(self, rows, library):
        X, _ = mixed_table(rows)
        if library == "pyarrow":
            X = pyarrow.Table.from_pandas(X)
        self.X = X.to_numpy(dtype=object) if library == "objects" else X
        self.columns = fit_columns(self.X)

    def time_fit(self, rows, library):
        fit_columns(self.X)

    def time_encode(self, rows, library):
        self.columns.encode(self.X)

    def peakmem_encode(self, rows, library):
        self.columns.encode(self.X)
