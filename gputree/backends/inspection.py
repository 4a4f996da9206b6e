"""Missing and infinite values in the columns of a table, on host or device, before it is coded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.cpu.encode import inspect_columns
from gputree.backends.encoding import forbid_infinity
from gputree.threads import even_spans, run

# Cells that one thread inspects at a time.
INSPECTED = 1 << 20


class Inspection:
    """Columns of a table on the host with missing and with infinite values, as far as seen."""

    def __init__(self, values: NDArray) -> None:
        self.values = values
        self.missing = np.zeros(values.shape[1], np.bool_)
        self.infinite = np.zeros(values.shape[1], np.bool_)

    def inspect(self, begin: int, end: int) -> None:
        """Inspect rows ``begin .. end``; threads may inspect different rows at once."""
        inspect_columns(self.values, begin, end, self.missing, self.infinite)


def missing_columns(values: Any, n_threads: int) -> NDArray[np.bool_]:
    """Mark columns of a NumPy or CuPy table with missing values.

    Raises
    ------
    ValueError
        If there is an infinite value.
    """
    n, d = values.shape
    if not isinstance(values, np.ndarray):
        from gputree.backends.cuda.encode import inspect_columns as inspect_on_device

        missing, infinite = inspect_on_device(values)
    elif not values.flags.c_contiguous:
        found = run(n_threads, _inspect_column, [(values[:, f : f + 1],) for f in range(d)])
        missing, infinite = np.array(found, np.bool_).reshape(d, 2).T
    else:
        seen = Inspection(values)
        run(n_threads, seen.inspect, even_spans(n, d, n_threads, INSPECTED))
        missing, infinite = seen.missing, seen.infinite
    forbid_infinity(infinite, values.dtype)
    return missing


def _inspect_column(column: NDArray) -> tuple[bool, bool]:
    """Return True for missing values in a column of shape (n, 1), and True for infinite ones."""
    seen = Inspection(np.ascontiguousarray(column))
    seen.inspect(0, column.shape[0])
    return bool(seen.missing[0]), bool(seen.infinite[0])
