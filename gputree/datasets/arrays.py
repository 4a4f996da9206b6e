"""Arrays that are mapped from files: batches of their rows, read as often as needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.errors import InputError

# Bytes of a batch: small compared with the memory, large compared with the cost of a call.
BATCH_BYTES = 1 << 26


class ArrayBatches:
    """Batches of the rows of an array, for `gputree.CodedTable.from_batches`.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        An array such as ``np.load("X.npy", mmap_mode="r")`` is read a batch at a time.
    y : array of shape (n_rows,), or None
        Targets; mapped from a file, too, perhaps.

    Raises
    ------
    ValueError
        `X` has other than two dimensions, or `y` has another length.

    Examples
    --------
    >>> import numpy as np
    >>> from gputree import CodedTable
    >>> from gputree.datasets import ArrayBatches
    >>> X = np.lib.format.open_memmap("X.npy", "w+", np.float32, (1000, 3))  # doctest: +SKIP
    >>> table = CodedTable.from_batches(ArrayBatches(X))  # doctest: +SKIP
    """

    def __init__(self, X: NDArray[Any], y: NDArray[Any] | None = None) -> None:
        if X.ndim != 2:
            raise InputError(f"X must have rows and columns, got an array of shape {X.shape}.")
        if y is not None and y.shape != (len(X),):
            raise InputError(f"y must have the shape ({len(X)},), got {y.shape}.")
        self.X, self.y = X, y

    def __iter__(self) -> Iterator[NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]]:
        row = max(self.X.shape[1] * self.X.dtype.itemsize, 1)
        height = max(BATCH_BYTES // row, 1)
        for begin in range(0, len(self.X), height):
            rows = slice(begin, begin + height)
            values = np.asarray(self.X[rows])
            yield values if self.y is None else (values, np.asarray(self.y[rows]))
