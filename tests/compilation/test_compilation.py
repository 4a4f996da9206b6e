"""Compiled kernels: what they are made of, where they are kept, when they are made again."""

import ast
import ctypes
import gc
import importlib
import logging
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import types
from collections import namedtuple
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import numba
import numpy as np
import pytest
from processes import run_python

import gputree
from gputree.cli import main
from gputree.cli.warmup import KINDS
from gputree.compilation import (
    decorators,
    dispatchers,
    numba_internals,
    sources,
    store,
    waits,
)
from gputree.criteria import Gini, decreases

PACKAGE = Path(gputree.__file__).parent

pytestmark = [
    pytest.mark.usefixtures("always_compiled"),
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="numba's compiler is switched off"),
]

CALL_OF_A_FORMULA = """
import numpy as np
from gputree.criteria import Gini, decreases

print(*decreases(Gini(2, 1.0), np.array([3.0, 4.0]), np.array([[3, 1], [2, 2]])))
"""


def run_copy(folder, code, **environment):
    """Output of a fresh process that runs the copy of the package in `folder`."""
    inherited = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    env = inherited | {"PYTHONPATH": str(folder)} | environment
    return run_python("-c", code, env=env, cwd=folder).split()


# ------------------------------------------------------------ what kernels are made of
@pytest.mark.process
def test_a_change_in_a_called_file_is_seen(tmp_path):
    """Files that kernels call are no business of numba's cache: only of the digest."""
    copy = tmp_path / "gputree"
    shutil.copytree(PACKAGE, copy)  # with the kernels that are compiled already
    assert run_copy(tmp_path, CALL_OF_A_FORMULA) == ["0.125", "0.5"]
    assert run_copy(tmp_path, CALL_OF_A_FORMULA) == ["0.125", "0.5"]
    formula = copy / "criteria" / "gini.py"
    text = formula.read_text("utf-8")
    changed = re.sub(r"(def _gini_gain.*\n)", r"\1    return -value\n", text)
    assert changed != text
    formula.write_text(changed, "utf-8")
    assert run_copy(tmp_path, CALL_OF_A_FORMULA) == ["-3.0", "-4.0"]
    formula.write_text(text, "utf-8")
    assert run_copy(tmp_path, CALL_OF_A_FORMULA) == ["0.125", "0.5"]


def modules() -> list[str]:
    """Names of the modules of the package, imported if necessary."""
    found = pkgutil.walk_packages(gputree.__path__, "gputree.")
    return [module.name for module in found if module.name != "gputree.__main__"]


@cache
def statements(module: str) -> list[ast.stmt]:
    """Imports and decorated functions of a module, parsed once for all tests."""
    body = ast.parse(sources._source(module)).body
    imports = ast.Import | ast.ImportFrom
    return [
        node for node in body if isinstance(node, imports) or getattr(node, "decorator_list", [])
    ]


def reached(function: types.FunctionType, seen: set) -> Iterator[types.FunctionType]:
    """The package's functions that numba finds by name from `function` on."""
    if function in seen:
        return
    seen.add(function)
    yield function
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    for found in [*held, *map(function.__globals__.get, function.__code__.co_names)]:
        found = getattr(found, "py_func", found)
        if isinstance(found, types.FunctionType) and found.__module__.startswith("gputree."):
            yield from reached(found, seen)


def test_imports_are_those_of_the_syntax_tree():
    for module in modules():
        names = set()
        for node in statements(module):
            if isinstance(node, ast.Import):
                names |= {(alias.name, "") for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, module
                names |= {(node.module, alias.name) for alias in node.names}
        ours = {(place, name) for place, name in names if place.partition(".")[0] == "gputree"}
        assert set(sources._imports(module)) == ours, module


def test_what_a_package_passes_on_comes_from_the_files_that_count_for_it():
    for module in modules():
        package = importlib.import_module(module)
        for name, home in sources._passed_on(module).items():
            if sources._source(f"{home}.{name}") is None:
                assert getattr(package, name) is getattr(importlib.import_module(home), name)
                assert all(name in sources._source(file) for file in sources._homes(module, name))


def kernels():
    """The kernels of the package, each once."""
    found = {}
    for module in modules():
        for kernel in vars(importlib.import_module(module)).values():
            if isinstance(kernel, decorators.Kernel):
                found[kernel.py_func] = kernel
    return list(found.values())


def test_a_kernel_calls_nothing_beyond_its_files():
    for kernel in kernels():
        files = sources.files(kernel.__module__)
        for function in reached(kernel.py_func, set()):
            assert function.__module__ in files, kernel
            assert sources._given.get(function.__module__, set()) <= files, kernel


def test_kernels_are_made_of_few_files():
    files = [len(sources.files(kernel.__module__)) for kernel in kernels()]
    assert sum(files) / len(files) <= 25


@pytest.mark.parametrize(
    ("kernel", "file"),
    [
        ("backends.cpu.finish", "backends.cpu.finish"),
        ("backends.cpu.finish", "backends.cpu.cut"),  # called
        ("backends.cpu.finish", "criteria.gini"),  # in the place of a stub
        ("backends.cpu.finish", "backends.cpu.finish_scan"),  # where something is given
        ("backends.cpu.encode", "backends.binning"),  # constants
        ("backends.cpu.encode", "arithmetic.bits"),
        ("pruning.raising_walk", "base.dtypes"),
        ("pruning.raising_walk", "pruning.raising_routing"),  # records
        ("prediction.descent", "compilation.decorators"),  # options of the compiler
        ("prediction.descent", "compilation.numba_internals"),
    ],
)
def test_a_digest_changes_with_each_file(kernel, file, monkeypatch):
    before = sources.digest(f"gputree.{kernel}")
    sum_of = sources._sum
    monkeypatch.setattr(
        sources, "_sum", lambda name: "changed" if name == f"gputree.{file}" else sum_of(name)
    )
    assert sources._digest.__wrapped__(f"gputree.{kernel}", gputree.__version__) != before


COMPILING = {
    "inner",
    "kernel",
    "borrowing",
    "overload",
    "overload_borrowing",
    "pasted",
    "written_out",
}


def compiled_names(module):
    """Names in functions of a module that are compiled, and in what they are compiled for."""
    for node in statements(module):
        if isinstance(node, ast.FunctionDef):
            decorators = {
                n.id for d in node.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)
            }
            if decorators & (COMPILING | {"where_given"}):
                node.decorator_list, node.returns = [], None
                for argument in ast.walk(node.args):
                    if isinstance(argument, ast.arg):
                        argument.annotation = None
                yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def test_what_no_code_comes_of_is_in_no_kernel():
    for module in modules():
        names = set(compiled_names(module))
        taken = {place for place, name in sources._imports(module) if name in names}
        assert not taken & sources.NO_CODE, module


REPLACED = """
import os, sys, time
from gputree.compilation import sources
file = sys.modules["gputree"].__file__.replace("__init__", "arithmetic/bits")
before = sources.digest("gputree.criteria.gini"), sources.digest("gputree.arithmetic.bits")
sources._text.cache_clear(), sources._digest.cache_clear(), sources._sum.cache_clear()
os.utime(file, (time.time() + 9, time.time() + 9))
after = sources.digest("gputree.criteria.gini"), sources.digest("gputree.arithmetic.bits")
print(before[0] == after[0], None in before, after[1])
"""


def test_a_file_replaced_while_the_process_runs_is_not_what_it_imported(tmp_path):
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "gputree", ignore=without)
    assert run_copy(tmp_path, REPLACED) == ["True", "False", "None"]


def test_kernels_of_unknown_sources_are_not_kept():
    assert sources.digest(__name__) is None
    assert store.KernelStore(test_kernels_of_unknown_sources_are_not_kept)._name((), None) is None


# ------------------------------------------------------------------ how they are kept
@pytest.fixture
def kept(tmp_path, monkeypatch):
    """``kept()``: a new `decreases` that keeps its kernels in a folder, and that folder."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def fresh():
        dispatcher = decorators.Kernel(decreases.py_func).dispatcher
        return dispatcher, Path(store.folders()[0])

    return fresh


def call(kernel):
    """One call, right or wrong; (found on disk, compiled)."""
    totals = np.array([[3, 1], [2, 2]])
    value = kernel(Gini(2, 1.0), np.array([3.0, 4.0]), totals)
    np.testing.assert_array_equal(value, [(3.0 - 10 / 4) / 4, (4.0 - 8 / 4) / 4])
    stats = kernel.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def test_a_kernel_is_found_again(kept):
    kernel, folder = kept()
    assert call(kernel) == (0, 1)
    (file,) = folder.glob("*.nbc")
    assert file.name.startswith("criteria.shared.decreases-")
    assert call(kept()[0]) == (1, 0)


@pytest.mark.parametrize("damage", ["cut", "turned", "foreign", "empty", "whole"])
def test_a_damaged_file_is_replaced(kept, damage):
    kernel, folder = kept()
    call(kernel)
    (file,) = folder.glob("*.nbc")
    whole = file.read_bytes()
    turned = bytes([*whole[:-1], whole[-1] ^ 1])
    ways = {"cut": whole[:-9], "turned": turned, "foreign": b"\x80\x04N." * 20, "empty": b""}
    if damage == "whole":  # but nothing that loads
        store._write(str(file), b"not a pickle")
    else:
        file.write_bytes(ways[damage])
    assert call(kept()[0]) == (0, 1)
    assert call(kept()[0]) == (1, 0)


def test_other_sources_make_a_kernel_anew_and_the_old_one_goes(kept, monkeypatch):
    kernel, folder = kept()
    call(kernel)
    (old,) = folder.glob("*.nbc")
    other = folder / "criteria.shared.decreases_of_another-0123456789ab-0.nbc"
    other.touch()
    monkeypatch.setattr(sources, "__version__", "0.0.0")
    assert call(kept()[0]) == (0, 1)
    (new,) = set(folder.glob("*.nbc")) - {other}
    assert new != old


def test_kinds_of_arguments_are_kept_side_by_side(kept):
    kernel, folder = kept()
    call(kernel)
    kernel(Gini(2, 1.0), np.array([3.0], np.float32), np.array([[3, 1]]))
    assert len(list(folder.glob("*.nbc"))) == 2


Forth = namedtuple("Pair", ("first", "second"))
Back = namedtuple("Pair", ("second", "first"))


def test_orders_of_fields_are_kept_apart(kept):
    """Code finds them by place, and numba's texts of both types are equal."""
    cache, codegen = kept()[0]._cache, decreases.dispatcher.targetctx.codegen()
    one, other = numba.typeof(Forth(1, 2)), numba.typeof(Back(1, 2))
    assert str(one) == str(other)
    for kinds in (
        [(one,), (other,)],
        [(numba.types.Tuple([one, other]),), (numba.types.Tuple([other, one]),)],
    ):
        assert len({cache._name(kind, codegen) for kind in kinds}) == 2


@pytest.mark.parametrize("mode", ["OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT"])
def test_modes_of_the_compiler_are_kept_apart(kept, monkeypatch, mode):
    cache, codegen = kept()[0]._cache, decreases.dispatcher.targetctx.codegen()
    before = cache._name((numba.int64,), codegen)
    monkeypatch.setattr(numba.config, mode, 1)
    assert cache._name((numba.int64,), codegen) != before


# ----------------------------------------------------------- kernels and their parts
def double(x):
    return 2 * x


def is_even(n):
    """Called by what it calls, by an address that is known once there is machine code."""
    if n == 0:
        return True
    return is_odd(n - 1)


def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


@pytest.fixture
def libraries(monkeypatch):
    """Parts of kernels compiled now: names, and whether machine code was made of each alone."""
    found = []
    create = numba_internals.JITCodeLibrary.__init__

    def create_and_list(library, *names):
        create(library, *names)
        found.append(library)

    monkeypatch.setattr(numba_internals.Part, "__init__", create_and_list)
    return lambda: {library.name: library._is_made for library in found}


def make_kernel(part):
    """A kernel that adds 1 to what its part finds."""
    called = decorators.inner(part)
    return decorators.kernel(lambda x: called(x) + 1)


def test_only_the_kernel_is_made_machine_code(libraries):
    assert make_kernel(double)(20) == 41
    assert libraries()["double"] is False
    assert libraries()["make_kernel.<locals>.<lambda>"] is True


def test_parts_that_call_each_other_are_made_first(monkeypatch, libraries):
    for function in (is_even, is_odd):
        monkeypatch.setitem(globals(), function.__name__, decorators.inner(function))
    function = decorators.kernel(lambda n: is_even(n))
    assert function(7) is False
    assert function(10) is True
    assert libraries()["is_even"] is True


def test_parts_are_callable_from_python_too():
    called = numba.njit(double)
    assert decorators.kernel(lambda x: called(x) + 1)(20) == 41
    assert called(20) == 40
    assert numba.njit(lambda x: called(x) + 2)(20) == 42


def refuse(x):
    if x > 0:
        raise ValueError("no", x)
    return x


def test_errors_of_parts_keep_what_they_say():
    with pytest.raises(ValueError, match=r"\('no', 3\)"):
        make_kernel(refuse)(3)


def test_what_others_compile_is_left_to_numba(libraries):
    codegen = decreases.dispatcher.targetctx.codegen()
    make_kernel(double)(20)
    assert codegen._library_class is numba_internals.JITCodeLibrary
    count = len(libraries())
    numba.njit(lambda x: x + 1)(1)
    assert len(libraries()) == count


def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        store._write(str(tmp_path / "kernel.nbc"), b"code")
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------- where they are kept
WHERE = """
import warnings

import numpy as np
from gputree.criteria import Gini, decreases

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    decreases(Gini(2, 1.0), np.array([3.0]), np.array([[3, 1]]))
    decreases(Gini(2, 1.0), np.array([3.0], np.float32), np.array([[3, 1]]))
hits = sum(decreases.dispatcher.stats.cache_hits.values())
print(hits, len(caught), *(str(warning.message) for warning in caught))
"""

PR_CAPBSET_DROP = 24  # of Linux's prctl


@pytest.fixture
def installed(tmp_path):
    """A folder with a copy of the package, without kernels."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "gputree", ignore=without)
    yield tmp_path
    for path in [tmp_path, *tmp_path.rglob("*")]:  # or pytest cannot remove it
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def lock(folder):
    """Make the package read-only, except for users who may write everything."""
    for path in [*(folder / "gputree").rglob("*"), folder / "gputree"]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def drop_privileges():
    """Before a program of root begins: modes of files hold for it, too."""
    libc = ctypes.CDLL(None)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def run_locked(folder, code, **environment):
    """Like `run_copy`, without a home folder, where modes of files apply to all users."""
    home = {"HOME": str(folder / "gputree" / "home")}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "XDG_"))}
    guard = f"import os\nprint(os.access({str(folder / 'gputree')!r}, os.W_OK))\n"
    told = run_python(
        "-B", "-c", guard + code,
        env=inherited | home | {"PYTHONPATH": str(folder)} | environment,
        cwd=folder,
        preexec_fn=drop_privileges if os.geteuid() == 0 else None,
    )  # fmt: skip
    writable, said = told.split("\n", 1)
    if writable == "True":
        pytest.skip("this user writes everything, and cannot give that up")
    return said


needs_users = pytest.mark.skipif(os.name == "nt", reason="modes of files as on Unix")


@pytest.mark.process
@needs_users
def test_with_no_place_at_all_kernels_are_compiled_again(installed):
    lock(installed)
    for _ in range(2):
        said = run_locked(installed, WHERE)
        assert said.startswith("0 1 Compiled kernels cannot be kept: gputree can write neither ")
        assert "Every process compiles them again." in said


@pytest.mark.process
@needs_users
def test_kernels_of_an_image_are_used_as_they_are(installed):
    """Compiled when the image was built, by root, and read by anyone who can write nothing."""
    run_copy(installed, WHERE)
    lock(installed)
    assert run_locked(installed, WHERE).split() == ["2", "0"]


@pytest.mark.process
@needs_users
def test_the_command_works_where_nothing_can_be_written(installed):
    lock(installed)
    code = "from gputree.cli import main\nassert main(['info']) == 0"
    assert "gputree" in run_locked(installed, code)


# ------------------------------------------------------------------ waiting for them
def test_compiling_is_named_once_and_counted(kept, caplog):
    kernel, _ = kept()
    told = []
    with (
        caplog.at_level(logging.DEBUG, "gputree"),
        waits.waiting(told.append) as outer,
        waits.waiting(told.append) as wait,  # work within work is named with that
    ):
        call(kernel)
        kernel(Gini(2, 1.0), np.array([3.0], np.float32), np.array([[3, 1]]))
    assert told == [waits.MESSAGE]
    assert wait.kernels == outer.kernels == 2
    assert wait.seconds > 0
    levels = [record.levelname for record in caplog.records if record.name == "gputree"]
    assert levels == ["INFO", "DEBUG", "DEBUG"]


@pytest.mark.parametrize(
    ("seconds", "tell", "warned"), [(0.0, None, 2), (1e9, None, 0), (0.0, [].append, 0)]
)
def test_long_compilation_is_a_warning_once(kept, caplog, monkeypatch, seconds, tell, warned):
    """Once in a wait, unless there is a callback: Python writes it to standard error."""
    monkeypatch.setattr(waits, "LONG", seconds)
    for value in (np.float32, np.float64):
        with waits.waiting(tell):
            kernel, _ = kept()
            kernel(Gini(2, 1.0), np.array([3.0], value), np.array([[3, 1]]))
    found = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.getMessage() for record in found] == [waits.LONG_MESSAGE] * warned


@pytest.mark.process
def test_the_warning_is_written_to_standard_error_and_can_be_hidden():
    code = "import logging; from gputree.compilation import waits; {}waits._warn_if_long(9.0)"
    hide = "logging.getLogger('gputree').setLevel('ERROR'); "
    for before, expected in (("", waits.LONG_MESSAGE + "\n"), (hide, "")):
        words = [sys.executable, "-c", code.format(before)]
        assert subprocess.run(words, capture_output=True, text=True).stderr == expected


@pytest.mark.parametrize("collecting", [True, False])
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_nothing_is_collected_while_a_kernel_compiles(kept, collecting, error):
    def compiling(signature):
        assert not gc.isenabled()
        if error is not None:
            raise error

    compile_ = dispatchers.find_or_compile(compiling, kept()[0]._cache)
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        with nullcontext() if error is None else pytest.raises(error):
            compile_(())
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()


def test_kernels_that_are_kept_are_no_news(kept, caplog):
    call(kept()[0])
    caplog.clear()  # that kernels compile for long is a warning, once in a process
    kernel, _ = kept()
    told = []
    with caplog.at_level(logging.DEBUG, "gputree"), waits.waiting(told.append) as wait:
        assert call(kernel) == (1, 0)
    assert (told, wait.kernels, wait.seconds) == ([], 0, 0.0)
    assert not caplog.records


def test_where_kernels_are_kept_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert Path(store.in_use()).parent == tmp_path
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    assert store.in_use() is None


def test_warmup_fails_where_nothing_can_be_kept(monkeypatch, capsys):
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    assert main(["warmup", "--kinds", "id3"]) != 0
    assert "no folder for them can be written" in capsys.readouterr().err


def test_help_of_warmup_names_all_kinds(capsys):
    with pytest.raises(SystemExit):
        main(["warmup", "--help"])
    assert set(KINDS) <= set(re.findall(r"\w+", capsys.readouterr().out))


@pytest.mark.process
def test_warmup_leaves_nothing_to_compile(capfd):
    assert main(["warmup", "--kinds", "id3", "--jobs", "1"]) == 0
    output, errors = capfd.readouterr()
    assert output.startswith("id3 ")
    assert errors == ""
    assert main(["warmup", "--kinds", "id3"]) == 0
    assert capfd.readouterr().out.split("\n")[0] == "id3         nothing to compile"


WARMED_USES = """
import gc
import numpy as np
from numba.core.dispatcher import Dispatcher
from gputree import C45Rules, DecisionTreeClassifier, MDLPDiscretizer, rank_features
from gputree.cli.warmup import compile_kind
from gputree.pruning import PRUNERS

def held():
    every = [d for d in gc.get_objects() if isinstance(d, Dispatcher)]
    return {(d.py_func.__name__, str(s)) for d in every for s in d.overloads}

for kind in ("c45", "pruning", "rules", "scores"):
    compile_kind(kind)
for dtype in (np.float32, np.float64):
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(dtype)
    y = np.where(X[:, 0] > X[:, 1], "a", "b")
    for weight in (None, np.linspace(1.0, 2.0, 200)):
        warmed = held()
        C45Rules().fit(X, y, sample_weight=weight).predict(X)
        MDLPDiscretizer().fit(X, y, sample_weight=weight).transform(X)
        rank_features(X, y, sample_weight=weight, device="cpu")
        assert held() == warmed, (dtype, weight is None, held() - warmed)
grown = DecisionTreeClassifier(device="cpu").fit(X, y)
warmed = held()
for pruner in set(PRUNERS) - {"cost_complexity"}:
    grown.set_params(pruning=pruner).fit(X, y)
assert held() == warmed, held() - warmed
print(len(warmed))
"""


@pytest.mark.process
def test_what_is_warmed_needs_no_other_kernels():
    assert int(run_python("-c", WARMED_USES)) > 10


OPTIONS_USES = """
import numpy as np
from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.cli.warmup import compile_kind
from gputree.compilation.tiers import forced
from gputree.compilation.waits import waiting
from gputree.export import shap_values

for kind in ("gini", "regression", "options"):
    compile_kind(kind)
with forced("always"), waiting() as wait:
    for dtype in (np.float32, np.float64):
        for shape in ((100, 3), (15_000, 16)):
            X = np.random.default_rng(0).normal(size=shape).astype(dtype)
            for n_classes in (1, 2, 3, 5):
                y = np.arange(len(X)) % n_classes
                DecisionTreeClassifier(max_leaf_nodes=9, device="cpu").fit(X, y).predict(X)
        X = X[:100]
        for tree in (DecisionTreeClassifier(device="cpu"), DecisionTreeRegressor(device="cpu")):
            tree.set_params(monotonic_cst=[-1] + [0] * 15).fit(X, X[:, 0] > 0).predict(X)
            shap_values(tree, X[:5])
print(wait.kernels)
"""


@pytest.mark.full
@pytest.mark.process
def test_what_is_warmed_needs_no_kernels_for_options():
    """Half a minute of CPU time where nothing is cached."""
    assert run_python("-c", OPTIONS_USES) == "0\n"


FOREST_USES = """
import numpy as np
from gputree import (
    ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
)
from gputree.cli.warmup import compile_kind
from gputree.compilation.tiers import forced
from gputree.compilation.waits import waiting

compile_kind("forests")
with forced("always"), waiting() as wait:
    for dtype, shape in (
        (np.float32, (100, 3)), (np.float32, (30_000, 20)),
        (np.float64, (100, 3)), (np.float64, (30_000, 20)), (object, (300, 3)),
    ):
        X = np.random.default_rng(1).normal(size=shape).astype(dtype)
        if dtype is object:
            X[:, 1] = np.where(X[:, 1] > 0, "a", "b")
            X[::5, 0] = None
        y = np.arange(len(X)) % 5
        options = {"n_estimators": 20, "max_depth": 5, "bootstrap": True, "oob_score": True}
        for kind in (RandomForestClassifier, ExtraTreesClassifier):
            for n_classes in (2, 5):
                kind(**options).fit(X, y % n_classes).predict_proba(X)
        for kind in (RandomForestRegressor, ExtraTreesRegressor):
            kind(max_features=2, **options).fit(X, y).predict(X)
print(wait.kernels)
"""


@pytest.mark.full
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:Some inputs")
def test_what_is_warmed_needs_no_kernels_for_forests():
    """A minute and a half of CPU time where nothing is cached."""
    assert run_python("-c", FOREST_USES) == "0\n"


@pytest.mark.parametrize("arguments", [["--kinds", "gini,xgb"], ["--jobs", "0"]])
def test_warmup_says_what_it_knows(arguments, capsys):
    assert main(["warmup", *arguments]) == 2
    assert arguments[0] in capsys.readouterr().err
