"""Data that live on a CUDA device: recognised without CuPy, taken without the host.

CuPy arrays, cuDF frames and columns, and what shares memory by ``__cuda_array_interface__``
or by DLPack from a CUDA device (PyTorch, JAX, Numba).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s
from gputree.backends.cuda.device import device_of
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.layout import to_device
from gputree.columns.specification import EXACT_IN_FLOAT32

# Devices of DLPack: kDLCUDA and kDLCUDAManaged.
_CUDA = (2, 13)


def on_device(X: Any) -> bool:
    """Whether `X` lies in the memory of a CUDA device."""
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

    Nothing is copied where `X` is that already, and nothing to the host. None where `X`
    holds more than integers and floats: categories are coded on the host.
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
    with device_of(array):
        return cupy().ascontiguousarray(array.astype(_float_dtype(array), copy=False))


def to_host(X: Any) -> Any:
    """`X` on the host: cuDF columns as pandas has them, cuDF frames for others to read."""
    if not on_device(X):
        return X
    if _is_cudf(X):
        return X if getattr(X, "ndim", 1) == 2 else X.to_pandas()
    return _as_cupy(X).get()


def take_rows(X: Any, rows: Int64s | NDArray[np.bool_]) -> Any:
    """Some rows of an array, on the device where it is."""
    if isinstance(X, np.ndarray):
        return X[rows]
    with device_of(X):
        return X[to_device(rows)]


def _is_cudf(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "cudf"


def _as_cupy(X: Any) -> Any:
    """The same memory as a CuPy array."""
    if hasattr(X, "__cuda_array_interface__"):
        return cupy().asarray(X)
    return cupy().from_dlpack(X)


def _float_dtype(array: Any) -> type[np.floating]:
    """float32 where it is exact, else float64, as for arrays on the host."""
    size = array.dtype.itemsize
    if array.dtype.kind == "f":
        return np.float32 if size <= 4 else np.float64
    if size <= 2 or array.size == 0:
        return np.float32
    greatest = max(int(array.max()), -int(array.min()))
    return np.float32 if greatest <= EXACT_IN_FLOAT32 else np.float64
