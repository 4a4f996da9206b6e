"""Everything of numba that is not its public interface: kernels made, called and cached by it.

    hook                    into a dispatcher: its cache, and what runs around its compiler
    compile_in_parts        functions inside a kernel become machine code once, within it
    dump, load              machine code as bytes, without what only a linker needs
    compiler_key            versions and modes that change machine code
    cgutils, cpu_target     for `declared`
    global_compiler_lock    for `dispatchers`

Numba optimizes every function that a kernel calls and makes machine code of it, then links it into
its caller and does so again, up to the kernel, though Python calls only the kernel. Here, functions
that kernels call are linked as they were lowered, and optimized once all are in one place: a first
fit compiles in 60 to 85% of the CPU time.

Of a cached kernel, numba also stores LLVM's code, from which other functions are linked: more than
half of all bytes, and most of the time of loading; the type of every value, as a text; and all
environments, of which the code reads one or two. A kernel is called by Python only, and a function
of numba that calls it compiles it again.

To port this to a new release of numba, compare its modules with those of the release before:

    numba.core.codegen          `JITCodeLibrary`, whose steps `Part` and `Loaded` replace (from
                                `add_ir_module` to `_finalize_final_module`); of `JITCPUCodegen`
                                `_library_class`, `_engine`, `set_env`, `_data_layout`,
                                `_pass_builder`; `RuntimeLinker.PREFIX`
    numba.core.dispatcher       `_cache`, `_compiler`, `compile`, `get_call_template`,
                                `get_overload`; `_FunctionCompiler.compile`
    numba.core.compiler         `compile_result` and its fields
    numba.core.environment      `lookup_environment`, and the prefix of names
    numba.core.options          `_nrt`, the option of `borrowing`, and `targetoptions` of
                                `decorators.written_out`, which `inline_closurecall` reads
    numba.core.typing.typeof    `_numba_type_`, by which numba knows functions and kernels

Then run `pytest tests/compilation -m ""`: a step that has another name is an AttributeError there,
and a step that is no longer called shows in the counts of parts, of bytes and of cache hits.
"""

import functools
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import cgutils, compiler
from numba.core.codegen import JITCodeLibrary, RuntimeLinker
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

__all__ = [
    "cgutils", "compiler_key", "cpu_target", "dump", "global_compiler_lock", "has_addresses",
    "hook", "load",
]  # fmt: skip

ENVIRONMENT = "_ZN08NumbaEnv"  # prefix of the names of environments
CALLED_BACK = RuntimeLinker.PREFIX
MODES = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")  # of numba, that change the code it makes

# Environments of parts by their names, until the kernel that has them is made; under numba's lock.
_environments: dict[str, Any] = {}


def hook(made: Any, cache: Any, around: Callable, part: Any, before_call: Callable) -> None:
    """Give a dispatcher a cache, and have it compile one kernel by `around` its compiler.

    Compiled code that calls the kernel calls `part`, another dispatcher, in its place, after
    `before_call`: the cache has machine code, which cannot be linked.
    """
    made._cache = cache
    target = made._compiler
    target.compile = compile_in_parts(around(target.compile), target)
    find = part.get_call_template

    @functools.wraps(find)
    def find_part(*arguments: Any) -> Any:
        before_call()
        return find(*arguments)

    made.get_call_template = find_part
    made.get_overload = part.get_overload


def compiler_key(codegen: Any) -> tuple:
    """Versions and modes of the compiler, and its target machine."""
    python = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""))
    modes = [getattr(numba.config, mode, None) for mode in MODES]
    return numba.__version__, llvmlite.__version__, python, modes, codegen.magic_tuple()


def compile_in_parts(compile_: Callable, target: Any) -> Callable:
    """Wrap numba's method that compiles one kernel; what it compiles meanwhile are its parts."""

    @functools.wraps(compile_)
    def compile(*arguments: Any) -> Any:
        context = target.targetdescr.target_context
        context.refresh()  # functions that numba itself compiles, once, are no parts
        codegen = context.codegen()
        if codegen._library_class is not JITCodeLibrary:
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


def has_addresses(library: Any) -> bool:
    """Return True if code contains addresses of this process, so that others cannot use it."""
    names = (variable.name for variable in library._final_module.global_variables)
    return library.has_dynamic_globals or any(name.startswith(CALLED_BACK) for name in names)


def dump(result: Any) -> bytes:
    """Serialize a kernel that numba has compiled."""
    library, kind = result.library, result.fndesc
    module, private = library._final_module, llvm.Linkage.private
    names = [v.name for v in module.global_variables if v.linkage is not private]
    environments = [lookup_environment(name) for name in names if name.startswith(ENVIRONMENT)]
    outside = [
        function.name
        for function in module.functions
        if function.is_declaration and not function.name.startswith("llvm.")
    ]
    kind.typemap = kind.calltypes = None  # as in numba: data of the compiler
    parts = (kind, result.signature, result.environment, [e for e in environments if e is not None])
    return dumps((library.name, library._get_compiled_object(), outside, parts))


def load(target_context: Any, kept: bytes) -> Any:
    """Return a kernel as numba compiles it, from the bytes of `dump`."""
    name, code, outside, (kind, signature, environment, environments) = pickle.loads(kept)
    # The rest of the data that numba's compiler loads is not needed here, and takes 0.2 s.
    rtsys.initialize(target_context)
    if not _are_there(outside):
        target_context.refresh()
        if not _are_there(outside):
            raise LookupError("machine code calls what is not in this process")
    library = Loaded(target_context.codegen(), name)
    library.run(code)
    entry = target_context.get_executable(library, kind, environment)
    for other in environments:
        library.codegen.set_env(other.env_name, other)
    return compiler.compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        entry_point=entry,
        type_annotation="",
        signature=signature,
        objectmode=False,
        lifted=(),
        fndesc=kind,
        library=library,
        environment=environment,
        reload_init=[],
        referenced_envs=environments,
    )


def _are_there(names: list[str]) -> bool:
    """Return True if all functions that code calls are known: LLVM would end the process."""
    return all(llvm.address_of_symbol(name) for name in names)


class Loaded(JITCodeLibrary):
    """Machine code without LLVM's code, which only Python calls."""

    def run(self, code: bytes) -> None:
        """Make the code executable."""
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._finalize_final_module()

    def get_pointer_to_function(self, name: str) -> int:
        """Address of a function of the code."""
        address: int = self._codegen._engine.get_function_address(name)
        return address

    def _get_module_for_linking(self) -> Any:
        raise RuntimeError(f"{self.name} was kept as machine code, which cannot be linked.")
