"""Four float64 numbers in one register, for kernels: LLVM finds none in scalar code by itself.

Interpreted, they are arrays of NumPy.
"""

from functools import cache
from typing import Any

import numpy as np

from gputree.compilation.declared import when_compiling

LANES = 4


def no_lanes() -> Any:
    """Zeros."""
    return np.zeros(LANES)


def add_lanes(lanes: Any, array: Any, row: Any, column: Any) -> Any:
    """Sums of lanes and the float32 numbers from ``array[row, column]`` on; rows are contiguous."""
    return lanes + array[row, column : column + LANES]


def add_squares(lanes: Any, others: Any) -> Any:
    """Sums of lanes and the squares of others."""
    return lanes + others * others


def sum_of_lanes(lanes: Any) -> Any:
    """The sum of all four."""
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3])


def _tell() -> None:
    from numba.extending import intrinsic

    from gputree.compilation.numba_internals import cpu_target

    typing = cpu_target.typing_context
    choices: dict[Any, Any] = {
        no_lanes: _zeros, add_lanes: _add, add_squares: _add_squares, sum_of_lanes: _sum,
    }  # fmt: skip
    compiled = {function: intrinsic(choose) for function, choose in choices.items()}
    typing.refresh()
    for function, of_numba in compiled.items():
        function._numba_type_ = typing.resolve_value_type(of_numba)


when_compiling(_tell)


@cache
def _lanes() -> tuple[Any, Any]:
    """Numba's type of lanes, and LLVM's."""
    from llvmlite import ir
    from numba import types
    from numba.extending import models, register_model

    class Vector(types.Type):
        pass

    vector = ir.VectorType(ir.DoubleType(), LANES)

    @register_model(Vector)
    class _(models.PrimitiveModel):
        def __init__(self, manager: Any, kind: Any) -> None:
            super().__init__(manager, kind, vector)

    return Vector("lanes"), vector


def _zeros(typing_context: Any) -> Any:
    kind, vector = _lanes()
    return kind(), lambda context, builder, signature, arguments: vector(None)


def _add(typing_context: Any, lanes: Any, array: Any, row: Any, column: Any) -> Any:
    from llvmlite import ir
    from numba import types

    from gputree.compilation.numba_internals import cgutils

    kind, vector = _lanes()

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, array, row, column = arguments
        view = context.make_array(signature.args[1])(context, builder, array)
        width = cgutils.unpack_tuple(builder, view.shape)[1]
        place = builder.gep(view.data, [builder.add(builder.mul(row, width), column)])
        of_numbers = ir.VectorType(ir.FloatType(), LANES)
        numbers = builder.load(builder.bitcast(place, of_numbers.as_pointer()), align=4)
        return builder.fadd(lanes, builder.fpext(numbers, vector))

    return kind(kind, array, types.intp, types.intp), generate


def _add_squares(typing_context: Any, lanes: Any, others: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, others = arguments
        return builder.fadd(lanes, builder.fmul(others, others))

    return lanes(lanes, others), generate


def _sum(typing_context: Any, lanes: Any) -> Any:
    from llvmlite import ir
    from numba import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (lanes,), int32 = arguments, ir.IntType(32)
        a, b, c, d = (builder.extract_element(lanes, int32(j)) for j in range(LANES))
        return builder.fadd(builder.fadd(a, c), builder.fadd(b, d))

    return types.float64(lanes), generate
