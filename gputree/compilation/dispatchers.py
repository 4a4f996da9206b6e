"""Numba's dispatchers of kernels and of the functions that they call. Imports numba."""

import functools
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba import njit

from gputree.compilation import numba_internals, tiers, waits
from gputree.compilation.declared import INNER, OPTIONS, declare
from gputree.compilation.store import KernelStore


def of_kernel(function: Callable, tier: tiers.Tier) -> Any:
    """Return the dispatcher of a function that Python calls; compiled forms are cached on disk."""
    made = njit(**OPTIONS)(function)
    if made is function:  # numba's compiler is disabled
        raise tiers.NotCompiled
    store = KernelStore(function)
    part = of_function(function, INNER, None)
    around = partial(_timed, function, tier)
    numba_internals.hook(made, store, around, part, before_call=declare)
    made.compile = find_or_compile(made.compile, store)
    return made


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


def _timed(function: Callable, tier: tiers.Tier, compile_: Callable) -> Callable:
    """Wrap numba's method that compiles, to run after `declare`, with messages and its time."""

    @functools.wraps(compile_)
    def compile(*arguments: Any) -> Any:
        with waits.timed(function.__qualname__, tier.compiling_cost()):
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
        # Threads that wait for another one's compilation can be interrupted.
        with numba_internals.global_compiler_lock, waits.deferred(), _without_collection():
            try:
                return compile_(signature)
            finally:
                kept.unlock()

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
