"""The parameter `device`, data in the memory of a CUDA device, and columns coded by their values.

CuPy arrays, cuDF frames and columns, and any object that exports ``__cuda_array_interface__`` or,
from a CUDA device, DLPack (PyTorch, JAX, Numba) are recognized without CuPy, and read without a
copy to the host. Columns of attribute lists are coded losslessly, on the host for every device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gputree.backends import cuda
from gputree.backends.cpu.encode import inspect_columns
from gputree.backends.cpu.sort import radix_argsort, sort_keys
from gputree.backends.lists import ColumnCodes
from gputree.base.dtypes import MISSING_CODE, ROW, Bools, Int32s, Int64s
from gputree.base.lazy import provided
from gputree.base.memory import OutOfMemory, require_memory
from gputree.base.threads import even_spans, run
from gputree.columns.specification import EXACT_IN_FLOAT32
from gputree.errors import InputError, warn
from gputree.prediction.sparse import SparseRows

T = TypeVar("T")

# Differences that a warning quotes.
MOST_QUOTED = 2


def resolve_device(device: str, verbose: bool = False) -> str:
    """Return the device that a tree is grown on: "cpu", "cuda" or one by its number, as "cuda:1".

    "cuda" is always used, as the current device, or that of a table on one; and so is one with a
    number. Where it cannot be, errors are as for `gputree.backends.get_backend`.
    "auto" is a CUDA device if nothing is missing and its check, run when the device is first used,
    found the same trees there as on the CPU; else the CPU, with a RuntimeWarning if the check
    failed. If `verbose`, the choice of "auto" and its reason are written to standard error where
    there may be a device.
    """
    if device == "cpu":
        return device
    from gputree.backends.cuda import machine

    # before the check nothing runs on a device in this process, not even an empty kernel
    problem = machine.missing(device, compiles=device != "auto")
    if device != "auto":
        if problem is not None:
            raise problem
        return device
    if problem is not None:
        if verbose and machine.has_driver():
            _say(f"grows on the CPU: {problem}")
        return "cpu"
    return _checked(verbose)


def other_devices(device: str, used: int, verbose: bool = False) -> list[str]:
    """Names of the visible CUDA devices other than number `used`, as "cuda:1", that may grow trees.

    Nothing is missing on them, and where the parameter `device` is "auto" they passed the check.
    """
    from gputree.backends.cuda import machine

    found = []
    for name in (f"cuda:{j}" for j in range(machine.device_count()) if j != used):
        if machine.missing(name, compiles=device != "auto") is None:
            with machine.entered(name):
                if device != "auto" or _checked(verbose) != "cpu":
                    found.append(name)
    return found


def within_memory(
    device: str, chosen: str, grow: Callable[[str], T], leave: Callable[[str], object]
) -> T:
    """Call `grow` with the device `chosen` for the parameter `device`, or with the CPU.

    The CPU takes the place of a CUDA device that "auto" has chosen and whose memory does not
    suffice, with a RuntimeWarning that says what is lacking; with "cuda" that is a MemoryError.
    `leave` is called with that device, to release what lies there, and `grow` again from the start.
    A device that has a number in `chosen` is the current one meanwhile.
    """
    if chosen == "cpu":
        return grow(chosen)
    from gputree.backends.cuda import machine, memory

    with machine.entered(chosen):
        try:
            return grow(chosen)
        except MemoryError as error:
            reason = memory.refused_allocation(error)
            if device != "auto":
                if reason is None:
                    raise
                # no variable: its traceback would keep what these frames have allocated
                raise OutOfMemory(reason, memory.INSTEAD) from error
            reason = reason or getattr(error, "reason", str(error))
        leave(chosen)
        memory.release()  # after the error, whose frames have what was allocated
    warn(f"device='auto' goes on with the CPU: {reason}", RuntimeWarning)
    return grow("cpu")


def _checked(verbose: bool) -> str:
    """Return the current CUDA device if its check passed."""
    from gputree.backends.cuda import machine

    name = machine.identity().device
    differences = provided("what_differs")()
    if differences:
        more = len(differences) - MOST_QUOTED
        quoted = "; ".join(differences[:MOST_QUOTED]) + (f"; and {more} more" if more > 0 else "")
        warn(
            f"device='auto' grows on the CPU: the check of the CUDA device {name} failed "
            f"({quoted}). `gputree check` checks it again.",
            RuntimeWarning,
        )
        return "cpu"
    if verbose:
        _say(f"grows on the CUDA device {name}")
    return "cuda"


def _say(line: str) -> None:
    if sys.stderr is not None:
        print(f"device='auto' {line}", file=sys.stderr)


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
    if (
        isinstance(values, np.ndarray | SparseRows)
        or kind not in "iu"
        or getattr(y, "ndim", 0) != 1
    ):
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


def take_rows(X: Any, rows: Int64s | Bools) -> Any:
    """Rows of an array, selected by index or mask, on the device where the array is."""
    if isinstance(X, SparseRows):
        return X.take(rows)
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
    """A CuPy array over the memory of `X`."""
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


def missing_columns(values: Any, n_threads: int) -> Bools:
    """Mark columns that have missing values, of any table; ValueError for infinite ones."""
    n, d = values.shape
    if isinstance(values, SparseRows):
        missing, infinite = np.zeros((2, d), np.bool_)
        values.inspect(0, n, missing, infinite)
    elif not isinstance(values, np.ndarray):
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


# Codes, and the distinct values of each numeric column.
CodedColumns = tuple[ColumnCodes, list[NDArray]]


def code_columns(values: NDArray, nominal: Bools, n_threads: int) -> CodedColumns:
    """Code every column by its distinct values, and sort the rows by it.

    `values` (n, d), NaN where missing, are read by columns: Fortran order is faster. Values 0, 1,
    ... of `nominal` columns are their codes. Also returns the distinct values of each numeric
    column, ascending; `InfinityError` if one has an infinite value.
    """
    n, d = values.shape
    cell_bytes = np.dtype(ROW).itemsize + np.dtype(np.uint32).itemsize
    require_memory(
        n * d * cell_bytes,
        f"Sorting {n:,} rows by each of {d:,} columns",
        "Use fewer rows or columns.",
    )
    codes = ColumnCodes(np.empty((d, n), ROW), np.empty((d, n), np.uint32))
    distinct = run(
        n_threads,
        _code_column,
        [(values[:, f], bool(nominal[f]), codes.order[f], codes.code[f]) for f in range(d)],
    )
    ends = [found[:: max(found.size - 1, 1)] for found in distinct]  # ascending
    forbid_infinity(np.array([bool(np.isinf(end).any()) for end in ends]), values.dtype)
    return codes, distinct


class InfinityError(InputError):
    """A column, of number `column`, has an infinite value."""

    def __init__(self, dtype: np.dtype, column: int, label: str | None = None) -> None:
        super().__init__(
            f"Input X contains infinity or a value too large for {dtype!r}, in column "
            f"{column if label is None else repr(label)}."
        )
        self.dtype, self.column = dtype, column

    def named(self, names: Any) -> InfinityError:
        """Return the same error with the name of the column, if columns have names."""
        label = None if names is None else str(names[self.column])
        return InfinityError(self.dtype, self.column, label)


def forbid_infinity(infinite: Bools, dtype: np.dtype) -> None:
    """Raise ValueError if a column is marked as having an infinite value."""
    if infinite.any():
        raise InfinityError(dtype, int(np.flatnonzero(infinite)[0]))


def _code_column(
    column: NDArray, nominal: bool, order: Int32s, code: NDArray[np.uint32]
) -> NDArray:
    """Fill `order` and `code`; returns the distinct values of a numeric column."""
    if nominal:
        missing = np.isnan(column)
        after = np.fmax.reduce(column, initial=0) + 1  # of missing values: fewer digits than NaN
        keys = np.where(missing, after, column).astype(np.uint32)
        rows = np.arange(keys.size, dtype=np.int32)
        order[:], code[:] = sort_keys(keys, rows, int(after).bit_length())
        code[keys.size - np.count_nonzero(missing) :] = MISSING_CODE
        return column[:0]
    order[:], keys = radix_argsort(np.ascontiguousarray(column))
    n_present = int(np.searchsorted(keys, np.array(-1).astype(keys.dtype)))
    code[n_present:] = MISSING_CODE
    first = np.ones(n_present, np.bool_)
    np.not_equal(keys[1:n_present], keys[: max(n_present - 1, 0)], out=first[1:])
    np.cumsum(first, out=code[:n_present], dtype=np.uint32)
    code[:n_present] -= np.uint32(1)
    return column[order[:n_present][first]]
