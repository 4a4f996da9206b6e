"""Public names of a package, imported on first use, so that unused ones cost nothing.

This is what lazy_loader does for scikit-image. A package imports the names below
``if TYPE_CHECKING``, too, each ``as`` itself, so that type checkers take them for public. No module
may have a public name of its package: the one that was imported last would be the attribute.

A package also provides, in the same way, functions that layers below it call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

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
    package: str, modules: Mapping[str, Sequence[str]], packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package from the public names of its `modules`.

    `packages` are modules and packages in it that are imported as attributes. A package that has
    no `__all__` gets one of these names.
    """
    places = {name: f"{package}.{module}" for module, names in modules.items() for name in names}

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
