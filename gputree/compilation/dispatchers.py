"""Numba's dispatchers of kernels and of the functions that they call. Imports numba."""

from __future__ import annotations

import functools
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit

from gputree.compilation import interrupts, parts, tiers
from gputree.compilation.declared import INNER, OPTIONS, declare
from gputree.compilation.store import KernelStore


def of_kernel(function: Callable, tier: tiers.Tier) -> Any:
    """Return the dispatcher of a function that Python calls; compiled forms are cached on disk."""
    made = njit(**OPTIONS)(function)
    if made is function:  # numba's compiler is disabled
        raise tiers.NotCompiled
    made._cache = KernelStore(function)
    compiler = made._compiler
    compiler.compile = parts.compile_in_parts(_noting(compiler.compile, tier), compiler)
    made.compile = find_or_compile(made.compile, made._cache)
    # A kernel that is called by compiled code is compiled as a part of that: the cache has machine
    # code, which cannot be linked.
    part = of_function(function, INNER, None)
    made.get_call_template = _declaring(part.get_call_template)
    made.get_overload = part.get_overload
    return made


def _declaring(find: Callable) -> Callable:
    """Wrap numba's method that compiles a callee, to run after `declare`."""

    @functools.wraps(find)
    def find_declared(*arguments: Any) -> Any:
        declare()
        return find(*arguments)

    return find_declared


def of_function(
    function: Callable, options: dict[str, Any], check: Callable[[Any], None] | None
) -> Any:
    """Return the dispatcher of a function that kernels call; `check` gets it once compiled."""
    made = njit(**options)(function)
    if check is not None:
        compile_ = made.compile

        @functools.wraps(compile_)
        def compile(signature: Any) -> Any:
            found = compile_(signature)
            check(made)
            return found

        made.compile = compile
    return made


def _noting(compile_: Callable, tier: tiers.Tier) -> Callable:
    """Wrap numba's method that compiles, to run after `declare` and record its time."""

    @functools.wraps(compile_)
    def compile(*arguments: Any) -> Any:
        declare()
        start = time.thread_time()
        compiled = compile_(*arguments)
        tier.note_compiled(time.thread_time() - start)
        return compiled

    return compile


def find_or_compile(compile_: Callable, kept: KernelStore) -> Callable:
    """Wrap numba's method that finds or compiles a kernel, so that Ctrl-C is not lost in it."""

    @functools.wraps(compile_)
    def compile(signature: Any) -> Any:
        if not tiers.must_compile() and kept.lacks(signature):
            raise tiers.NotCompiled
        with interrupts.deferred(), _without_collection():
            try:
                return compile_(signature)
            finally:
                kept.leave()

    return compile


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection: a compiler makes millions of objects that live until it is done.

    Traversing them again and again takes an eighth of the time of a first fit.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
