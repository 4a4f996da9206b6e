"""Contents of a cached kernel: machine code, and the data needed to call it.

Numba also stores LLVM's code, from which other functions are linked: more than half of all bytes,
and most of the time of loading; the type of every value, as a text; and all environments, of which
the code reads one or two. A kernel is called by Python only, and a function of numba that calls it
compiles it again.

This uses numba's internals. Where these have other names, kernels are cached as numba does it.
"""

from __future__ import annotations

import pickle
from typing import Any

import llvmlite.binding as llvm
from numba.core import codegen as codegens
from numba.core import compiler
from numba.core.environment import lookup_environment
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from gputree.compilation.parts import CALLED_BACK, ENVIRONMENT, JITCodeLibrary

_STEPS = (
    "_finalize_final_module", "_get_compiled_object", "_get_module_for_linking",
    "_set_compiled_object", "enable_object_caching", "get_pointer_to_function",
)  # fmt: skip
KNOWN = (
    all(hasattr(JITCodeLibrary, step) for step in _STEPS)
    and hasattr(compiler, "compile_result")
    and hasattr(getattr(codegens, "JitEngine", None), "get_function_address")
    and hasattr(rtsys, "initialize")
)


def has_addresses(library: Any) -> bool:
    """Return True if code contains addresses of this process, so that others cannot use it."""
    names = (variable.name for variable in library._final_module.global_variables)
    called_back = CALLED_BACK is not None and any(name.startswith(CALLED_BACK) for name in names)
    return library.has_dynamic_globals or called_back


def dump(result: Any) -> bytes:
    """Serialize a kernel that numba has compiled."""
    library, kind = result.library, result.fndesc
    if not KNOWN or not isinstance(library, JITCodeLibrary):
        return dumps((None, result._reduce()))
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
    name, *rest = pickle.loads(kept)
    if name is None:
        target_context.refresh()
        return compiler.CompileResult._rebuild(target_context, *rest[0])
    code, outside, (kind, signature, environment, environments) = rest
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
