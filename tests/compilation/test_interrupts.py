"""Ctrl-C while kernels are compiled: never lost, and the next fit works."""

import os
import signal
import subprocess
import sys
import threading
import time

import numba
import numpy as np
import pytest
from numba.core import event

from gputree.base import threads
from gputree.compilation import kernel
from gputree.criteria import Gini, decreases

pytestmark = [
    pytest.mark.usefixtures("always_compiled"),
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="numba's compiler is switched off"),
    pytest.mark.skipif(os.name == "nt", reason="signals as on Unix"),
]


PASS = "numba:run_pass"


class Signals(event.Listener):
    """Ctrl-C before the n-th pass of the compiler, and how many passes there were."""

    def __init__(self, n):
        self.n = n
        self.passes = 0

    def on_start(self, event):
        if self.passes == self.n:
            os.kill(os.getpid(), signal.SIGINT)
        self.passes += 1

    def on_end(self, event):
        pass


@pytest.fixture(autouse=True)
def taken():
    """Take interrupts, also in a process of a shell's background, which ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """``fresh(folder="")``: `decreases` as in a new process, cached in a separate folder."""

    def new(folder=""):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / folder))
        return kernel(decreases.py_func)

    return new


def call(compiled):
    value = compiled(Gini(2, 1.0), np.array([3.0]), np.array([[3, 1]]))
    assert value == [(3.0 - 10 / 4) / 4]


def is_undisturbed():
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_before_any_pass_is_taken(fresh):
    call(fresh("first"))  # compiles what kernels call, for good
    with event.install_listener(PASS, Signals(-1)) as every:
        call(fresh("second"))
    assert every.passes > 10
    for n in range(0, every.passes, 4):
        compiled = fresh(f"at {n}")
        with event.install_listener(PASS, Signals(n)), pytest.raises(KeyboardInterrupt):
            call(compiled)
        assert is_undisturbed()
        call(compiled)
        assert compiled.dispatcher.stats.cache_misses.total() == 1  # the kernel was not lost


CALLED_BACK = """
import os, signal, sys
from numba.core import codegen

if len(sys.argv) > 1:
    original = getattr(codegen.JITCodeLibrary, sys.argv[1])
    signals = iter([signal.SIGINT])
    def interrupted(_, *arguments):
        for number in signals:
            os.kill(os.getpid(), number)
        return original(*arguments)
    setattr(codegen.JITCodeLibrary, sys.argv[1], classmethod(interrupted))

import numpy as np
from gputree.criteria import Gini, decreases

try:
    decreases(Gini(2, 1.0), np.array([3.0]), np.array([[3, 1]]))
    print("lost" if len(sys.argv) > 1 else "called")
except KeyboardInterrupt:
    print("interrupted")
print(decreases(Gini(2, 1.0), np.array([3.0]), np.array([[3, 1]])))
"""


def run(folder, code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
    )


@pytest.mark.process
@pytest.mark.parametrize("hook", ["_object_compiled_hook", "_object_getbuffer_hook"])
def test_an_interrupt_while_llvm_calls_back_is_taken(tmp_path, hook):
    """An exception cannot pass through LLVM: it would be printed, and forgotten."""
    if hook == "_object_getbuffer_hook":  # of what is loaded
        assert run(tmp_path, CALLED_BACK).stdout == "called\n[0.125]\n"
    result = run(tmp_path, CALLED_BACK, hook)
    assert (result.stdout, result.stderr) == ("interrupted\n[0.125]\n", "")


def test_a_handler_of_the_program_is_called(fresh):
    seen = []
    before = signal.signal(signal.SIGINT, lambda *arguments: seen.append(arguments[0]))
    try:
        with event.install_listener(PASS, Signals(3)):
            call(fresh())  # it does not request its end
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("ignored", [signal.SIG_IGN, signal.SIG_DFL])
def test_handlers_that_are_not_pythons_stay(fresh, ignored):
    before = signal.signal(signal.SIGINT, ignored)
    try:
        call(fresh())
        assert signal.getsignal(signal.SIGINT) == ignored
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_of_the_compiler_passes(fresh):
    with pytest.raises(numba.TypingError):
        fresh()("no criterion", np.array([3.0]), np.array([[3, 1]]))
    assert is_undisturbed()


def test_a_pool_thread_ends_its_kernel(fresh):
    """The caller is interrupted while a thread of the pool compiles: both are at an end then."""
    main = threading.get_ident()
    compiled = fresh()
    started = threading.Event()

    class Elsewhere(Signals):
        def on_start(self, event):
            started.set()
            super().on_start(event)

    def task(i):
        if threading.get_ident() == main:
            started.wait(60)
            for _ in range(1200):  # an interrupt just before a wait does not end it: no long one
                time.sleep(0.05)
        call(compiled)

    with event.install_listener(PASS, Elsewhere(10)), pytest.raises(KeyboardInterrupt):
        threads.run(2, task, [(0,), (1,)])
    assert is_undisturbed()
    call(compiled)
    assert compiled.dispatcher.stats.cache_misses.total() == 1


FITS = """
import os, signal, sys
import numpy as np
from numba.core import event
from gputree import C45Classifier, DecisionTreeClassifier


class At(event.Listener):
    def __init__(self, n):
        self.left = n
    def on_start(self, event):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
    def on_end(self, event):
        pass

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 3)).astype(np.float32)
y = (X[:, 0] * X[:, 1] > 0).astype(int)
kind = {"histograms": DecisionTreeClassifier, "lists": C45Classifier}[sys.argv[1]]
tree = kind(device="cpu", n_jobs=2, max_depth=3)
for n in (1, 40, 100, 200, 400):
    listener = At(n)
    try:
        with event.install_listener("numba:run_pass", listener):
            tree.fit(X, y)
        print("grown" if listener.left > 0 else "lost")
    except KeyboardInterrupt:
        print("interrupted")
print(tree.fit(X, y).get_n_leaves() > 0)
"""


@pytest.mark.process
@pytest.mark.parametrize("path", ["histograms", "lists"])
def test_a_fit_is_interrupted_wherever_it_compiles(tmp_path, path):
    result = run(tmp_path, FITS, path)
    assert result.returncode == 0, result.stderr
    said = result.stdout.split()
    assert said == ["interrupted"] * 4 + [said[4], "True"]
    assert said[4] in ("interrupted", "grown")
    assert "ignored" not in result.stderr


@pytest.mark.process
def test_an_interrupted_command_writes_no_model(write, tmp_path):
    """The fit of a new machine: the first pass of its compiler is interrupted."""
    table = write("a,b\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(60)))
    model = tmp_path / "model.gputree"
    code = (
        "import os, signal, sys\n"
        "from numba.core import codegen\n"
        "original = codegen.JITCodeLibrary._object_compiled_hook\n"
        "def interrupted(_, *arguments):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return original(*arguments)\n"
        "codegen.JITCodeLibrary._object_compiled_hook = classmethod(interrupted)\n"
        "from gputree.cli import main\n"
        f"sys.exit(main(['train', {str(table)!r}, '--target', 'b', '-o', {str(model)!r}]))"
    )
    result = run(tmp_path, code)
    assert result.returncode == 130, result.stderr
    assert not model.exists()
