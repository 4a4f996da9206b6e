"""Every dtype and sentinel of the package, each with its reason; arrays as kernels need them.

What kernels, trees and model files share by name is here, so that the CPU and the CUDA
side agree. Counts and fixed-point sums are int64, scores and statistics float64 throughout.

In all documentation and comments of gputree a range ``a .. b`` holds a and not b, as
Python's ranges do; where a list is meant that ends with its last item, it has commas.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Arrays by the type of their items, as signatures name them.
Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Bools = NDArray[np.bool_]
Values = NDArray[np.floating]  # float32 or float64
Weight = Floats | None  # of rows; None where all have the weight 1

ROW = np.int32  # index of a row: half the traffic of 64 bits; `MOST_ROWS` is checked
CODE = np.uint8  # bin of a value: 256 bins keep a row of codes in a cache line
CATEGORY = np.int32  # code of a category in a tree: what rows of any number can have
NODE = np.int32  # index of a node; the number of nodes is checked
MOST_ROWS = 2**31 - 1
MOST_COLUMNS = 2**31 - 1  # features of nodes are 32-bit

# Leaves carry scikit-learn's sentinels, so that arrays of both compare equal.
NO_CHILD = -1
NO_FEATURE = -2
NO_THRESHOLD = -2.0

# Where a node sends a value that is missing: the ordinal of a child (>= 0), or
MISSING_TO_ALL = -1  # down every branch, with fractional weights (C4.5)
MISSING_STOPS = -2  # nowhere: the node itself predicts (leaves; ID3's unseen values)

# How a node splits.
LEAF = 0
THRESHOLD_SPLIT = 1  # x <= threshold goes to the first child, else to the second
BRANCH_SPLIT = 2  # one child a category
SUBSET_SPLIT = 3  # categories in a subset go to the first child, else the second

NO_BRANCH = -1  # entry of a table from categories: this one was not seen at the node

# Codes that stand for no category and no class.
MISSING_CODE = np.uint32(0xFFFFFFFF)  # missing, in attribute lists: sorts behind every other code
MISSING_CELL = -1  # missing, in a column by its distinct values: the last place of a lookup table
UNSEEN = -1.0  # a category that was not in the table of fit
UNKNOWN_CLASS = -1  # a label that the tree was not grown on: always an error

NO_LEAF = -1  # instead of the leaf of a row in a tree that has drawn it
NO_TARGET = -1  # instead of the target that a row leaves out
LISTED = -1  # instead of a number of codes that a table has, in prediction: a list is searched

# Instead of a child, while a tree is grown or pruned.
WAITS = -2  # the column of a node that is to be looked at again for its split (CUDA)
NO_FRAME = -1  # above a frame of subtree raising whose entries are where they should be


class Record(np.void):  # type: ignore[misc]  # final in NumPy's stubs alone
    """A record whose fields are attributes; NumPy's takes twice the time to read one."""

    __getattr__ = np.void.__getitem__
    __setattr__ = np.void.__setitem__


def record(fields: list[Any], *, align: bool = True) -> np.dtype[Any]:
    """Dtype of records whose fields kernels read as ``record.field``, compiled or not."""
    return np.dtype((Record, np.dtype(fields, align=align)))


def writable(values: NDArray[Any]) -> NDArray[Any]:
    """Return a view of the same memory that is not marked read-only.

    Nothing writes to a table, but numba would compile every kernel again, for 10 to 20 s, for the
    read-only arrays of memory maps and joblib's workers.
    """
    if values.flags.writeable or values.size == 0:
        return values
    interface = {**values.__array_interface__, "data": (values.ctypes.data, False)}
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=values))
