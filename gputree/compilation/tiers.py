"""Choice between interpreting and compiling a kernel, call by call, as tiered compilers do.

    kept on disk                        loaded once numba is imported, or when that pays
    little work                         interpreted, and the seconds are counted
    seconds that would exceed those     compiled, once; a large table at once
      of compiling

The time of interpreting is predicted from the largest array of a call: at first by the number of
instructions of the kernel and of all that it calls, then by its time before. The time of compiling
is predicted from the instructions as well, and corrected by the times of this process. Interpreting
a kernel that is compiled in the end was in vain: within one wait (a fit and everything that follows
it) that is at most `PATIENCE` seconds in all, and then `SHARE` of the compilation time of each
kernel. Seconds are CPU time of the thread, for threads that interpret wait for each other.

The environment variable GPUTREE_JIT forces either: `always` compiles at the first call, `never` has
Python run everything, as NUMBA_DISABLE_JIT does; `auto` is the default.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import CodeType
from typing import Any

import numpy as np

from gputree.errors import InputError

MODES = ("auto", "always", "never")

# Seconds of one wait in which kernels are interpreted although they may be compiled later. With
# 1.5, compilation for 891 rows x 7 with text, 0.7 s interpreted, depended on the machine's speed.
PATIENCE = 2.0
# Beyond them, a fraction of the compilation time of a kernel.
SHARE = 0.1
# Approximate seconds to import numba: interpreted so long before cached kernels are loaded.
LOADING = 0.2
# Seconds to compile a kernel: a constant, and for each of its instructions. Measured over 60
# kernels: 0.25 to 0.9 ms an instruction, the most where there are few.
COMPILED_KERNEL, COMPILED_INSTRUCTION = 0.07, 4e-4
# Seconds to interpret, for each instruction and element of the largest array. Measured over 50
# kernels: 0.1e-8 to 0.4e-8, and 1.6e-8 where rows walk down a tree.
INTERPRETED = 1e-8
# Number of elements that cost as much as the constant part of a call.
CALL = 100


class NotCompiled(Exception):
    """A kernel has no machine code for these arguments, here or on disk."""


def _from_environment() -> str:
    mode = os.environ.get("GPUTREE_JIT", "").strip().lower() or "auto"
    if mode not in MODES:
        raise InputError(f"GPUTREE_JIT must be one of {', '.join(MODES)}, got {mode!r}.")
    return mode


def _is_numba_off() -> bool:
    """Return the value of numba's variable, without importing numba."""
    try:
        return int(os.environ.get("NUMBA_DISABLE_JIT", "0")) != 0
    except ValueError:
        return False


class _Tiering:
    """Process-wide state of the tiering decision."""

    def __init__(self) -> None:
        self.mode = _from_environment()
        self.is_numba_off = _is_numba_off()
        self.interpreted = 0.0  # seconds since the wait began
        self.compiled = self.predicted = 1.0  # seconds of all compilations, actual and predicted


_state = _Tiering()
_counting = threading.Lock()
_thread = threading.local()  # .compiling: this thread has decided to
_choices: dict[Callable, list[Callable]] = {}  # functions that may replace a stub


def link(stub: Callable, choose: Callable) -> None:
    """Register that kernels may call the result of `choose` in place of `stub`."""
    _choices.setdefault(stub, []).append(choose)


@contextmanager
def forced(mode: str) -> Iterator[None]:
    """Force a mode within the block, in all threads: "always", "never" or "auto" compile."""
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}, got {mode!r}.")
    before, _state.mode = _state.mode, mode
    try:
        yield
    finally:
        _state.mode = before


def begin_wait() -> None:
    """Begin a new wait for a fit: interpreting before no longer counts."""
    _state.interpreted = 0.0


def is_never() -> bool:
    """Return True if nothing is compiled or loaded: here, or by numba at all."""
    numba = sys.modules.get("numba")
    off = getattr(getattr(numba, "config", None), "DISABLE_JIT", _state.is_numba_off)
    return _state.mode == "never" or bool(off)


def mode() -> str:
    """The mode in force: one of `MODES`."""
    return "never" if is_never() else _state.mode


def must_compile() -> bool:
    """Return True if this thread compiles the kernels that it does not find on disk."""
    return _state.mode == "always" or getattr(_thread, "compiling", False)


@contextmanager
def compiling() -> Iterator[None]:
    """Compile, within the block and in this thread, kernels that are not on disk."""
    before, _thread.compiling = getattr(_thread, "compiling", False), True
    try:
        yield
    finally:
        _thread.compiling = before


class Tier:
    """State of one kernel for the tiering decision."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.seconds = 0.0  # of interpreting since the last compilation
        self.rate = 0.0  # seconds per element of the largest array of a call

    @cached_property
    def instructions(self) -> float:
        """Number of instructions of the function and of all that it calls."""
        return _count_instructions(self.function)

    def is_interpreted(self, arguments: tuple[Any, ...], kept: bool = False) -> bool:
        """Return True if Python should run a call that has no machine code in this process.

        `kept` is True if there is some on disk, as far as is known.
        """
        if is_never():
            return True
        if _state.mode == "always":
            return False
        if not kept:
            allowed = self._before_compiling()
        else:  # as long as it takes to load machine code
            allowed = 0.0 if "numba" in sys.modules else LOADING - _state.interpreted
        return self._predict(arguments) <= allowed

    def _predict(self, arguments: tuple[Any, ...]) -> float:
        return self._current_rate * (largest(arguments) + CALL)

    @property
    def _current_rate(self) -> float:
        return self.rate or self.instructions * INTERPRETED

    def _before_compiling(self) -> float:
        """Seconds to interpret before the kernel is compiled."""
        cost = self.compiling_cost()
        patience = PATIENCE - _state.interpreted
        return max(min(cost - self.seconds, patience), SHARE * cost - self.seconds)

    def compiling_cost(self) -> float:
        """Seconds to compile the kernel."""
        return self._predicted_cost() * _state.compiled / _state.predicted

    def _predicted_cost(self) -> float:
        """Seconds to compile the kernel, only by its instructions."""
        return COMPILED_KERNEL + self.instructions * COMPILED_INSTRUCTION

    @contextmanager
    def interpreting(self, arguments: tuple[Any, ...]) -> Iterator[None]:
        """Measure the time of interpreting within the block."""
        size = largest(arguments) + CALL
        expected = self._current_rate * size
        self._count(expected)  # at once, for threads that decide at the same time
        start = time.thread_time()
        try:
            yield
        finally:
            seconds = time.thread_time() - start
            self._count(seconds - expected)
            # Calls that end early, or process a part of a table, predict little of the next one.
            first = self.instructions * INTERPRETED
            self.rate = max(seconds / size, (self.rate or first) / 2, first / 10)

    def _count(self, seconds: float) -> None:
        with _counting:
            self.seconds = max(self.seconds + seconds, 0.0)
            _state.interpreted = max(_state.interpreted + seconds, 0.0)

    @contextmanager
    def compiling(self) -> Iterator[None]:
        """Compile the kernel in this thread within the block, and reset its seconds."""
        with compiling():
            yield
        self.seconds = 0.0

    def note_compiled(self, seconds: float) -> None:
        """Correct predictions of compilation time by an actual one."""
        _state.compiled += seconds
        _state.predicted += self._predicted_cost()


def is_cheaper_without(kernels: Sequence[Any], seconds: float) -> bool:
    """Return True if work should take `seconds` more without kernels, to avoid compiling them.

    The seconds count like those of interpreting, so that kernels of frequent use are compiled. None
    of them may have machine code, here or on disk.
    """
    if _state.mode != "auto" or any(kernel.has_machine_code for kernel in kernels):
        return False
    found = [kernel.tier for kernel in kernels]
    cost = sum(tier.compiling_cost() for tier in found)
    if max(tier.seconds for tier in found) + seconds > cost:
        return False
    for tier in found:
        tier.seconds += seconds
    return True


def largest(arguments: tuple[Any, ...]) -> int:
    """Number of elements of the largest array among arguments, and within tuples of them."""
    size = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            found = argument.size
        elif isinstance(argument, tuple):
            found = largest(argument)
        else:
            continue
        if found > size:  # in half the time of `max`
            size = found
    return size


def _count_instructions(function: Callable) -> float:
    """Count the instructions of Python's code that a kernel consists of.

    One of the functions that may replace a stub is compiled: each counts in proportion.
    """
    package = function.__module__.partition(".")[0]
    total = 0.0
    seen: set[Callable] = set()
    pending: list[tuple[Any, float]] = [(function, 1.0)]
    while pending:
        found, share = pending.pop()
        found = getattr(found, "py_func", found)
        code = getattr(found, "__code__", None)
        if code is None or found in seen or found.__module__.partition(".")[0] != package:
            continue
        choices = _choices.get(found, [])
        pending += [(choose, share / len(choices)) for choose in choices]
        seen.add(found)
        for part in _codes(code):
            total += share * len(part.co_code) / 2
            pending += [(found.__globals__.get(name), share) for name in part.co_names]
        pending += [(cell.cell_contents, share) for cell in found.__closure__ or ()]
    return total


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Code objects of a function, and of those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
