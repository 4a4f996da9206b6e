"""Modules under the names of earlier versions, as pickles contain them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType


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
