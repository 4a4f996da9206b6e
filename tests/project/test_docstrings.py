"""Examples in docstrings of the public names run as they stand: nothing has to be imported."""

import doctest
import inspect

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
