"""Several devices of one machine: forests use all of them, a name with a number one of them."""

import gc
from collections import Counter

import numpy as np
import pytest
from cuda_emulator import Card, LaunchError, emulated_cuda, launch_devices
from cuda_emulator.memory import current_device, memory
from devices import needs_emulator
from shard_kinds import least_memory, shrink

from gputree import (
    C45Classifier,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    check_device,
    load_model,
    save_model,
    scores,
)
from gputree.backends import devices
from gputree.backends.cuda import machine
from gputree.backends.devices import resolve_device

pytestmark = needs_emulator

MB = 1 << 20

rng = np.random.default_rng(3)
X = rng.integers(0, 30, (200, 4)).astype(np.float32)
y = (X[:, 0] + X[:, 1] > rng.integers(10, 50, 200)).astype(np.int64)


@pytest.fixture
def cupy():
    with emulated_cuda(devices=3) as module:
        yield module


@pytest.fixture
def used():
    """Launches by the number of the device."""
    launch_devices.clear()
    return launch_devices


def assert_same_forest(expected, found):
    for one, other in zip(expected.estimators_, found.estimators_, strict=True):
        assert one.tree_.equals(other.tree_)


# ---------------------------------------------------------------------------- one by its number
@pytest.mark.parametrize(
    ("model", "target"),
    [
        (DecisionTreeClassifier(max_bins=16), y),
        (DecisionTreeRegressor(max_leaf_nodes=9), X[:, 0] * X[:, 1]),
        (C45Classifier(), y),
        (RandomForestClassifier(3, random_state=0), y),
    ],
    ids=lambda value: type(value).__name__,
)
def test_one_device(cupy, used, model, target):
    """The device of the number alone works, and is the current one of no other work."""
    expected, found = (
        type(model)(**{**model.get_params(deep=False), "device": device}).fit(X, target)
        for device in ("cpu", "cuda:2")
    )
    assert used.keys() == {2}
    assert cupy.cuda.Device().id == 0
    pairs = zip(*(getattr(m, "estimators_", [m]) for m in (expected, found)), strict=True)
    assert all(one.tree_.equals(other.tree_) for one, other in pairs)
    assert getattr(found, "growth_report_", {"device": "cuda:2"})["device"] == "cuda:2"


@pytest.mark.parametrize("labels", ["host", "device 0", "device 1"])
def test_tables_of_another_device_are_copied(cupy, used, labels):
    on_0 = cupy.asarray(X)
    target = y
    if labels != "host":
        with cupy.cuda.Device(int(labels[-1])):
            target = cupy.asarray(y)
    found = DecisionTreeClassifier(device="cuda:1").fit(on_0, target)
    assert used.keys() == {1}
    assert found.tree_.equals(DecisionTreeClassifier(device="cpu").fit(X, y).tree_)


def test_coded_tables(cupy, used):
    """A table of one device is for it, whichever of the names an estimator has."""
    whole = CodedTable(X, device="cuda:1")
    batches = CodedTable.from_batches([(X[:80], y[:80]), (X[80:], y[80:])], device="cuda:1")
    assert whole.device == batches.device == "cuda:1"
    expected = DecisionTreeClassifier(device="cpu").fit(X, y).tree_
    for table in (whole, batches):
        for device in ("auto", "cuda", "cuda:1"):
            found = DecisionTreeClassifier(device=device).fit(table, y)
            assert found.tree_.equals(expected)
    RandomForestClassifier(3).fit(whole, y)
    assert used.keys() == {1}
    with pytest.raises(ValueError, match=r"The table lies on 'cuda:1', and .* on 'cuda:0'"):
        DecisionTreeClassifier(device="cuda:0").fit(whole, y)


def test_parts_that_pass_through_one_device(cupy, used, monkeypatch):
    """Tables in batches that do not fit the memory limit are streamed through that device."""
    shrink(monkeypatch)
    monkeypatch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
    batches = [(X[a : a + 60], y[a : a + 60]) for a in range(0, 200, 60)]
    table = CodedTable.from_batches(batches, device="cuda:1", max_bins=16)
    model = DecisionTreeClassifier(max_depth=4)
    expected = DecisionTreeClassifier(max_bins=16, max_depth=4, device="cpu").fit(X, y)
    for limit in (least_memory(model, table, y), None):
        found = model.set_params(max_device_memory=limit).fit(table, y)
        assert found.tree_.equals(expected.tree_)
    assert used.keys() == {1}


def test_scores(cupy, used):
    expected, found = (scores.gini_gain(X, y, device=device) for device in ("cpu", "cuda:1"))
    assert expected.tolist() == found.tolist()
    assert used.keys() == {1}


def test_a_number_that_is_not_there(cupy):
    said = (
        r"^device='cuda:3' is none of the visible CUDA devices: 'cuda:0', 'cuda:1', 'cuda:2'\. "
        r"Use device='cpu' or device='auto'\.$"
    )
    for fit in (
        lambda: DecisionTreeClassifier(device="cuda:3").fit(X, y),
        lambda: RandomForestClassifier(device="cuda:3").fit(X, y),
        lambda: C45Classifier(device="cuda:3").fit(X, y),
        lambda: CodedTable(X, device="cuda:3"),
        lambda: check_device("cuda:3"),
        lambda: machine_error("cuda:3"),
    ):
        with pytest.raises(RuntimeError, match=said):
            fit()


def machine_error(name):
    raise machine.missing(name)


@pytest.mark.parametrize("name", ["cuda:", "cuda:-1", "cuda:x", "cpu:0", "gpu", 1, None])
def test_names_that_are_none(name):
    said = (
        r"^The 'device' parameter of \w+ must be a str among {.*'cuda'.*}, or one CUDA device, "
        rf"as 'cuda:0'\. Got {name!r} instead\.$"
    )
    for fit in (
        lambda: DecisionTreeClassifier(device=name).fit(X, y),
        lambda: CodedTable(X, device=name),
    ):
        with pytest.raises(ValueError, match=said):
            fit()


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (DecisionTreeRegressor(criterion="absolute_error"), r"does not take device='cuda:1' with"),
        (C45Classifier(binary_splits=True), r"grows on the CPU alone.* Got device='cuda:1'\."),
        (DecisionTreeClassifier(splitter="random"), r"^Cuts are drawn on the CPU"),
        (DecisionTreeClassifier(forced_splits={"feature": 0, "threshold": 3}), r"^Splits are fo"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_trees_of_the_cpu_alone(cupy, model, said):
    with pytest.raises(ValueError, match=said):
        model.set_params(device="cuda:1").fit(X, y)
    with pytest.raises(ValueError, match="device='cuda:1'"):
        DecisionTreeRegressor(device="cuda:1").fit(X, X[:, :2])


def test_a_check_of_one_device(cupy, used, monkeypatch):
    """Each device has a check; a failed one stays out of what "auto" chooses."""
    monkeypatch.setattr("gputree.check.comparison.CASES", [])
    assert check_device("cuda:1").passed
    with cupy.cuda.Device(1):
        identity = machine.identity()
    assert identity.bus == "0000:01:00.0"


def test_files_keep_the_name(cupy, tmp_path):
    """Their models predict where there is no such device."""
    model = RandomForestClassifier(2, device="cuda:2", random_state=0).fit(X, y)
    save_model(model, tmp_path / "model")
    with emulated_cuda():
        found = load_model(tmp_path / "model")
        assert found.device == "cuda:2"
        assert found.predict(X).tolist() == model.predict(X).tolist()


# ------------------------------------------------------------------------------ forests
KINDS = {
    "host": lambda cupy: X,
    "device 0": lambda cupy: cupy.asarray(X),
    "device 1": lambda cupy: on(cupy, 1, lambda: cupy.asarray(X)),
    "coded": lambda cupy: CodedTable(X, device="cuda"),
    "coded elsewhere": lambda cupy: on(cupy, 2, lambda: CodedTable(X, device="cuda")),
}


def on(cupy, number, make):
    with cupy.cuda.Device(number):
        return make()


@pytest.mark.parametrize("wanted", ["cuda", "auto"])
@pytest.mark.parametrize("kind", KINDS)
def test_forests_use_all_devices(cupy, used, kind, wanted):
    forest = RandomForestClassifier(6, random_state=0, n_jobs=1, device=wanted)
    expected = RandomForestClassifier(6, random_state=0, device="cpu").fit(X, y)
    found = forest.fit(KINDS[kind](cupy), y)
    assert_same_forest(expected, found)
    assert used.keys() == {0, 1, 2}
    assert cupy.cuda.Device().id == 0


def test_other_forests(cupy, used):
    """Weights, targets, trees that are added; few trees use few devices."""
    weight = rng.integers(0, 3, 200)
    target = X[:, 0] - X[:, 1]
    models = [
        RandomForestRegressor(4, random_state=1, max_features=2, device=device, warm_start=True)
        for device in ("cpu", "cuda")
    ]
    for n_estimators in (4, 7):
        for model in models:
            model.set_params(n_estimators=n_estimators).fit(X, target, weight)
        assert_same_forest(*models)
    assert used.keys() == {0, 1, 2}
    used.clear()
    RandomForestClassifier(2, device="cuda").fit(X, y)
    assert used.keys() == {0, 1}


def test_memory_is_limited_by_device(cupy):
    """Each device has the limit; all of it is released afterwards."""
    forest = RandomForestClassifier(6, random_state=0, device="cuda", max_device_memory=20 * MB)
    gc.collect()
    before = memory.on_devices.copy()
    most = Counter()
    add = type(memory).add

    def watched(self, host, *others, **named):
        add(self, host, *others, **named)
        for number, live in self.on_devices.items():
            most[number] = max(most[number], live - before[number])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(memory), "add", watched)
        forest.fit(X, y)
    assert all(0 < most[number] <= 20 * MB for number in range(3))
    gc.collect()
    assert memory.on_devices == before
    with pytest.raises(MemoryError, match="max_device_memory allows 1,000"):
        forest.set_params(max_device_memory=1000).fit(X, y)


@pytest.mark.parametrize("table", ["host", "coded"])
def test_a_device_without_memory(used, table):
    """Its trees go on with the CPU, with a warning; the other device goes on with its own."""
    expected = RandomForestClassifier(6, random_state=0, device="cpu").fit(X, y)
    cards = [Card(), Card(memory_bytes=100_000)]
    with emulated_cuda(devices=2, card=cards) as cupy:
        given = X if table == "host" else CodedTable(X)
        with pytest.warns(RuntimeWarning, match="^device='auto' goes on with the CPU: .* bytes"):
            found = RandomForestClassifier(6, random_state=0).fit(given, y)
        assert_same_forest(expected, found)
        assert cupy.get_default_memory_pool().released == [1]
        assert used[0] > 0
        if table == "coded":
            assert given.device == "cuda"
        with pytest.raises(MemoryError, match=r"bytes.* Use device='cpu', or fewer"):
            RandomForestClassifier(6, device="cuda").fit(X, y)
        RandomForestClassifier(6, device="cuda:0").fit(X, y)


def test_auto_uses_devices_that_passed_the_check(cupy, used, monkeypatch, capsys):
    checked = devices._checked

    def fails_on_1(verbose):
        return "cpu" if current_device() == 1 else checked(verbose)

    monkeypatch.setattr(devices, "_checked", fails_on_1)
    RandomForestClassifier(6, verbose=1).fit(X, y)
    assert used.keys() == {0, 2}
    assert capsys.readouterr().err.count("device='auto' grows on the CUDA device") == 2
    RandomForestClassifier(6, device="cuda").fit(X, y)
    assert used.keys() == {0, 1, 2}


def test_devices_that_are_too_old_are_left_out(cupy, used, monkeypatch):
    properties = cupy.cuda.runtime.getDeviceProperties
    monkeypatch.setattr(
        cupy.cuda.runtime,
        "getDeviceProperties",
        lambda number: properties(number) | ({"major": 6} if number == 1 else {}),
    )
    machine._properties.cache_clear()
    RandomForestClassifier(6, device="cuda").fit(X, y)
    assert used.keys() == {0, 2}
    with pytest.raises(RuntimeError, match=r"needs compute capability 7\.0 or newer"):
        resolve_device("cuda:1")
    machine._properties.cache_clear()


# --------------------------------------------------------------------------- the stand-in
def test_memory_of_two_devices():
    """An array is in the memory of its device; copies to another one are made by `copy` alone."""
    with emulated_cuda(devices=2, card=[Card(), Card(memory_bytes=1000)]) as cupy:
        here, there = cupy.cuda.Device(0), cupy.cuda.Device(1)
        first = cupy.asarray(np.arange(100))
        assert there.mem_info == (1000 - memory.on_devices[1], 1000)
        with there:
            second = first.copy()
            assert (second.device.id, second.get().tolist()) == (1, list(range(100)))
            with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="allocating 800 bytes"):
                first.copy()
            with pytest.raises(LaunchError, match="an array of device 0 while device 1"):
                first + second
        assert here.mem_info[0] > there.mem_info[0]
        assert first.copy().device.id == 0
