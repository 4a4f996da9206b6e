"""What `import gputree` brings along: seen from a fresh interpreter."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gputree

LAZY = ["cupy", "dask", "distributed", "matplotlib", "pandas", "polars", "pyarrow"]


@pytest.mark.process
@pytest.mark.parametrize("module", ["gputree", "gputree.cli"])
def test_import_is_light(module):
    # scikit-learn itself imports some of them where they are installed
    assert imported_by(module) <= imported_by("sklearn.tree")


@pytest.mark.process
def test_import_alone_loads_nothing():
    """The command is to end in one line where it is interrupted while it is loaded."""
    code = "import sys, gputree; print(*{'numba', 'numpy', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).stdout == b"\n"


def test_public_names_are_found():
    assert set(gputree.__all__) == set(gputree._PLACES)
    for name in gputree.__all__:
        assert getattr(gputree, name).__name__ == name
    assert set(gputree.__all__) | {"datasets", "export"} <= set(dir(gputree))
    assert gputree.datasets.load_iris().data.shape == (150, 4)
    with pytest.raises(AttributeError, match="module 'gputree' has no attribute 'forest'"):
        gputree.forest  # noqa: B018


INTERRUPTED = """
import builtins, runpy, sys

def interrupted(name, *arguments, **options):
    if name.partition(".")[0] == {module!r}:
        raise KeyboardInterrupt
    return original(name, *arguments, **options)

original, builtins.__import__ = builtins.__import__, interrupted
sys.argv = ["gputree", "info"]
{run}
"""


@pytest.mark.process
@pytest.mark.parametrize("module", ["numpy", "numba"])
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
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "sklearn" and any(part.startswith("_") for part in rest):
                yield name


def test_private_names_of_sklearn_are_taken_in_one_place():
    takers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(private_imports(path.read_text("utf-8")))
    }
    assert takers == {"_sklearn.py"}


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
    assert starters == {"threads.py"}


def imported_by(module):
    code = f"import sys, {module}; print(*{set(LAZY)} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(result.stdout.split())


@pytest.mark.process
def test_rooms_need_no_import_of_their_own():
    names = "check", "discretization", "growth", "persistence", "prediction", "tree", "validation"
    code = "import gputree; " + "; ".join(f"gputree.{name}" for name in names)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
