"""Names of modules of earlier versions, which pickles contain."""

import pickle
import sys
from importlib import import_module

import pytest

from gputree.base.lazy import FormerNames
from gputree.tree import Tree
from gputree.tree.branches import BranchLists

(FORMER,) = (finder for finder in sys.meta_path if isinstance(finder, FormerNames))


@pytest.mark.parametrize("name", FORMER.modules)
def test_a_former_name_is_the_module_of_today(name, monkeypatch):
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = import_module(name)
    assert module is import_module(FORMER.modules[name])
    assert module.__name__ == module.__spec__.name == FORMER.modules[name]


@pytest.mark.parametrize(
    ("name", "kind"),
    [(b"gputree.branches\nBranchLists", BranchLists), (b"gputree.tree\nTree", Tree)],
)
def test_pickles_of_earlier_versions_find_their_classes(name, kind):
    assert pickle.loads(b"c" + name + b"\n.") is kind


def test_other_absent_modules_stay_absent():
    with pytest.raises(ModuleNotFoundError):
        import_module("gputree.branch")
