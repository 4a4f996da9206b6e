"""Public names of a package, imported on first use, so that unused ones cost nothing.

As lazy_loader, by which scikit-image and SciPy's tools do the same; a package also imports the
names where checkers read them, below ``if TYPE_CHECKING``, each as itself, so that it is public
for them. No module may be called as a name that it has: whichever came last would be the package's
attribute.

Functions that low layers call in modules above them are provided by the package, in the same way.
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
    """`__getattr__` and `__dir__` of a package, by its name and its names by their modules.

    `packages` are modules and packages in it that need no separate import. A package that has no
    `__all__` gets that of its names.
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
