"""Data in the memory of a CUDA device: recognized without CuPy, read without a copy to the host.

CuPy arrays, cuDF frames and columns, and any object that exports ``__cuda_array_interface__`` or,
from a CUDA device, DLPack (PyTorch, JAX, Numba).

Missing and infinite values in the columns of a table, on host or device, before it is coded.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends import cuda
from gputree.backends.base import Int64s
from gputree.backends.cpu.encode import inspect_columns
from gputree.backends.encoding import forbid_infinity
from gputree.base.threads import even_spans, run
from gputree.columns.specification import EXACT_IN_FLOAT32
from gputree.prediction.sparse import SparseRows

# Devices of DLPack: kDLCUDA and kDLCUDAManaged.
_CUDA = (2, 13)


def on_device(X: Any) -> bool:
    """Return True if `X` is in the memory of a CUDA device."""
    if isinstance(X, np.ndarray | list | tuple) or X is None:
        return False
    if _is_cudf(X) or hasattr(X, "__cuda_array_interface__"):
        return True
    try:
        return X.__dlpack_device__()[0] in _CUDA
    except (AttributeError, TypeError, RuntimeError, BufferError, NotImplementedError):
        return False


def device_matrix(X: Any) -> Any:
    """`X` of `on_device` as a C-contiguous float32 or float64 CuPy array, NaN where missing.

    Nothing is copied to the host, and nothing at all where `X` already is such an array. None where
    `X` has values other than integers and floats: categories are coded on the host.
    """
    if _is_cudf(X):
        dtypes = list(X.dtypes) if hasattr(X, "iloc") and X.ndim == 2 else [X.dtype]
        if not all(isinstance(dtype, np.dtype) and dtype.kind in "iuf" for dtype in dtypes):
            return None
        small = all(dtype.itemsize <= (4 if dtype.kind == "f" else 2) for dtype in dtypes)
        X = X.to_cupy(dtype=np.float32 if small else np.float64, na_value=np.nan)
    array = _as_cupy(X)
    if array.dtype.kind not in "iuf":
        return None
    with cuda.device_of(array):
        return cuda.cupy().ascontiguousarray(array.astype(_float_dtype(array), copy=False))


def to_host(X: Any) -> Any:
    """`X` on the host: cuDF columns as pandas has them, cuDF frames for others to read."""
    if not on_device(X):
        return X
    if _is_cudf(X):
        return X if getattr(X, "ndim", 1) == 2 else X.to_pandas()
    return _as_cupy(X).get()


def device_labels(y: Any, values: Any) -> Any:
    """Integer labels of shape (n,) on the device of `values`, or `y` on the host.

    Labels on the host are copied to the device of the table: the device needs them, and finds their
    range faster than the host does.
    """
    kind = getattr(getattr(y, "dtype", None), "kind", "O")
    if isinstance(values, np.ndarray) or kind not in "iu" or getattr(y, "ndim", 0) != 1:
        return to_host(y)
    with cuda.device_of(values):
        if isinstance(y, np.ndarray):
            return cuda.to_device(y) if y.size else y
        return _on_current(_as_cupy(y)) if on_device(y) and len(y) else to_host(y)


def on_named(X: Any, device: str) -> Any:
    """A CuPy array, copied if it is on another device than that of a name such as "cuda:1"."""
    with cuda.entered(device):
        return _on_current(X) if ":" in device else X


def _on_current(X: Any) -> Any:
    """A CuPy array, copied to the current device if it is on another one."""
    here = cuda.cupy().cuda.Device()
    if X.device.id == here.id:
        return X
    X.device.synchronize()  # streams of two devices do not wait for each other
    copy = X.copy()
    here.synchronize()
    return copy


def label_range(y: Any) -> tuple[int, int]:
    """Minimum and maximum of integer labels on a device."""
    with cuda.device_of(y):
        return int(y.min()), int(y.max())


def count_labels(y: Any, low: int, high: int) -> tuple[NDArray[Any], Any]:
    """Labels that occur, ascending on the host, and the code of each row on the device."""
    xp = cuda.cupy()
    with cuda.device_of(y):
        wide = np.int64 if y.dtype.kind == "i" else np.uint64  # int8 cannot represent 127 - -128
        place = (y.astype(wide) - wide(low)).astype(np.int64)
        present = xp.zeros(high - low + 1, dtype=np.int32)
        present[place] = 1
        seen = np.flatnonzero(present.get())
        code = np.zeros(present.size, np.int32)
        code[seen] = np.arange(seen.size)
        return (seen.astype(wide) + wide(low)).astype(y.dtype), cuda.to_device(code)[place]


def take_rows(X: Any, rows: Int64s | NDArray[np.bool_]) -> Any:
    """Rows of an array, selected by index or mask, on the device where the array is."""
    if isinstance(X, np.ndarray):
        return X[rows]
    with cuda.device_of(X):
        return X[cuda.to_device(rows)]


def take_column(X: Any, f: int) -> Any:
    """Column f as a C-contiguous array of shape (n, 1), on the device where it is."""
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X[:, f : f + 1])
    with cuda.device_of(X):
        return cuda.cupy().ascontiguousarray(X[:, f : f + 1])


def _is_cudf(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "cudf"


def _as_cupy(X: Any) -> Any:
    """The same memory as a CuPy array."""
    if hasattr(X, "__cuda_array_interface__"):
        return cuda.cupy().asarray(X)
    return cuda.cupy().from_dlpack(X)


def _float_dtype(array: Any) -> type[np.floating]:
    """float32 where it is exact, else float64, as for arrays on the host."""
    size = array.dtype.itemsize
    if array.dtype.kind == "f":
        return np.float32 if size <= 4 else np.float64
    if size <= 2 or array.size == 0:
        return np.float32
    highest = max(int(array.max()), -int(array.min()))
    return np.float32 if highest <= EXACT_IN_FLOAT32 else np.float64


# Cells that one thread inspects at a time.
INSPECTED = 1 << 20


class Inspection:
    """Columns of a table on the host with missing and with infinite values, as far as seen."""

    def __init__(self, values: NDArray | SparseRows) -> None:
        self.values = values
        self.missing = np.zeros(values.shape[1], np.bool_)
        self.infinite = np.zeros(values.shape[1], np.bool_)

    def inspect(self, begin: int, end: int) -> bool:
        """Inspect rows ``begin .. end``; return whether values are missing there, or before.

        Threads may inspect different rows at once.
        """
        of = self.values
        inspect = of.inspect if isinstance(of, SparseRows) else partial(inspect_columns, of)
        inspect(begin, end, self.missing, self.infinite)
        return bool(self.missing.any())


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
    else:
        missing, infinite = np.zeros(d, np.bool_), np.zeros(d, np.bool_)

        def inspect(a: int, b: int) -> None:
            inspect_columns(values, a, b, missing, infinite)

        def inspect_copy(f: int) -> None:
            column, place = np.ascontiguousarray(values[:, f : f + 1]), slice(f, f + 1)
            inspect_columns(column, 0, n, missing[place], infinite[place])

        if values.flags.c_contiguous:
            run(n_threads, inspect, even_spans(n, d, n_threads, INSPECTED))
        else:
            run(n_threads, inspect_copy, [(f,) for f in range(d)])
    forbid_infinity(infinite, values.dtype)
    return missing
