"""Conventions of every file of the package: one place for sentinels, one meaning of a range."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from test_layers import imported_modules, module_name
from test_sentences import statements

from gputree.base import dtypes

PACKAGE = Path(dtypes.__file__).parents[1]
SOURCES = sorted(PACKAGE.rglob("*.py"))
KERNELS = sorted(p for p in PACKAGE.rglob("*") if p.suffix in (".cu", ".cuh"))


class Contents(NamedTuple):
    """Contents of a module that conventions are about."""

    constants: list[tuple[str, ast.expr]]  # names, and the expressions behind them
    functions: list[tuple[str, set[str]]]  # names, and those of all parameters


@cache
def contents(source: Path) -> Contents:
    """Parse a module, once for all tests."""
    found = Contents([], [])
    module = ast.parse(source.read_text("utf-8"))
    for statement in module.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id.isupper():
                    found.constants.append((target.id, statement.value))
    for node in statements(module):
        if isinstance(node, ast.FunctionDef):
            names = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
            found.functions.append((node.name, names - {"self"}))
    return found


def is_sentinel(value: ast.expr) -> bool:
    """A negative number, or all ones: nothing that could be counted or indexed."""
    negative = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
    return negative or any(
        isinstance(part, ast.Constant) and part.value in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
        for part in ast.walk(value)
    )


def test_sentinels_are_in_one_file():
    sentinels = {
        source.relative_to(PACKAGE).as_posix(): names
        for source in SOURCES
        if (names := {name for name, value in contents(source).constants if is_sentinel(value)})
    }
    assert {"NO_CHILD", "MISSING_STOPS", "MISSING_CODE", "NO_FRAME"} <= sentinels.pop(
        "base/dtypes.py"
    )
    assert sentinels == {}


@pytest.mark.parametrize("name", ["MISSING_CODE", "WAITS"])
def test_kernels_have_the_same_sentinels(name):
    """Sentinels that both sides of a launch compare have one value."""
    macros = "\n".join(source.read_text("utf-8") for source in KERNELS)
    defined = re.findall(rf"#define {name} \(?(-?[0-9a-fx]+?)u?\)?\s", macros)
    assert [int(value, 0) for value in defined] == [int(getattr(dtypes, name))]


def test_ranges_exclude_their_end():
    """``a .. b`` holds a and not b, as `gputree.base.dtypes` says."""
    inclusive = {
        source.relative_to(PACKAGE).as_posix(): found
        for source in [*SOURCES, *KERNELS]
        if (found := re.findall(r"\S+ \.\. [^`\n]*? - 1\b.*", source.read_text("utf-8")))
    }
    assert inclusive == {}


def test_values_of_a_bin_lie_between_its_least_and_its_greatest():
    from gputree.backends.base import Limits, Rows, Task
    from gputree.backends.cpu.backend import CpuBackend
    from gputree.backends.cpu.table import CpuTable
    from gputree.criteria import Gini

    values = np.array([[3.0], [1.0], [2.0], [1.0], [5.0], [9.0]])
    limits = Limits(9, 2, 1, 0, -np.inf, 1, False)
    task = Task(Gini(2, 1.0), limits, Rows(np.zeros(6, np.uint8), None, None, None), exact=False)
    backend = CpuBackend(CpuTable(values, np.zeros(1, np.bool_)), task, 1)
    backend.encode(max_bins=2)
    table = backend.table
    for b in range(2):
        inside = values[table.codes[:, 0] == b]
        assert (table.lowest[0, b], table.highest[0, b]) == (inside.min(), inside.max())


# Functions of more parameters: readers of files, for users, and loops over the nodes of a block or
# the rows of a column.
MANY_PARAMETERS = {"grow", "grow_one", "open_batches", "push_bounds", "read_table", "sweep"}


def test_functions_have_at_most_ten_parameters():
    """More are fields of a record. Constructors of estimators have a parameter for each option."""
    found = {
        name
        for source in SOURCES
        for name, parameters in contents(source).functions
        if name != "__init__" and len(parameters) > 10
    }
    assert found <= MANY_PARAMETERS
    assert "read_table" in found


# What finds mistakes of this package's own, which are no matter of the caller.
INTERNAL = {
    "base/lazy.py",
    "backends/__init__.py",
    "backends/cuda/kernels.py",
    "compilation/decorators.py",
    "compilation/numba_internals.py",
    "prediction/forest.py",  # a sequence
}


def test_errors_of_callers_are_our_own():
    """The command takes any other error for a fault of gputree, and shows its traceback."""
    builtin = re.compile(r"(?:raise|return) (?:Value|Type|Runtime|Import|Key|Index)Error\b")
    subclass = re.compile(r"^class \w+\((?:Value|Type|Runtime|Import|Memory)Error\)", re.M)
    found = {
        path
        for source in SOURCES
        if builtin.search(text := source.read_text("utf-8")) or subclass.search(text)
        if (path := source.relative_to(PACKAGE).as_posix()) not in INTERNAL
    }
    assert found == set()


# Packages of `gputree/backends`, and those that each may import from.
PACKAGES: dict[str, set[str]] = {
    "cpu": set(),
    "cuda": set(),
    "sharded": {"cpu", "cuda"},  # shards on the host, on a device, on workers with either
}
BACKENDS = "backends"

# Modules next to them that choose one for callers from above: no package imports from these.
ENTRANCES = {
    "__init__",  # backends, by the name of a device
    "devices",  # the parameter `device`, data on a device, columns for attribute lists
}
BESIDE = {path.stem for path in (PACKAGE / BACKENDS).glob("*.py")}


def place(module: str) -> str | None:
    """The package of something in `gputree.backends`, or the module next to the packages."""
    first, *rest = module.split(".")
    if first != BACKENDS:
        return None
    if not rest or rest[0] not in PACKAGES.keys() | BESIDE:
        return "__init__"
    return rest[0]


def places_taken(text: str, module: str, is_package: bool = False) -> set[str]:
    """Packages of `gputree.backends` and modules next to them that the text of `module` imports."""
    names = imported_modules(text, module, is_package)
    return {found for name in names if (found := place(name))} - {place(module)}


def takers(*allowed: str) -> dict[str, set[str]]:
    """Names that files import from `gputree.backends`, by their paths, but for `allowed`."""
    found = {}
    for source in SOURCES:
        module = module_name(source)
        taken = places_taken(source.read_text("utf-8"), module, source.stem == "__init__")
        found[source.relative_to(PACKAGE).as_posix()] = taken.difference(allowed)
    return {path: taken for path, taken in found.items() if taken}


def test_every_package_is_listed():
    folders = {path.parent.name for path in (PACKAGE / BACKENDS).glob("*/__init__.py")}
    assert folders == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_from_those_below(package):
    """Code that several packages need lies next to them, in `gputree.backends`."""
    found = takers(*PACKAGES[package], *(BESIDE - ENTRANCES))
    assert {path for path in found if path.startswith(f"{BACKENDS}/{package}/")} == set()


def test_some_files_of_shards_know_cuda():
    """Shards on CPUs need none of it."""
    found = takers(*(PACKAGES.keys() - {"cuda"}), *BESIDE)
    names = ("cuda_shard", "device", "table")
    expected = [f"{BACKENDS}/sharded/{name}.py" for name in names]
    assert [path for path in found if "/sharded/" in path] == expected


def test_what_packages_share_imports_from_none():
    found = takers(*(BESIDE - ENTRANCES))
    shared = {f"{BACKENDS}/{name}.py" for name in BESIDE - ENTRANCES}
    assert shared & found.keys() == set()


def test_packages_of_devices_are_entered_through_backends():
    """Above them, only cuts of a discretizer are searched by kernels of the CPU."""
    found = takers(*(PACKAGES.keys() - {"cpu", "cuda"}), *BESIDE)
    above = {
        path: taken
        for path, taken in found.items()
        if path.partition("/")[0] not in (BACKENDS, "check", "cli")
    }
    assert above == {"discretization/cut_points.py": {"cpu"}}


@pytest.mark.parametrize(
    ("module", "text", "taken"),
    [
        ("backends.cpu.score", "import gputree.backends.cuda.score", {"cuda"}),
        ("backends.cpu.score", "from ..cuda import score", {"cuda"}),
        ("backends.cpu.score", "from .. import binning, sharded", {"binning", "sharded"}),
        ("backends.cpu.lists.score", "from ...cuda.lists import score", {"cuda"}),
        ("backends.cpu.score", "def f():\n    from gputree.backends import cuda", {"cuda"}),
        ("backends.cuda.score", "from gputree.backends import get_backend", {"__init__"}),
        ("backends.cuda.score", "from . import cells\nimport gputree.criteria", set()),
    ],
)
def test_imports_are_seen_however_they_are_written(module, text, taken):
    assert places_taken(text, module) == taken


def test_one_file_imports_the_internals_of_numba():
    """A new release of numba is followed in this file, which says how."""
    internal = re.compile(r"^ *(?:from|import) (?:numba\.core|llvmlite\.binding)", re.M)
    found = {path.name for path in SOURCES if internal.search(path.read_text("utf-8"))}
    assert found == {"numba_internals.py"}
