"""The decorators of all code that numba compiles. None of them imports numba.

    kernel         what Python calls: a `Kernel`, which Python runs or numba compiles
    inner          what only kernels call
    jitable        what Python calls as it is, and kernels too
    overload       what kernels put in the place of a stub
    lent, pasted   what arrays are lent to: see `lending`

All but kernels stay the functions they are, so that a kernel that Python runs calls them directly.
Numba is told what they are to it, by `declare`, before it first compiles.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from gputree.compilation import sources, store, tiers

# nogil: kernels run on a thread pool. numpy's error model: a division by zero gives inf
# or NaN instead of a branch in every inner loop.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# What is not given here is taken from whatever calls a function first. Wrappers that take apart
# tables of a dozen arrays are a quarter of all compilation; only what Python calls needs one.
INNER: dict[str, Any] = {
    **OPTIONS, "no_cpython_wrapper": True, "_nrt": True, "forceinline": False,
}  # fmt: skip

_making = threading.Lock()
_undeclared: list[Callable[[], object]] = []


def when_compiling(tell: Callable[[], object]) -> None:
    """Call `tell`, which may import numba, before anything is compiled."""
    _undeclared.append(tell)


def declare() -> None:
    """Tell numba of all that was decorated since the last time."""
    while _undeclared:
        _undeclared[0]()
        del _undeclared[0]  # and not before: it may be interrupted


class Kernel:
    """A function that Python runs while that is cheap, and that numba compiles or loads else.

    Which of them a call is, `tiers` decides; the answer is the same to the bit. What was compiled
    is kept on disk.

    Parameters
    ----------
    function : callable
        Of a module of gputree; every argument is positional.

    Attributes
    ----------
    py_func : callable
        The function.
    """

    def __init__(self, function: Callable) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.tier = tiers.Tier(function)
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, with the forms that were compiled or loaded so far."""
        if self._dispatcher is None:
            from gputree.compilation import dispatchers

            with _making:
                self._dispatcher = self._dispatcher or dispatchers.of_kernel(self)
        return self._dispatcher

    @property
    def is_loaded(self) -> bool:
        """Whether some form of the kernel was compiled or loaded in this process."""
        return self._dispatcher is not None

    @property
    def has_machine_code(self) -> bool:
        """Whether some form of the kernel was compiled or loaded here, or lies on disk."""
        return self._dispatcher is not None or self._is_kept

    @cached_property
    def _is_kept(self) -> bool:
        """Whether there is machine code on disk, for some kind of arguments."""
        return store.any_kept(self.py_func)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # pickled by name, as functions are

    @property
    def _numba_type_(self) -> Any:
        """What a kernel that is called by a kernel is to numba."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        if tiers.is_never():
            return self.interpret(*arguments)
        if self._dispatcher is None and self.tier.is_interpreted(arguments, self._is_kept):
            return self.interpret(*arguments)
        try:
            return self.dispatcher(*arguments)
        except tiers.NotCompiled:  # in this form
            pass
        if self.tier.is_interpreted(arguments):
            return self.interpret(*arguments)
        with self.tier.compiling():
            return self.dispatcher(*arguments)

    def interpret(self, *arguments: Any) -> Any:
        """Run the function in Python, as silent about infinities and overflow as compiled code."""
        with self.tier.interpreting(arguments), np.errstate(all="ignore"):
            return self.py_func(*arguments)


def kernel(function: Callable) -> Kernel:
    """Compile what Python calls, as far as that pays; what was compiled is kept on disk."""
    return Kernel(function)


def inner(function: Callable) -> Any:
    """Compile what only kernels call."""
    return known_to_kernels(function, INNER)


def known_to_kernels(
    function: Callable, options: dict[str, Any], check: Callable[[Any], None] | None = None
) -> Callable:
    """Let kernels call a function, compiled with `options`; `check` takes what was compiled."""

    def tell() -> None:
        from gputree.compilation import dispatchers

        attributes: Any = function
        attributes.dispatcher = dispatchers.of_function(function, options, check)
        attributes._numba_type_ = attributes.dispatcher._numba_type_  # refers to it weakly

    when_compiling(tell)
    return function


def written_out(function: Callable) -> Any:
    """Compile a function as if it were written where it is called: references as there."""
    options = {**INNER, "inline": "always"}
    # What numba's pass looks for in what it may write out.
    function.targetoptions = options  # type: ignore[attr-defined]
    function.py_func = function  # type: ignore[attr-defined]
    return known_to_kernels(function, options)


def jitable(function: Callable) -> Any:
    """Leave a function to Python as it is; kernels may call it, too."""

    def tell() -> None:
        from numba.extending import register_jitable

        register_jitable(function)

    when_compiling(tell)
    return function


def overload(
    stub: Callable, implementing: str | None = None, options: dict[str, Any] = INNER
) -> Callable:
    """Decorate the choice of what kernels put in the place of `stub`, as numba's `overload`.

    `implementing` is the module of the code put there, where it is not the decorated one's.
    """

    def register(choose: Callable) -> Callable:
        sources.link(stub.__module__, implementing or choose.__module__)
        tiers.link(stub, choose)

        def tell() -> None:
            from numba.extending import overload

            overload(stub, jit_options=options, strict=False)(choose)

        when_compiling(tell)
        return choose

    return register


def is_none(kind: Any) -> bool:
    """Whether a type of numba's, as a choice of `overload` is given, is that of None."""
    from numba import types

    return isinstance(kind, types.NoneType)
