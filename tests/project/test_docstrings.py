"""Examples in docstrings of the public names run as they stand: nothing has to be imported."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import gputree
from gputree import columns, datasets, export, prediction, pruning, rules

PACKAGES = (gputree, columns, datasets, export, prediction, pruning, rules)
FINDER = doctest.DocTestFinder()


def public_names():
    """Classes and functions by name; those of two packages once."""
    found = {}
    for package in PACKAGES:
        for name in package.__all__:
            thing = getattr(package, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                found.setdefault(thing, name)
    return {name: thing for thing, name in found.items()}


def examples():
    tests = [
        t for name, thing in public_names().items() for t in FINDER.find(thing, name, globs={})
    ]
    return [pytest.param(test, id=test.name) for test in tests if test.examples]


@pytest.mark.parametrize("test", examples())
def test_example(test, tmp_path, monkeypatch):
    if "plot" in test.name:
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)  # some write files
    report = []
    failed, _ = doctest.DocTestRunner().run(test, out=report.append)
    assert not failed, "".join(report)


@pytest.mark.parametrize(
    "name", sorted({*gputree.__all__, *(kind.__name__ for kind in pruning.PRUNERS.values())})
)
def test_has_an_example(name):
    assert "\nExamples\n--------\n>>> " in inspect.getdoc(public_names()[name])


# -------------------------------------------------------------------------------- the API reference
REFERENCE = Path(__file__).parents[2] / "docs" / "api" / "index.rst"
MODULES = [
    "gputree",
    "gputree.check",
    "gputree.datasets",
    "gputree.distributed",
    "gputree.errors",
    "gputree.export",
    "gputree.pruning",
    "gputree.rules",
    "gputree.scores",
]


def listed() -> dict[str, list[str]]:
    """Names of each `autosummary`, by the module that it is of."""
    found: dict[str, list[str]] = {}
    module = ""
    for line in REFERENCE.read_text("utf-8").splitlines():
        if new := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            module = new[1]
        elif name := re.fullmatch(r"   (\w+)", line):
            found.setdefault(module, []).append(name[1])
    return found


def public(module):
    if module == "gputree.distributed":
        pytest.importorskip("distributed")
    return importlib.import_module(module)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_listed(module):
    """A name that two modules have is listed once, with the first of them."""
    pages = {id(getattr(public(home), name)) for home, names in listed().items() for name in names}
    room = public(module)
    missing = [name for name in room.__all__ if id(getattr(room, name)) not in pages]
    assert missing == []


def test_every_listed_name_is_there():
    gone = [
        f"{module}.{name}"
        for module, names in listed().items()
        for name in names
        if not hasattr(public(module), name)
    ]
    assert listed()
    assert gone == []


def test_no_name_is_listed_twice():
    for names in listed().values():
        assert len(names) == len(set(names))
