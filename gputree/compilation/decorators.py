"""The decorators of all code that numba compiles."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import extending, njit

from gputree.compilation import interrupts, parts, sources
from gputree.compilation.store import KernelStore

# nogil: kernels run on a thread pool. numpy's error model: a division by zero gives inf
# or NaN instead of a branch in every inner loop.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
# What is not given here is taken from whatever calls a function first.
INNER: dict[str, Any] = {
    **OPTIONS, "no_cpython_wrapper": True, "_nrt": True, "forceinline": False,
}  # fmt: skip


def kernel(function: Callable) -> Any:
    """Compile what Python calls; what was compiled is kept on disk.

    Where numba's compiler is switched off, Python runs it, as silent about infinities and
    overflows as compiled code is.
    """
    compiled = njit(**OPTIONS)(function)
    if compiled is function:
        return functools.wraps(function)(np.errstate(all="ignore")(function))
    sources.read(function.__module__)
    compiled._cache = KernelStore(function)
    compiler = compiled._compiler
    compiler.compile = parts.compile_in_parts(compiler.compile, compiler)
    compiled.compile = _interruptible(compiled.compile, compiled._cache)
    # A function of numba that calls a kernel takes it in as its own: kept machine code has no
    # other form.
    own = inner(function)
    compiled.get_call_template, compiled.get_overload = own.get_call_template, own.get_overload
    return compiled


def _interruptible(compile_: Callable, kept: KernelStore) -> Callable:
    """Numba's method that finds or compiles a kernel, so that Ctrl-C is not lost in it."""

    @functools.wraps(compile_)
    def compile(signature: Any) -> Any:
        with interrupts.deferred(), _without_collection():
            try:
                return compile_(signature)
            finally:
                kept.leave()

    return compile


@contextmanager
def _without_collection() -> Iterator[None]:
    """Look for no garbage: a compiler makes millions of objects that live until it is done.

    Looking through them again and again is an eighth of the time of a first fit.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def inner(function: Callable) -> Any:
    """Compile what only kernels call.

    Wrappers that take apart tables of a dozen arrays are a quarter of all compilation;
    only what Python calls needs one.
    """
    return njit(**INNER)(function)


def written_out(function: Callable) -> Any:
    """Compile a function as if it were written where it is called: references as there."""
    return njit(**INNER, inline="always")(function)


def jitable(function: Callable) -> Any:
    """Leave a function to Python as it is; kernels may call it, too."""
    return extending.register_jitable(function)


def overload(
    stub: Callable, implementing: str | None = None, options: dict[str, Any] = INNER
) -> Callable:
    """Decorate the choice of what kernels put in the place of `stub`, as numba's `overload`.

    `implementing` is the module of the code put there, where it is not the decorated one's.
    """

    def register(choose: Callable) -> Callable:
        sources.link(stub.__module__, implementing or choose.__module__)
        return extending.overload(stub, jit_options=options, strict=False)(choose)

    return register
