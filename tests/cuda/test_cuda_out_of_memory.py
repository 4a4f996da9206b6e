"""A growth that a device has not enough memory for: an error, or with "auto" the CPU's tree."""

import gc
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_emulator.memory import memory

from gputree import (
    C45Classifier,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    RandomForestClassifier,
)
from gputree.backends import devices
from gputree.backends.cuda import memory as device_memory
from gputree.ensemble.trees import TableRows

TREES = [
    DecisionTreeClassifier(max_depth=4),
    DecisionTreeRegressor(min_samples_leaf=3),
    C45Classifier(),
    ID3Classifier(max_depth=2),
]
FOREST = RandomForestClassifier(3, random_state=0)
GOES_ON = r"^device='auto' goes on with the CPU: .*\d bytes"

rng = np.random.default_rng(5)
X = rng.integers(0, 9, (300, 3)).astype(np.float64)
y = X[:, 0] + X[:, 1] > rng.integers(3, 12, 300)


@pytest.fixture
def auto(emulated_device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have "auto" choose the emulator, as after a check that found the same trees."""
    monkeypatch.setattr(devices, "_checked", lambda verbose: "cuda")


@pytest.fixture
def refuse(emulated_device: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """``refuse(k)``: the device refuses allocation k from now on; return sizes, which are added.

    With ``upto`` all from k to that one.
    """
    refused = importlib.import_module("cupy").cuda.memory.OutOfMemoryError
    add = type(memory).add

    def refuse(k: int, upto: int = 0) -> list[int]:
        sizes: list[int] = []

        def limited(self: Any, host: Any, *others: Any, **named: Any) -> None:
            sizes.append(host.nbytes)
            if k <= len(sizes) <= max(k, upto):
                raise refused(f"Out of memory allocating {host.nbytes:,} bytes")
            add(self, host, *others, **named)

        monkeypatch.setattr(type(memory), "add", limited)
        return sizes

    return refuse


def fit(model: Any, device: str, table: Any = X) -> Any:
    return type(model)(**{**model.get_params(deep=False), "device": device}).fit(table, y)


def trees_of(model: Any) -> list[Any]:
    return [tree.tree_ for tree in getattr(model, "estimators_", [model])]


@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("model", [*TREES, FOREST], ids=lambda model: type(model).__name__)
def test_auto_goes_on_with_the_cpu(auto, refuse, monkeypatch, model, part):
    """Nothing stays on the device, whichever allocation is refused; the tree is the same."""
    sizes = refuse(0)
    fit(model, "cuda")
    gc.collect()
    count, before = len(sizes), memory.live
    kept = []
    monkeypatch.setattr(device_memory, "release", lambda: kept.append(memory.live))
    refuse(1 + int(part * (count - 1)), 10**9 if model is FOREST else 0)
    with pytest.warns(RuntimeWarning, match=GOES_ON) as warned:
        found = fit(model, "auto")
    assert len(warned) == 1
    assert kept == [before]
    pairs = zip(trees_of(found), trees_of(fit(model, "cpu")), strict=True)
    assert all(tree.equals(expected) for tree, expected in pairs)
    assert getattr(found, "growth_report_", {"device": "cpu"})["device"] == "cpu"


@pytest.mark.parametrize("model", [TREES[0], TREES[2], FOREST], ids=lambda m: type(m).__name__)
def test_cuda_says_what_is_lacking(refuse, model):
    refuse(2, 10**9)
    with pytest.raises(MemoryError, match=r"^The CUDA device has not enough .* [\d,]+ bytes\. Use"):
        fit(model, "cuda")


@pytest.mark.parametrize("k", [1, 8])
def test_fewer_trees_are_grown_together(refuse, monkeypatch, k):
    """Halves of a batch are grown if the memory does not suffice for it."""
    numbers: list[int] = []
    grow = TableRows.grow_stacked

    def noted(rows: TableRows, trees: list[Any], *others: Any) -> Any:
        numbers.append(len(trees))
        return grow(rows, trees, *others)

    monkeypatch.setattr(TableRows, "grow_stacked", noted)
    forest = RandomForestClassifier(4, random_state=0)
    refuse(k)
    found = fit(forest, "cuda")
    assert numbers == [4, 2, 2]
    pairs = zip(trees_of(found), trees_of(fit(forest, "cpu")), strict=True)
    assert all(tree.equals(expected) for tree, expected in pairs)


@pytest.mark.parametrize("model", [TREES[0], TREES[2]], ids=lambda m: type(m).__name__)
def test_a_limit_that_is_given(auto, model):
    limited = type(model)(max_device_memory=1000, device="auto")
    with pytest.warns(RuntimeWarning, match=r"goes on .*max_device_memory allows 1,000\.$"):
        found = limited.fit(X, y)
    assert found.tree_.equals(limited.set_params(device="cpu").fit(X, y).tree_)


def test_tables_of_devices(auto, refuse):
    """Tables on the device go to the CPU, except those that were to be coded there."""
    on_device = importlib.import_module("cupy").asarray(X.astype(np.float32))
    table = CodedTable(X)
    assert table.device == "cuda"
    refuse(2)
    with pytest.warns(RuntimeWarning, match=GOES_ON):
        found = fit(TREES[0], "auto", table)
    assert table.device == "cpu"
    assert found.tree_.equals(fit(TREES[0], "cpu").tree_)
    assert fit(TREES[0], "auto", table).tree_.equals(found.tree_)

    sizes = refuse(4)
    with pytest.warns(RuntimeWarning, match=GOES_ON):
        found = fit(TREES[0], "auto", on_device)
    assert len(sizes) == 4
    assert found.tree_.equals(fit(TREES[0], "cpu", X.astype(np.float32)).tree_)

    table = CodedTable(X, device="cuda")
    refuse(2)
    with pytest.raises(MemoryError, match="has not enough memory"):
        fit(TREES[0], "auto", table)
