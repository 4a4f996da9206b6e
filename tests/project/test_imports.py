"""Modules that `import gputree` loads, seen from a fresh interpreter."""

import ast
import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from processes import run_python
from test_layers import imports_of

import benchmarks
import gputree
from gputree import ID3Classifier, save_model
from gputree.cli import _COMMANDS
from gputree.datasets import load_fish

# What takes time to import.
SLOW = {"joblib", "narwhals", "numba", "numpy", "pandas", "pyarrow", "scipy", "sklearn"}
SLOW |= {"cupy", "dask", "distributed", "matplotlib", "polars"}

COMMAND = """
import sys
from gputree.__main__ import main
sys.argv = ["gputree", *{words!r}]
try:
    status = main()
except SystemExit as end:
    status = end.code
"""


def modules_of(code):
    """Names of all modules that are there after some code, which may print."""
    told = f"{code}\nimport sys\nsys.stderr.write(' '.join(sys.modules))"
    # The default mode, whatever that of these tests is.
    default = {name: value for name, value in os.environ.items() if name != "GPUTREE_JIT"}
    result = subprocess.run(
        [sys.executable, "-c", told],
        capture_output=True, text=True, check=True, timeout=120, env=default,
    )  # fmt: skip
    return set(result.stderr.split())


def modules_of_command(*words):
    return modules_of(COMMAND.format(words=list(map(str, words))) + "assert status == 0")


@pytest.mark.process
def test_import_alone_loads_nothing():
    """The command is to end in one line where it is interrupted while it is loaded."""
    found = modules_of("import gputree")
    assert not found & SLOW
    assert {name for name in found if name.startswith("gputree")} == {
        "gputree",
        "gputree.base",
        "gputree.base.lazy",
    }


@pytest.mark.process
@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_loads_nothing(words):
    assert not modules_of_command(*words) & SLOW


@pytest.mark.process
@pytest.mark.parametrize("name", _COMMANDS)
def test_help_of_a_command_needs_numpy_at_most(name):
    assert modules_of_command(name, "--help") & SLOW <= {"numpy"}


@pytest.mark.process
def test_a_page_in_the_browser_needs_no_package_of_notebooks():
    assert not modules_of("import gputree.editing.server") & {"anywidget", "traitlets"}


@pytest.mark.process
def test_a_tree_is_shown_without_scikit_learn(tmp_path):
    save_model(ID3Classifier().fit(*load_fish(return_X_y=True)), tmp_path / "fish.gputree")
    found = modules_of_command("show", tmp_path / "fish.gputree")
    assert found & SLOW == {"numpy"}
    assert not {"gputree.backends", "gputree.growth", "gputree.estimators.base"} & found


@pytest.mark.process
def test_names_are_found_without_docstrings():
    code = "from gputree import C45Classifier\nprint(C45Classifier.__doc__)"
    assert run_python("-OO", "-c", code) == "None\n"


@pytest.mark.process
def test_an_estimator_comes_alone():
    """CART without C4.5, rules, files, exports, backends and their kernels."""
    found = modules_of("from gputree import DecisionTreeClassifier")
    assert "numba" not in found
    assert (
        not {
            f"gputree.{name}"
            for name in (
                "backends.cpu.backend",
                "backends.cpu.lists",
                "backends.cuda.kernels",
                "backends.sharded",
                "check",
                "datasets",
                "distributed",
                "estimators.c45",
                "estimators.boosting",
                "estimators.growing_lists",
                "estimators.id3",
                "export",
                "growth.lists",
                "persistence",
                "pruning.subtree_raising",
                "rules",
                "scores",
            )
        }
        & found
    )


@pytest.mark.parametrize("package", ["", ".backends.cuda", ".estimators", ".export", ".rules"])
def test_lazy_names_are_found(package):
    module = import_module(f"gputree{package}")
    for name in module.__all__:
        assert getattr(module, name).__name__ == name
    assert set(module.__all__) <= set(dir(module))
    # a module of a name's name would take its place
    assert not {found.name for found in pkgutil.iter_modules(module.__path__)} & {*module.__all__}
    with pytest.raises(
        AttributeError, match=f"module 'gputree{package}' has no attribute 'forest'"
    ):
        module.forest  # noqa: B018


def test_public_packages_are_found():
    assert {"datasets", "export"} <= set(dir(gputree))
    assert gputree.datasets.load_iris().data.shape == (150, 4)


INTERRUPTED = """
import builtins, runpy, sys

def interrupted(name, *arguments, **options):
    if name.partition(".")[0] == {module!r}:
        raise KeyboardInterrupt
    return original(name, *arguments, **options)

original, builtins.__import__ = builtins.__import__, interrupted
sys.argv = ["gputree", "train", "absent.csv", "--target", "y", "-o", "model"]
{run}
"""


@pytest.mark.process
@pytest.mark.parametrize("module", ["numpy", "sklearn"])
@pytest.mark.parametrize(
    "run",
    [
        "runpy.run_module('gputree', run_name='__main__', alter_sys=True)",
        "from gputree.__main__ import main; sys.exit(main())",  # as the script that pip writes
    ],
)
def test_an_interrupt_while_the_command_is_loaded(run, module):
    code = INTERRUPTED.format(run=run, module=module)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert (result.returncode, result.stderr) == (130, b"gputree: error: interrupted\n")


PACKAGE = Path(gputree.__file__).parent


def private_imports(source):
    """Names of scikit-learn in `source` that it does not call public."""
    for node in imports_of(source):
        origin = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            name = f"{origin}{alias.name}"
            first, *rest = name.split(".")
            if first == "sklearn" and any(part.startswith("_") for part in rest):
                yield name


def test_private_names_of_sklearn_are_taken_in_one_place():
    takers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(private_imports(path.read_text("utf-8")))
    }
    assert takers == {"base/sklearn.py"}


@pytest.mark.parametrize(
    "text",
    [
        "from sklearn.utils._param_validation import Interval",
        "from sklearn.base import clone, _fit_context",
        "def f():\n    import sklearn.tree._tree",
    ],
)
def test_a_private_name_is_seen(text):
    assert list(private_imports(text))
    assert not list(private_imports("from sklearn.base import clone"))


def test_threads_are_started_in_one_place():
    starters = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "ThreadPoolExecutor(" in (text := path.read_text("utf-8")) or "Thread(" in text
    }
    assert starters == {"base/threads.py"}


@pytest.mark.process
def test_packages_need_no_separate_import():
    names = "check", "discretization", "growth", "persistence", "prediction", "tree", "inputs"
    code = "import gputree; " + "; ".join(f"gputree.{name}" for name in names)
    run_python("-c", code)


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        ("python -m benchmarks.compare depth8", True),
        ("python /lib/site-packages/asv/benchmark.py run", True),
        ("/bin/asv run", True),
        ("python -m pytest benchmarks", False),
        ("python tools/shard_traffic.py -m 1", False),
    ],
)
def test_benchmarks_that_are_imported_leave_compilation_alone(words, runs):
    assert benchmarks.is_run(words.split()) is runs
