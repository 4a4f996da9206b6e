"""The API reference lists every public name, and no other."""

import importlib
import re
from pathlib import Path

import pytest

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
