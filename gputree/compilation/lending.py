"""Functions inside a kernel that arrays are lent to: references to them are not counted.

Numba counts references to every array that a function is given, takes apart or passes on, and
counts across threads. Where nodes are small, that takes longer than what is done with them.
Without counting, a function must neither make arrays, which numba refuses, nor return any to
what counts, which would take back a reference that was not counted, nor be returned one by what
counts, which nobody would take back. What breaks a rule is refused as it is compiled, but for one
thing that cannot be seen there: arrays that `overload_lent` returns to a function that counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from gputree.compilation.decorators import INNER, known_to_kernels, overload

LENT: dict[str, Any] = {**INNER, "_nrt": False}

# Functions with implementations for kinds of arguments that arrays are lent to.
_lent_stubs: set[Callable] = set()


def lent(function: Callable) -> Any:
    """Compile what only kernels call, and what arrays are lent to."""
    return known_to_kernels(function, LENT, _check)


def pasted(function: Callable) -> Any:
    """As `lent`; compiled into each place that calls it, so that no arguments are passed."""
    return known_to_kernels(function, {**LENT, "forceinline": True}, _check)


def overload_lent(stub: Callable, implementing: str | None = None) -> Callable:
    """As `overload`; arrays are lent to what is put in the place of `stub`.

    It may return those that it was given, but only to what they are lent to as well: that is not
    checked, and what counts would free them too early.
    """
    _lent_stubs.add(stub)
    return overload(stub, implementing, LENT)


def _check(compiled: Any) -> None:
    """Refuse what breaks the rules, of all that numba compiled of a function."""
    for made in compiled.overloads.values():
        faults = list(_faults(made))
        if faults:
            raise TypeError(f"{compiled.__name__}, which borrows arrays, {faults[0]}")


def _faults(made: Any) -> Iterator[str]:
    """What a function, as it was compiled for a kind of arguments, does against the rules."""
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
    """Whether a function has implementations that count."""
    stub = getattr(called, "typing_key", None)
    return inspect.isfunction(stub) and stub not in _lent_stubs


def has_arrays(kind: Any) -> bool:
    """Whether values of a type of numba's are arrays, or hold some."""
    from numba import types

    if isinstance(kind, types.BaseTuple):
        return any(map(has_arrays, kind))
    return isinstance(getattr(kind, "type", kind), types.Array)
