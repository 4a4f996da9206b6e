"""Arrays in the form that kernels need."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
