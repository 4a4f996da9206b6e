"""Registrations with numba before the first compilation, and the options of all compilation."""

from collections.abc import Callable
from threading import RLock
from typing import Any

# nogil: kernels run on a thread pool. numpy's error model: a division by zero gives inf
# or NaN instead of a branch in every inner loop.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# Options that are omitted are inherited from the first caller. Wrappers that unpack records of a
# dozen arrays are a quarter of all compilation; only functions that Python calls need one.
INNER: dict[str, Any] = {
    **OPTIONS, "no_cpython_wrapper": True, "_nrt": True, "forceinline": False,
}  # fmt: skip

_undeclared: list[Callable[[], object]] = []
_declaring = RLock()


def when_compiling(tell: Callable[[], object]) -> None:
    """Register a function to call before the first compilation; it may import numba."""
    _undeclared.append(tell)


def declare() -> None:
    """Register everything with numba that was decorated since the last time."""
    while _undeclared:
        with _declaring:  # threads of the pool may declare at once
            if _undeclared:
                _undeclared[0]()
                del _undeclared[0]  # and not before: it may be interrupted


# Distance, in rows, between the row that is processed and the one whose codes are prefetched.
PREFETCH_ROWS = 64


def prefetch(array: Any, row: Any, column: Any) -> None:
    """Prefetch the cache line of ``array[row, column]``; of ``array[row]`` in one dimension.

    Interpreted, it does nothing.
    """


def _tell() -> None:
    from numba.extending import intrinsic

    from gputree.compilation.numba_internals import cpu_target

    typing = cpu_target.typing_context
    compiled = intrinsic(_prefetch)
    typing.refresh()
    prefetch._numba_type_ = typing.resolve_value_type(compiled)  # type: ignore[attr-defined]


when_compiling(_tell)


def _prefetch(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """`prefetch`, for numba's `intrinsic`."""
    from llvmlite import ir
    from numba import types

    from gputree.compilation.numba_internals import cgutils

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        strides = cgutils.unpack_tuple(builder, view.strides)
        byte_pointer = ir.IntType(8).as_pointer()
        int32 = ir.IntType(32)
        place = builder.mul(arguments[1], strides[0])
        if len(strides) > 1:
            place = builder.add(place, builder.mul(arguments[2], strides[1]))
        line = builder.gep(builder.bitcast(view.data, byte_pointer), [place])
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], function_type)
        builder.call(function, [line, int32(0), int32(3), int32(1)])  # read, keep, data
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate
