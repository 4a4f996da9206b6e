"""Decorators of all code that numba compiles. None of them imports numba.

    kernel      called by Python: a `Kernel`, which is interpreted or compiled
    inner       called by kernels only
    borrowing   like `inner`, without reference counting: see below
    pasted      like `borrowing`, inlined
    written_out like `inner`, inlined
    jitable     called by Python, unchanged, and by kernels
    overload    chooses the function that kernels call in place of a stub

Decorators other than `kernel` return the function unchanged, so that an interpreted kernel calls it
directly. They are registered with numba before the first compilation: see `declared`.

Functions inside kernels that borrow arrays: they do not count references.

Numba counts references, atomically, to every array that a function is given, unpacks or passes on.
Where nodes are small, that takes longer than the work on them. A function that does not count must
not allocate arrays, which numba refuses; nor return arrays to a function that counts, which would
release a reference that was never taken; nor receive one as the result of such a function, which
would never be released. Violations are errors of compilation, except one that is not visible then:
an array that an `overload_borrowing` implementation returns to a function that counts.

The numba releases that gputree is tested with: `pyproject.toml` has the same bounds.

Kernels are kept, linked and interrupted through parts of numba that are not its public interface,
so that another minor release may need another gputree.
"""

import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

import numpy as np

from gputree import __version__
from gputree.compilation import sources, store, tiers
from gputree.compilation.declared import INNER, when_compiling
from gputree.errors import warn

_making = threading.Lock()


class Kernel:
    """A function that Python runs while that is cheap, and that numba compiles or loads otherwise.

    `tiers` decides for each call; results are equal bit for bit. Compiled forms are cached on disk.
    Every argument is positional.
    """

    def __init__(self, function: Callable) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function  # of a module of gputree
        self.tier = tiers.Tier(function)
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, with the forms that were compiled or loaded so far."""
        if self._dispatcher is None:
            warn_of_newer()  # before imports that may fail with it
            from gputree.compilation import dispatchers

            with _making:
                self._dispatcher = self._dispatcher or dispatchers.of_kernel(
                    self.py_func, self.tier
                )
        return self._dispatcher

    @property
    def is_loaded(self) -> bool:
        """True if some form of the kernel was compiled or loaded in this process."""
        return self._dispatcher is not None

    @property
    def has_machine_code(self) -> bool:
        """True if some form of the kernel was compiled or loaded here, or is cached on disk."""
        return self._dispatcher is not None or self._is_kept

    @cached_property
    def _is_kept(self) -> bool:
        """True if machine code is cached on disk, for some kind of arguments."""
        return store.any_kept(self.py_func)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__  # pickled by name, as functions are

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of a kernel that is called by a kernel."""
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
    """Decorate a function that Python calls: compiled when that pays, and cached on disk."""
    return Kernel(function)


def inner(function: Callable) -> Any:
    """Decorate a function that only kernels call."""
    return known_to_kernels(function, INNER)


def known_to_kernels(
    function: Callable, options: dict[str, Any], check: Callable[[Any], None] | None = None
) -> Callable:
    """Register a function for kernels, compiled with `options`; `check` gets the compiled form."""

    def tell() -> None:
        from gputree.compilation import dispatchers

        attributes: Any = function
        attributes.dispatcher = dispatchers.of_function(function, options, check)
        attributes._numba_type_ = attributes.dispatcher._numba_type_  # refers to it weakly

    when_compiling(tell)
    return function


def written_out(function: Callable) -> Any:
    """Compile a function inline; references are counted as in its caller."""
    options = {**INNER, "inline": "always"}
    # Attributes that numba's pass for inlining reads.
    function.targetoptions = options  # type: ignore[attr-defined]
    function.py_func = function  # type: ignore[attr-defined]
    return known_to_kernels(function, options)


def jitable(function: Callable) -> Any:
    """Decorate a function that Python calls unchanged, and that kernels may call, too."""

    def tell() -> None:
        from numba.extending import register_jitable

        register_jitable(function)

    when_compiling(tell)
    return function


def overload(
    stub: Callable, implementing: str | None = None, options: dict[str, Any] = INNER
) -> Callable:
    """Decorate a function that chooses the implementation of `stub`, as numba's `overload`.

    `implementing` is the module of the implementations, if not the one of the decorated function.
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
    """Return True if a numba type, an argument of an `overload` function, is the type of None."""
    from numba import types

    return isinstance(kind, types.NoneType)


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


def overload_pasted(stub: Callable, implementing: str | None = None) -> Callable:
    """Like `overload_borrowing`; the implementations are inlined as those of `pasted`."""
    _borrowing_stubs.add(stub)
    return overload(stub, implementing, {**BORROWING, "forceinline": True})


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


@borrowing
def pick(values: Any, row: Any, default: int) -> Any:
    """``values[row]``, or `default` where the table has no such values (None)."""
    if values is None:
        return default
    return values[row]


def where_given(otherwise: Callable, how: Callable = overload) -> Callable:
    """Register a function for first arguments that are not None; for None, `otherwise`.

    Needed where the type of the result differs; otherwise `if x is None` is enough. `how` may be
    `overload_borrowing`.
    """

    def register(function: Callable) -> Callable:
        @functools.wraps(function)
        def stub(given: Any, *rest: Any) -> Any:
            return (otherwise if given is None else function)(given, *rest)

        def choose(given: Any, *rest: Any) -> Callable:
            return otherwise if is_none(given) else function

        choose.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        how(stub, function.__module__)(choose)
        return stub

    return register


NEWEST = (0, 68)


@cache
def warn_of_newer() -> None:
    """Warn once if the numba installed is newer than the tests have seen."""
    import numba

    found = re.match(r"(\d+)\.(\d+)", numba.__version__)
    if found and (int(found[1]), int(found[2])) > NEWEST:
        major, minor = NEWEST
        warn(
            f"gputree {__version__} was tested with numba up to {major}.{minor}, found "
            f"{numba.__version__}: kernels may fail to compile. "
            f'Install one that was tested: pip install "numba<{major}.{minor + 1}"'
        )
