"""Every function of kernels is one that numba translates; default tests interpret kernels."""

import dis
import importlib
import inspect
import pkgutil

import numba
import pytest
from numba.core.compiler import run_frontend

from gputree.compilation.declared import declare
from gputree.compilation.decorators import Kernel

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

PARTS = (
    "backends", "backends.cpu", "backends.cpu.lists", "backends.cpu.ranked", "backends.sharded",
    "columns", "criteria", "discretization", "editing", "ensemble", "prediction", "pruning",
    "rules",
)  # fmt: skip


def functions():
    """Return the functions that numba compiles, of all modules that have some."""
    packages = [importlib.import_module(f"gputree.{part}") for part in PARTS]
    modules = [
        importlib.import_module("gputree.arithmetic.bits"),
        importlib.import_module("gputree.arithmetic.bits"),
    ]
    for package in packages:
        names = pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        modules += [importlib.import_module(name) for _, name, _ in names]
    declare()
    found = []
    for module in modules:
        for value in vars(module).values():
            if getattr(value, "__module__", None) == module.__name__:
                if isinstance(value, Kernel):
                    found.append(value.py_func)
                elif inspect.isfunction(value) and hasattr(value, "dispatcher"):
                    found.append(value)
    return found


def unpacks(function):
    """Return True if a function makes a tuple of unpacked parts, as ``(*parts, last)``."""
    return any(step.opname == "LIST_EXTEND" for step in dis.get_instructions(function))


def refused(functions):
    """Return the functions that numba does not translate, with its errors."""
    found = []
    for function in functions:
        try:
            run_frontend(function)
        except Exception as error:
            found.append(f"{function.__module__}.{function.__qualname__}: {error!r}")
    return found


def test_numba_translates_tuples_of_unpacked_parts():
    # It does not where two are assigned to one name.
    unpacking = [function for function in functions() if unpacks(function)]
    assert unpacking != []
    assert refused(unpacking) == []


@pytest.mark.full
def test_numba_translates_every_function():
    assert refused(functions()) == []
