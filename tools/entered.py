"""Functions of gputree that each test enters: a pytest plugin.

    PYTHONPATH=tools python -m pytest -p entered --entered MAP.json [TEST ...]

MAP.json is a JSON object of ``functions``, names as ``gputree/tree/tree.py::Tree.equals``, and
``tests``, which has the seconds of each test and the places of its functions in that list. Tests of
an existing file that are not run stay in it. `python_mutants` runs tests by it.

The modules of gputree are read with a call at the start of each function, so that compiled kernels
are those of the source, in which that call does nothing; unless GPUTREE_JIT says otherwise, all
kernels are interpreted. What is entered while a module is imported, or by other processes, belongs
to no test.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

PACKAGE = "gputree"
CALL = "__entered__"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

_numbers: dict[str, int] = {}  # of functions, in the order in which they were read
_entered: set[int] = set()
_tests: dict[str, tuple[float, list[int]]] = {}


def enter(number: int) -> None:
    _entered.add(number)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Qualified names and nodes of all functions of a module, the inner ones included."""
    for node in ast.iter_child_nodes(tree):
        name = f"{prefix}{getattr(node, 'name', '')}"
        if isinstance(node, FUNCTION):
            yield name, node
        is_scope = isinstance(node, (*FUNCTION, ast.ClassDef))
        yield from functions(node, f"{name}." if is_scope else prefix)


def file_of(path: str) -> str:
    """Path of a module from the folder that has the package."""
    parts = Path(path).parts
    return "/".join(parts[len(parts) - 1 - parts[::-1].index(PACKAGE) :])


class Loader(SourceFileLoader):
    """Reads a module from its source, never from compiled files, and lets functions report."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        for name, function in functions(tree):
            number = _numbers.setdefault(f"{file_of(path)}::{name}", len(_numbers))
            first = function.body[ast.get_docstring(function, False) is not None :]
            call = ast.parse(f"{CALL}({number})").body[0]
            for node in ast.walk(call):
                ast.copy_location(node, first[0] if first else function.body[0])
            function.body.insert(len(function.body) - len(first), call)
        return compile(tree, path, "exec")


class Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def pytest_addoption(parser: pytest.Parser) -> None:
    """Begin: this comes before conftest.py, which imports the package."""
    if PACKAGE in sys.modules:
        raise ImportError(f"{__name__} must be loaded before {PACKAGE}: pytest -p {__name__}")
    os.environ.setdefault("GPUTREE_JIT", "never")
    sys.meta_path.insert(0, Finder)
    setattr(builtins, CALL, enter)
    parser.addoption("--entered", type=Path, metavar="MAP.json", help="functions entered by tests")


def pytest_configure(config: pytest.Config) -> None:
    from numba.extending import overload

    @overload(enter, strict=False)
    def nothing(number: Any) -> Any:
        return lambda number: None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    _entered.clear()
    begun = time.perf_counter()
    result = yield
    _tests[item.nodeid] = round(time.perf_counter() - begun, 3), sorted(_entered)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("entered")
    if path is None:
        return
    known = json.loads(path.read_text()) if path.exists() else {"functions": [], "tests": {}}
    places = {name: number for number, name in enumerate(known["functions"])}
    for name in _numbers:
        places.setdefault(name, len(places))
    here = [places[name] for name in _numbers]
    found = {test: (spent, [here[k] for k in ks]) for test, (spent, ks) in _tests.items()}
    path.write_text(json.dumps({"functions": list(places), "tests": known["tests"] | found}))
