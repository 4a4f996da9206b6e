"""Public names of a package, imported on first use, so that unused ones cost nothing.

This is what lazy_loader does for scikit-image. A package imports the names below
``if TYPE_CHECKING``, each in a line and ``as`` itself, so that type checkers take them for public;
these lines of its source are the list. No module may have a public name of its package: the one
that was imported last would be the attribute.

A package also provides, in the same way, functions that layers below it call, and modules under the
names of earlier versions, as pickles contain them.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Imports below `TYPE_CHECKING`, which are indented: module and name.
_IMPORT = re.compile(r"^    from ([\w.]+) import (\w+)(?: as \2)?$", re.MULTILINE)

# Modules of functions that are provided.
_provided: dict[str, str] = {}


def provide(name: str, module: str) -> None:
    """Provide a function of a module to those below it; the module is imported on first use."""
    _provided[name] = module


def provided(name: str) -> Callable[..., Any]:
    """Return a function that was provided."""
    function: Callable[..., Any] = getattr(import_module(_provided[name]), name)
    return function


def attach(
    package: str, packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package from the imports below its ``TYPE_CHECKING``.

    `packages` are modules and packages in it that are imported as attributes. A package that has
    no `__all__` gets one of the names that it imports.
    """
    spec: Any = sys.modules[package].__spec__
    places = {name: module for module, name in _IMPORT.findall(spec.loader.get_source(package))}

    def find(name: str) -> Any:
        if name in packages:
            return import_module(f"{package}.{name}")
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(places[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *places, *packages})

    vars(sys.modules[package]).setdefault("__all__", sorted(places))
    return find, names


class FormerNames:
    """Finder and loader: a module of a package under its earlier name is the module of today.

    `modules` has the names of today by the earlier ones, without that of the package.
    """

    def __init__(self, package: str, modules: Mapping[str, str]) -> None:
        self.modules = {f"{package}.{old}": f"{package}.{new}" for old, new in modules.items()}

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in self.modules else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to the import system to make a module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(self.modules[module.__name__])
