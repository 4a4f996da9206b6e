"""Two processes that need the same kernel: one compiles it, the other waits."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import numba
import pytest

from gputree.compilation import store

pytestmark = [
    pytest.mark.usefixtures("always_compiled"),
    pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="numba's compiler is switched off"),
    pytest.mark.skipif(store.fcntl is None, reason="files are locked as on Unix"),
]

# Says if it compiles or waits; if that is expected, continues on request.
CALL = """
import sys
from numba.core import event
from gputree.compilation import store, waits

class Watch(event.Listener):
    compiles = False
    def on_start(self, event):
        if not self.compiles:  # others are compiled within it
            self.compiles = True
            print("compiles", flush=True)
            if sys.argv[1] == "compiles":
                sys.stdin.readline()
    def on_end(self, event):
        pass

store.PATIENCE = float(sys.argv[2])
import numpy as np
from gputree.criteria import Gini, decreases

watch = Watch()
tell = lambda message: watch.compiles or print("waits", flush=True)
with waits.waiting(tell) as wait, event.install_listener("numba:compile", watch):
    value = decreases(Gini(2, 1.0), np.array([3.0]), np.array([[3, 1]]))
stats = decreases.dispatcher.stats
print(value[0], stats.cache_hits.total(), stats.cache_misses.total(), wait.seconds > 0)
"""


@contextmanager
def process(folder, does, patience=60.0):
    """A process that calls a kernel, as far as it ``compiles`` or ``waits``."""
    call = subprocess.Popen(
        [sys.executable, "-c", CALL, does, str(patience)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
    )  # fmt: skip
    try:
        assert call.stdout.readline() == f"{does}\n"
        yield call
    finally:
        call.kill()
        call.communicate()


@pytest.mark.process
@pytest.mark.parametrize("fate", ["ends", "dies", "stays"])
def test_a_kernel_is_compiled_once(tmp_path, fate):
    """Compiled by the first process; by the second if that dies, or if patience ends."""
    with (
        process(tmp_path, "compiles") as first,
        process(tmp_path, "waits", 0.5 if fate == "stays" else 600.0) as second,
    ):
        if fate == "ends":
            said, errors = first.communicate("\n", timeout=300)
            assert said.split()[-4:] == ["0.125", "0", "1", "True"], errors
        elif fate == "dies":
            first.kill()
        said, errors = second.communicate(timeout=300)
    found = ["1", "0"] if fate == "ends" else ["0", "1"]
    assert said.split()[-4:] == ["0.125", *found, "True"], errors
    assert ("compiles" in said) == (fate != "ends")


@pytest.mark.process
def test_who_waits_can_be_interrupted(tmp_path):
    with process(tmp_path, "compiles"), process(tmp_path, "waits") as second:
        second.send_signal(signal.SIGINT)
        said, errors = second.communicate(timeout=300)
    assert "compiles" not in said
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_kernel_is_unlocked_after_an_error(tmp_path, monkeypatch):
    """Otherwise no process could compile before this one ends."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    from gputree.compilation import kernel
    from gputree.criteria import decreases

    compiled = kernel(decreases.py_func)
    given = []
    monkeypatch.setattr(store, "unlock", given.append)
    with pytest.raises(numba.TypingError):
        compiled("no criterion", None, None)
    assert len(given) == 1
    assert compiled.dispatcher._cache._locked is None
