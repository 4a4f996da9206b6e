"""Functions inside kernels that borrow arrays: they do not count references.

Numba counts references, atomically, to every array that a function is given, unpacks or passes on.
Where nodes are small, that takes longer than the work on them. A function that does not count must
not allocate arrays, which numba refuses; nor return arrays to a function that counts, which would
release a reference that was never taken; nor receive one as the result of such a function, which
would never be released. Violations are errors of compilation, except one that is not visible then:
an array that an `overload_borrowing` implementation returns to a function that counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from gputree.compilation.declared import INNER
from gputree.compilation.decorators import known_to_kernels, overload

BORROWING: dict[str, Any] = {**INNER, "_nrt": False}

# Stubs whose implementations do not count references.
_borrowing_stubs: set[Callable] = set()


def borrowing(function: Callable) -> Any:
    """Compile a function that only kernels call, without reference counting."""
    return known_to_kernels(function, BORROWING, _check)


def pasted(function: Callable) -> Any:
    """Like `borrowing`; inlined by LLVM into every caller, so that no arguments are passed."""
    return known_to_kernels(function, {**BORROWING, "forceinline": True}, _check)


def overload_borrowing(stub: Callable, implementing: str | None = None) -> Callable:
    """Like `overload`, without reference counting in the implementations.

    They may return arrays that they were given, but only to callers that do not count either: that
    is not checked, and a caller that counts would release them too early.
    """
    _borrowing_stubs.add(stub)
    return overload(stub, implementing, BORROWING)


def _check(compiled: Any) -> None:
    """Raise TypeError if a compiled form of a function breaks the rules."""
    for made in compiled.overloads.values():
        faults = list(_faults(made))
        if faults:
            raise TypeError(f"{compiled.__name__}, which borrows arrays, {faults[0]}")


def _faults(made: Any) -> Iterator[str]:
    """Violations of the rules in one compiled form of a function."""
    from numba import types

    if has_arrays(made.signature.return_type):
        yield "returns arrays"
    for call, signature in made.fndesc.calltypes.items():
        if getattr(call, "op", None) != "call" or not has_arrays(signature.return_type):
            continue
        called = made.fndesc.typemap[call.func.name]
        if isinstance(called, types.Dispatcher) or _is_counting(called):
            yield f"takes arrays from {called}"


def _is_counting(called: Any) -> bool:
    """Return True if a function has implementations that count references."""
    stub = getattr(called, "typing_key", None)
    return inspect.isfunction(stub) and stub not in _borrowing_stubs


def has_arrays(kind: Any) -> bool:
    """Return True if a numba type is an array, or a tuple that contains one."""
    from numba import types

    if isinstance(kind, types.BaseTuple):
        return any(map(has_arrays, kind))
    return isinstance(getattr(kind, "type", kind), types.Array)
