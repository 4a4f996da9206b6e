"""Calls of kernels that are interpreted, with the same results."""

import copy
import dataclasses
import json
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import small_fits
from processes import run_python
from sklearn.datasets import load_iris
from tunings import finishing

from gputree import DecisionTreeClassifier
from gputree.backends.cpu.backend import CpuBackend
from gputree.compilation import decorators, tiers
from gputree.criteria import Gini, decreases

FITS = small_fits.__file__


@pytest.fixture
def auto(monkeypatch):
    """Calls are decided one by one, and nothing was interpreted before."""
    monkeypatch.setattr(tiers, "_state", tiers._Tiering())
    with tiers.forced("auto"):
        yield tiers._state


class Seconds:
    """A clock that a test turns."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(tiers.time, "thread_time", lambda: self.now)

    def interpret(self, tier, arguments, seconds):
        with tier.interpreting(arguments):
            self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    return Seconds(monkeypatch)


def small(x):
    return x + 1


def rows(n):
    return (np.zeros(n),)


# ------------------------------------------------------------------ the same results
def differences(mode):
    """Fits of a process that differ from the record, and the number of kernels that it compiles."""
    found = json.loads(run_python(FITS, env=os.environ | {"GPUTREE_JIT": mode}, timeout=3000))
    expected = json.loads(small_fits.RECORD.read_text("utf-8"))
    assert found["fits"].keys() == expected.keys()
    names = [name for name, value in expected.items() if found["fits"][name] != value]
    return names, found["compiled"]


def test_interpreted_fits_are_those_on_record():
    """Every estimator, every shipped table, both precisions: bit for bit. 4 s of CPU time."""
    with tiers.forced("never"):
        assert small_fits.fits() == json.loads(small_fits.RECORD.read_text("utf-8"))


@pytest.mark.full
def test_compiled_fits_are_those_on_record_and_a_second_process_compiles_nothing():
    """2 minutes of CPU time where nothing is cached."""
    assert differences("always")[0] == []
    assert differences("always") == ([], 0)


@pytest.mark.full
def test_fits_that_change_their_tier_are_those_on_record():
    assert differences("auto")[0] == []


# ------------------------------------------------------------------ what is decided
def test_little_work_is_interpreted_and_a_large_table_compiled_at_once(auto):
    tier = tiers.Tier(small)
    assert tier.is_interpreted(rows(1000))
    assert not tier.is_interpreted(rows(10**9))


def test_a_kernel_is_compiled_once_interpreting_cost_as_much(auto, clock):
    tier = tiers.Tier(small)
    cost = tier.compiling_cost()
    clock.interpret(tier, rows(0), 0.6 * cost)
    assert not tier.is_interpreted(rows(0))  # 1.2 times the cost
    tiers.begin_wait()
    assert not tier.is_interpreted(rows(0))  # whoever waits
    with tier.compiling():
        assert tiers.must_compile()
    assert not tiers.must_compile()
    assert tier.seconds == 0.0


def test_what_a_call_takes_is_learned(auto, clock):
    tier = tiers.Tier(small)
    assert tier.is_interpreted(rows(10_000))
    clock.interpret(tier, rows(0), 0.01)  # 0.1 ms an element
    assert not tier.is_interpreted(rows(10_000))
    assert tier.is_interpreted(rows(0))
    for _ in range(20):
        clock.interpret(tier, rows(0), 0.0)  # and forgotten
    assert tier.is_interpreted(rows(10_000))


def test_calls_that_end_early_say_little_of_a_large_one(auto, clock):
    """A root that is not split, then a whole tree."""
    tier = tiers.Tier(small)
    tier.instructions = 10_000.0
    for _ in range(50):
        clock.interpret(tier, rows(1_000_000), 1e-6)
    assert not tier.is_interpreted(rows(1_000_000))


def test_threads_that_decide_at_once_share_their_patience(auto):
    tier = tiers.Tier(small)
    tier.instructions = 10_000.0
    with tier.interpreting(rows(12_000)):  # 1.2 s are expected
        assert not tier.is_interpreted(rows(12_000))
    assert tier.is_interpreted(rows(12_000))


def test_a_numba_that_is_switched_off_compiles_nothing(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    kernel = decorators.kernel(small)
    with tiers.forced("always"):
        assert kernel(1) == 2
    assert kernel._dispatcher is None


def test_one_wait_interprets_in_vain_for_little_more_than_patience(auto, clock):
    """However many kernels there are."""
    kernels = [tiers.Tier(small) for _ in range(200)]
    for tier in kernels:
        tier.instructions = 1000.0
    interpreted = 0.0
    for _ in range(50):
        for tier in kernels:
            if tier.is_interpreted(rows(0)):
                clock.interpret(tier, rows(0), 0.01)
                interpreted += 0.01
    shares = sum(tiers.SHARE * tier.compiling_cost() for tier in kernels)
    assert interpreted <= tiers.PATIENCE + shares
    tiers.begin_wait()  # of another table
    assert any(tier.is_interpreted(rows(0)) for tier in kernels)


def test_compiling_is_expected_to_take_what_it_took(auto, clock):
    tier = tiers.Tier(small)
    clock.interpret(tier, rows(0), 0.9 * tier.compiling_cost())
    assert not tier.is_interpreted(rows(0))
    for _ in range(100):
        tier.note_compiled(3 * tier.compiling_cost())
    assert tier.is_interpreted(rows(0))


def test_instructions_are_those_of_all_that_is_called():
    tier = tiers.Tier(decreases.py_func)
    assert tier.instructions > len(decreases.py_func.__code__.co_code) / 2
    assert tiers.Tier(small).instructions == len(small.__code__.co_code) / 2


def test_kernels_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(decreases)) is decreases
    assert copy.deepcopy(decreases) is decreases


def test_the_largest_array_counts_within_tuples_too():
    assert tiers.largest((1, None, "x")) == 0
    assert tiers.largest((np.zeros(3), Gini(2, 1.0), (np.zeros((4, 5)), (np.zeros(7),)))) == 20


# ---------------------------------------------------------------------- in a process
@pytest.mark.process
def test_small_fits_need_no_compiler(tmp_path):
    """Nor its import: of the textbooks' tables, in fit, prediction and export."""
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from gputree import C45Rules, C45Classifier, DecisionTreeClassifier, export_text\n"
        "from gputree.datasets import load_golf, load_iris\n"
        "for table in (load_golf(), load_iris()):\n"
        "    for kind in (C45Rules, C45Classifier, DecisionTreeClassifier):\n"
        "        model = kind().fit(table.data, table.target)\n"
        "        model.predict(table.data)\n"
        "    export_text(model)\n"
        "print('numba' in sys.modules)"
    )
    env = os.environ | {"GPUTREE_JIT": "auto", "NUMBA_CACHE_DIR": str(tmp_path)}
    assert run_python("-c", code, env=env) == "False\n"
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.process
def test_the_mode_is_checked():
    result = subprocess.run(
        [sys.executable, "-c", "import gputree.compilation"],
        capture_output=True, text=True, env=os.environ | {"GPUTREE_JIT": "sometimes"},
    )  # fmt: skip
    assert "GPUTREE_JIT must be one of auto, always, never, got 'sometimes'." in result.stderr
    with pytest.raises(ValueError, match="mode must be one of"), tiers.forced("sometimes"):
        pass


def test_errors_of_an_interpreted_kernel_stand_alone():
    def fail(values):
        raise ValueError("no")

    kernel = decorators.kernel(fail)
    with tiers.forced("never"), pytest.raises(ValueError, match="no") as error:
        kernel(np.zeros(1))
    assert error.value.__context__ is None


def test_overflow_and_division_are_as_silent_as_compiled_code():
    kernel = decorators.kernel(lambda a, b: (a[0] + a[0], b[0] / b[1]))
    most = np.array([np.iinfo(np.int64).max])
    with tiers.forced("never"):
        assert kernel(most, np.zeros(2))[0] == -2


@pytest.mark.full
def test_threads_may_interpret_side_by_side(auto):
    X, y = load_iris(return_X_y=True)
    trees = [None] * 4

    def fit(i):
        trees[i] = DecisionTreeClassifier(device="cpu").fit(X, y).tree_

    threads = [threading.Thread(target=fit, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {tree.threshold.tobytes() for tree in trees} == {trees[0].threshold.tobytes()}


# -------------------------------------------------------------- done without, for a while
@pytest.fixture
def uncompiled(monkeypatch):
    """Kernels that have no machine code anywhere."""
    kernels = [decorators.kernel(lambda x: x), decorators.kernel(small)]
    for kernel in kernels:
        monkeypatch.setitem(vars(kernel), "_is_kept", False)
    return kernels


def test_kernels_are_done_without_until_that_cost_as_much(auto, uncompiled):
    cost = sum(kernel.tier.compiling_cost() for kernel in uncompiled)
    assert tiers.is_cheaper_without(uncompiled, 0.6 * cost)
    assert not tiers.is_cheaper_without(uncompiled, 0.6 * cost)
    assert tiers.is_cheaper_without(uncompiled, 0.3 * cost)


@pytest.mark.parametrize("mode", ["always", "never"])
def test_kernels_are_done_without_only_where_calls_are_decided(auto, uncompiled, mode):
    with tiers.forced(mode):
        assert not tiers.is_cheaper_without(uncompiled, 0.0)


def test_kernels_that_are_kept_are_not_done_without(auto, uncompiled, monkeypatch):
    assert tiers.is_cheaper_without(uncompiled, 0.0)
    monkeypatch.setitem(vars(uncompiled[1]), "_is_kept", True)
    assert not tiers.is_cheaper_without(uncompiled, 0.0)


def test_a_tree_without_levels_is_the_same(monkeypatch):
    """500 rows in one block, and level by level: with signal, ties and missing values."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(500, 3)), 2)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1]) > rng.normal(size=500)
    fitted = []
    for cells in (0, X.size):
        monkeypatch.setattr(CpuBackend, "uncoded_cells", cells)
        with tiers.forced("never"), finishing(100):
            fitted.append(DecisionTreeClassifier(max_depth=4, device="cpu").fit(X, y))
    levels, block = fitted
    assert block.growth_report_["scanned_pairs"] == 0 < levels.growth_report_["scanned_pairs"]
    for field in dataclasses.fields(levels.tree_):
        pair = (getattr(model.tree_, field.name) for model in fitted)
        np.testing.assert_array_equal(*pair, err_msg=field.name)
