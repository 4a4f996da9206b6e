"""Generate machine code of the functions inside a kernel once: as parts of the kernel.

Numba optimizes every function that a kernel calls and makes machine code of it, then links it into
its caller and does so again, up to the kernel, though Python calls only the kernel. Here, functions
that kernels call are linked as they were lowered, and optimized once all are in one place: a first
fit compiles in 60 to 85% of the CPU time.

This uses numba's internals. Where these have other names, kernels compile as numba does it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba.core import codegen as codegens
from numba.core.compiler_lock import global_compiler_lock

JITCodeLibrary: Any = getattr(codegens, "JITCodeLibrary", object)
ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the names of environments
CALLED_BACK = getattr(getattr(codegens, "RuntimeLinker", None), "PREFIX", None)
_STEPS = (
    "_ensure_finalized", "_finalize_dynamic_globals", "_finalize_final_module",
    "_optimize_final_module", "_optimize_functions", "_unserialize", "add_ir_module",
    "add_linking_library", "get_pointer_to_function",
)  # fmt: skip
KNOWN = CALLED_BACK is not None and all(hasattr(JITCodeLibrary, step) for step in _STEPS)

# Environments of parts by their names, until the kernel that has them is made; under numba's lock.
_environments: dict[str, Any] = {}


def compile_in_parts(compile_: Callable, target: Any) -> Callable:
    """Wrap numba's method that compiles one kernel; what it compiles meanwhile are its parts."""

    @functools.wraps(compile_)
    def compile(*arguments: Any) -> Any:
        context = target.targetdescr.target_context
        context.refresh()  # functions that numba itself compiles, once, are no parts
        codegen = context.codegen()
        if not KNOWN or getattr(codegen, "_library_class", None) is not JITCodeLibrary:
            return compile_(*arguments)
        with global_compiler_lock, _libraries(codegen, Part):
            try:
                return compile_(*arguments)
            finally:
                _set_environments(codegen)

    return compile


@contextmanager
def _libraries(codegen: Any, kind: type) -> Iterator[None]:
    """Make numba store code in libraries of the class `kind` within the block."""
    before, codegen._library_class = codegen._library_class, kind
    try:
        yield
    finally:
        codegen._library_class = before


def _set_environments(codegen: Any) -> None:
    """Connect machine code with the environments, Python objects, that it refers to."""
    for name, environment in _environments.items():
        if codegen._engine.get_global_value_address(name):
            codegen.set_env(name, environment)
    _environments.clear()


class Part(JITCodeLibrary):
    """Lowered code of one function, optimized and made machine code when its address is requested.

    Only the kernel's address is requested, by the wrapper that Python calls.
    """

    _is_made = False
    _own: frozenset[str] = frozenset()  # names of code lowered here, not linked
    _calls_back = False  # by an address that is known once there is machine code

    @property
    def codegen(self) -> Any:
        return self._codegen if self._is_made else _NoAddresses(self._codegen)

    def add_ir_module(self, ir_module: Any) -> None:
        """Add lowered code."""
        names = ir_module.globals
        self._own |= frozenset(names)
        self._calls_back |= any(name.startswith(CALLED_BACK) for name in names)
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Keep variables in registers; do nothing else until the kernel is in one place."""
        build = getattr(self._codegen, "_pass_builder", None)
        if build is None:
            super()._optimize_functions(ll_module)
            return
        ll_module.data_layout = self._codegen._data_layout
        builder, passes = build(), llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_jump_threading_pass()
        passes.add_simplify_cfg_pass()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def add_linking_library(self, library: Any) -> None:
        """Link a library of called functions."""
        self._calls_back |= getattr(library, "_calls_back", False)
        super().add_linking_library(library)

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function, 0 if there is none of that name."""
        self._ensure_finalized()
        if not self._is_made:
            try:
                self._final_module.get_function(name)
            except NameError:
                return 0
            self._make()
        return super().get_pointer_to_function(name)

    def _make(self) -> None:
        self._is_made = True
        super()._optimize_final_module()
        if not self._calls_back:  # by their names
            self._hide_parts()
        super()._finalize_final_module()

    def _hide_parts(self) -> None:
        """Remove names of parts from machine code: with arguments' types, they are half of it.

        Nor can a part be mistaken for one of the same name that another process has compiled.
        """
        for function in self._final_module.functions:
            if function.linkage is llvm.Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = llvm.Linkage.private
        text = str(self._final_module)
        for variable in self._final_module.global_variables:
            name = variable.name
            is_of_part = name.startswith(ENVIRONMENT) and name not in self._own
            if is_of_part and text.count(name) == 1:  # nothing reads it
                variable.linkage = llvm.Linkage.private

    def _optimize_final_module(self) -> None:
        """Leave it to `_make`."""

    def _finalize_final_module(self) -> None:
        if self._calls_back:
            self._make()
            return
        self._finalize_dynamic_globals()
        self._finalized = True

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> JITCodeLibrary:
        """Read a cached kernel, which is machine code already."""
        with _libraries(codegen, JITCodeLibrary):
            return JITCodeLibrary._unserialize(codegen, state)


class _NoAddresses:
    """A code generator that sets environments of parts later: they have no address yet."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        _environments[name] = environment
