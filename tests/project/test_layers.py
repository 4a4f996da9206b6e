"""Imports go downward only: the layers of ARCHITECTURE.md, checked on the syntax tree.

    6  entry points  cli, __main__, distributed, datasets
    5  files         persistence: what files hold of every class below
    4  public API    estimators, ensemble, evaluation, check, scores, discretization, rules,
                     editing
    3  growth        growth
    2  backends      backends, inputs                  tree tools: pruning, export
                                                       (import 0 and 1 only)
    1  data          tree, columns, criteria; labels, targets and costs of inputs;
                     arithmetic, sums without an order; prediction, the descent of rows
    0  base          base, errors, compilation

A module may import its own layer and those below, and none that imports it. An import
inside a function counts too, and so does one for type checkers, and a module that a text names, as
for `import_module`: laziness is about the cost of an import, not about its direction.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "gputree"

LAYERS = {
    "base": 0,
    "errors": 0,
    "compilation": 0,
    "arithmetic": 1,
    "tree": 1,
    "columns": 1,
    "criteria": 1,
    "prediction": 1,
    "inputs.labels": 1,
    "inputs.targets": 1,
    "inputs": 2,
    "backends": 2,
    "pruning": 2,
    "export": 2,
    "growth": 3,
    "ensemble": 4,
    "estimators": 4,
    "scores": 4,
    "discretization": 4,
    "rules": 4,
    "check": 4,
    "editing": 4,
    "evaluation": 4,
    "persistence": 5,
    "cli": 6,
    "__main__": 6,
    "distributed": 6,
    "datasets": 6,
    "": 6,  # gputree/__init__.py: the public names
}
TREE_TOOLS = {"pruning", "export"}

SOURCES = sorted(PACKAGE.rglob("*.py"))


def module_name(source: Path) -> str:
    """Dotted name below the package; "" for the package itself."""
    parts = source.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package(module: str) -> str:
    """The part of `LAYERS` that a module is in: its package, or the module itself."""
    first_two = ".".join(module.split(".")[:2])
    return first_two if first_two in LAYERS else module.partition(".")[0]


@cache
def imports_of(source: str) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a text, parsed once for all tests; those in functions, too."""
    nodes = ast.walk(ast.parse(source))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imported_modules(source: str, module: str, is_package: bool = False) -> Iterator[str]:
    """Names below `gputree` that `source`, the text of `module`, imports: of modules or in them."""
    for node in imports_of(source):
        if isinstance(node, ast.Import):
            yield from (_below(alias.name) for alias in node.names if _is_ours(alias.name))
        else:
            origin = _origin(node, module, is_package)
            if not _is_ours(origin):
                continue
            for alias in node.names:  # `from gputree import tree` names a package
                if below := _below(origin):
                    yield f"{below}.{alias.name}"
                elif alias.name != "__version__":
                    yield alias.name if alias.name in LAYERS else ""


MODULE = re.compile(r"gputree\.(\w+(?:\.\w+)*)?\.?")


def named_modules(source: str) -> Iterator[str]:
    """Names below `gputree` that a text in `source` consists of, or that its first part does."""
    quoted = re.search(r"[\"']gputree\.", source)  # few are parsed
    for node in ast.walk(ast.parse(source)) if quoted else ():
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and (match := MODULE.fullmatch(text)):
            yield match[1] or ""


def _origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parents = ["gputree", *filter(None, module.split("."))]
    up = node.level - 1 if is_package else node.level
    return ".".join([*parents[: len(parents) - up], *filter(None, [node.module])])


def _is_ours(name: str) -> bool:
    return package(name) == "gputree"


def _below(name: str) -> str:
    return name.partition(".")[2]


def violation(importer: str, imported: str) -> str | None:
    """Fault of an import, or None."""
    above, below = package(importer), package(imported)
    if above == below:
        return None
    if not above and LAYERS[below] == LAYERS["cli"]:
        return f"gputree/__init__.py imports {imported}: an entry point would burden every import"
    if above in TREE_TOOLS and LAYERS[below] > 1:
        return f"{importer} is a tree tool and imports {imported or 'gputree'}"
    if LAYERS[above] < LAYERS[below]:
        return f"{importer} (layer {LAYERS[above]}) imports {imported or 'gputree'} above it"
    return None


def test_every_module_has_a_layer():
    assert {package(module_name(source)) for source in SOURCES} <= set(LAYERS)


def test_imports_go_downward():
    problems = []
    for source in SOURCES:
        importer, text = module_name(source), source.read_text("utf-8")
        names = [*imported_modules(text, importer, source.stem == "__init__"), *named_modules(text)]
        problems += [problem for name in names if (problem := violation(importer, name))]
    assert problems == []


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("tree", "import gputree.growth.grower"),
        ("tree", "from gputree import criteria, cli"),
        ("criteria", "def f():\n    from .estimators import ID3Classifier"),
        ("backends.cpu.score", "from ...growth import grower"),
        ("pruning.pessimistic", "from gputree.backends import get_backend"),
        ("export.text", "from ..pruning import Pruner"),
        ("prediction", "from gputree.pruning import Pruner"),
        ("growth.grower", "from gputree import DecisionTreeClassifier"),
        ("", "from gputree.datasets import load_iris"),
    ],
)
def test_an_upward_import_is_seen(importer, text):
    assert any(violation(importer, name) for name in imported_modules(text, importer))


@pytest.mark.parametrize(
    ("importer", "text"),
    [
        ("growth.grower", "from gputree.backends.base import Backend\nimport numpy"),
        ("backends.cpu.score", "from .histogram import build\nfrom ...criteria import gini"),
        ("pruning.pessimistic", "from gputree.tree import Tree\nfrom . import costs"),
        ("persistence", "from gputree import __version__"),
        ("cli", "from gputree import DecisionTreeClassifier, datasets\nimport gputree_other"),
    ],
)
def test_a_downward_import_is_allowed(importer, text):
    assert not any(violation(importer, name) for name in imported_modules(text, importer))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('import_module("gputree.check").what_differs()', "check"),
        ("CHECK = 'gputree.check.trust'", "check.trust"),
        ('def f():\n    import_module(f"gputree.growth.{name}")', "growth"),
        ('import_module(f"gputree.{name}")', ""),
    ],
)
def test_an_upward_import_by_a_text_is_seen(text, named):
    assert list(named_modules(text)) == [named]
    assert violation("backends.devices", named)


def circle(texts: dict[str, str]) -> list[str]:
    """Modules that import each other in a circle, by the texts of all; empty if none do."""
    packages = {module.rpartition(".")[0] for module in texts}
    graph = {
        module: {
            found
            for name in imported_modules(text, module, module in packages)
            if (found := _module_of(name, texts)) != module
        }
        for module, text in texts.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _module_of(name: str, modules: dict[str, str]) -> str:
    """The module that a dotted name is, or is in."""
    while name not in modules:
        name = name.rpartition(".")[0]
    return name


def test_no_modules_import_each_other():
    assert circle({module_name(source): source.read_text("utf-8") for source in SOURCES}) == []


@pytest.mark.parametrize(
    "text",
    [
        "from gputree.tree import Tree",
        "from gputree import tree",
        "def f():\n    from .tree import Tree",
        "if TYPE_CHECKING:\n    import gputree.tree",
    ],
)
def test_a_circle_is_seen(text):
    others = {"": "", "tree": "from gputree.branches import Spans", "dtypes": ""}
    assert set(circle(others | {"branches": text})) == {"tree", "branches"}
    assert circle(others | {"branches": "from gputree import __version__, dtypes"}) == []
