"""A device is checked before it is believed."""

import json
import os
import re
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_emulator import emulated_cuda
from devices import needs_emulator

from gputree import DecisionTreeClassifier
from gputree.backends.cuda import kernels, machine
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.devices import resolve_device
from gputree.check import check_device, comparison, trust
from gputree.check.cases import CASES, numbers
from gputree.check.comparison import Side, first_difference
from gputree.cli import main

pytestmark = needs_emulator

# Weights of nodes are off by one: a bug that harms nothing else.
ADDED = "add_to_global(node_sums + k, sums[k]);"
WRONG_KERNEL = {ADDED: ADDED.replace("sums[k]", "sums[k] + 1")}

SIDES = Side("the CPU", "CPU", "cpu"), Side("the device", "device", "cuda")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setattr(comparison, "user_cache", lambda: str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check one table, not all."""
    monkeypatch.setattr(comparison, "CASES", CASES[:1])


@pytest.fixture
def cupy() -> Iterator[Any]:
    with emulated_cuda(believed=False) as module:
        yield module


@pytest.fixture
def wrong_kernel() -> Iterator[Any]:
    with emulated_cuda(believed=False, replace=WRONG_KERNEL) as module:
        yield module


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Counter[str]]:
    """``checks(*differences)``: let checks find that; returns a count of those that are run."""

    def answer(*differences: str) -> Counter[str]:
        count: Counter[str] = Counter()

        def run(identity: machine.Identity) -> list[str]:
            count["cuda"] += 1
            comparison.keep(identity, differences, lasting=True)
            return list(differences)

        monkeypatch.setattr(trust, "check_apart", run)
        return count

    return answer


def forget() -> None:
    """Forget results, as in a new process."""
    comparison._known.clear()


# ------------------------------------------------------------------------- the whole check
def test_every_kernel_is_launched_and_all_trees_are_the_same(cupy, monkeypatch):
    """Only launched kernels are checked."""
    launched = set()
    launch = kernels.Kernels.__call__

    def counted(self: Any, module: str, kernel: str, grid: Any, *rest: Any, **options: Any) -> None:
        launch(self, module, kernel, grid, *rest, **options)
        if min(grid) > 0:
            launched.add((module, kernel))

    monkeypatch.setattr(kernels.Kernels, "__call__", counted)
    report = check_device("cuda")
    assert report.differences == []
    assert report.passed
    assert f"passed: {len(CASES)} tables, the same trees bit for bit" in str(report)
    pattern = r"__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\("
    assert {path.as_posix() for path in sources()} == set(kernels.HEADERS)
    written = {(m, k) for m in kernels.HEADERS for k in re.findall(pattern, kernels.source(m))}
    assert len(written) > 30
    assert written - launched == set()


def sources() -> list[Path]:
    """Every module of kernels there is, below the package's folder, without its ending."""
    folder = Path(kernels.__file__).parent
    return [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.cu")]


def test_all_that_trees_are_grown_with_is_checked():
    """Criteria, weights, widths of numbers: each at least once."""
    tables = [case.table() for case in CASES]
    assert {table.X.dtype.name for table in tables} == {"float32", "float64"}
    assert {table.weight is None for table in tables} == {True, False}
    assert all(np.isnan(table.X).any() for table in tables)
    assert {case.estimator.__name__ for case in CASES} >= {"C45Classifier", "ID3Classifier"}
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.usefixtures("few_tables", "wrong_kernel")
def test_a_wrong_kernel_is_found():
    report = check_device("cuda")
    assert not report.passed
    assert report.completed
    assert re.fullmatch(r"gini, missing.*: .* on the CPU, .* on the device", report.differences[0])
    assert "FAILED: 1 of 1 tables differ" in str(report)
    assert comparison.find(machine.identity()) == report.differences


@pytest.mark.usefixtures("few_tables", "cupy")
def test_an_error_is_told_and_not_kept(monkeypatch, folder):
    """Memory that others take, say: the device may pass tomorrow."""

    def fail(*_: Any) -> None:
        raise MemoryError("out of memory\non device 0")

    monkeypatch.setattr(CudaBackend, "encode", fail)
    report = check_device("cuda")
    assert report.differences == [f"{CASES[0].name}: MemoryError on the device: out of memory"]
    assert not report.completed
    assert comparison.find(machine.identity()) == report.differences
    forget()
    assert comparison.find(machine.identity()) is None
    assert not folder.exists()


@pytest.mark.usefixtures("few_tables")
def test_threads():
    report = check_device("cpu")
    assert report.passed
    assert report.about["threads"] in str(report)


def test_the_device_to_check_is_one_that_there_is():
    with pytest.raises(ValueError, match=r"'device' to check must be 'cuda', .*, got 'auto'"):
        check_device("auto")


# ------------------------------------------------------------------------------ differences
def test_the_first_difference():
    data = numbers(300, 3, 3, np.float64)
    tree = DecisionTreeClassifier(max_depth=3, device="cpu").fit(data.X, data.y).tree_
    assert first_difference(tree, tree, SIDES) == ""
    threshold, statistics = tree.threshold.copy(), tree.statistics.copy()
    threshold[2] = np.nextafter(threshold[2], 9)
    statistics[4, 1] += 1
    other = replace(tree, statistics=statistics)
    told = first_difference(tree, other, SIDES)
    assert told == (
        f"statistics of node 4: {tree.statistics[4, 1]} on the CPU, "
        f"{statistics[4, 1]} on the device"
    )
    told = first_difference(tree, replace(other, threshold=threshold), SIDES)
    assert told.startswith("threshold of node 2: ")
    smaller = tree.collapse(np.arange(tree.n_nodes) == 1)
    assert re.fullmatch(r"\d+ nodes on the CPU, \d+ nodes on the device",
                        first_difference(tree, smaller, SIDES))  # fmt: skip
    assert first_difference(tree, replace(tree, criterion="entropy"), SIDES) != ""


# ------------------------------------------------------------------------------------- auto
@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "auto" checks here: see `test_check_apart` for the process that it starts."""
    monkeypatch.setattr(trust, "check_apart", lambda _: check_device("cuda").differences)


@pytest.mark.usefixtures("few_tables", "wrong_kernel", "in_this_process")
def test_auto_leaves_a_wrong_device_alone(capsys):
    data = CASES[0].table()
    with pytest.warns(RuntimeWarning, match=r"check of the CUDA device an emulated device failed"):
        auto = DecisionTreeClassifier(max_bins=16).fit(data.X, data.y)
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.warns(RuntimeWarning, match=r"gini, missing values, exact: .* on the device"):
        DecisionTreeClassifier(max_bins=16).fit(data.X, data.y)
    assert capsys.readouterr().err == ""
    cpu = DecisionTreeClassifier(max_bins=16, device="cpu").fit(data.X, data.y)
    assert auto.tree_.equals(cpu.tree_)
    obeyed = DecisionTreeClassifier(max_bins=16, device="cuda").fit(data.X, data.y)
    assert not obeyed.tree_.equals(cpu.tree_)


@pytest.mark.usefixtures("few_tables", "cupy", "in_this_process")
def test_auto_checks_once_and_says_so(capsys, folder):
    assert resolve_device("auto") == "cuda"
    said = capsys.readouterr().err
    assert said.startswith("gputree: checking the CUDA device an emulated device against the CPU")
    assert said.count("\n") == 1
    assert resolve_device("auto") == "cuda"
    forget()
    assert resolve_device("auto") == "cuda"
    assert capsys.readouterr().err == ""
    assert [path.suffix for path in folder.iterdir()] == [".json"]


@pytest.mark.usefixtures("cupy")
def test_many_differences_are_not_all_quoted(checks):
    checks("one: 1", "two: 2", "three: 3", "four: 4")
    with pytest.warns(RuntimeWarning, match=r"\(one: 1; two: 2; and 2 more\)"):
        assert resolve_device("auto") == "cpu"


@pytest.mark.usefixtures("cupy")
def test_without_standard_error(checks, monkeypatch):
    checks()
    monkeypatch.setattr(sys, "stderr", None)
    assert resolve_device("auto", verbose=True) == "cuda"


# ---------------------------------------------------------------------------- what is kept
@pytest.mark.parametrize("field", machine.Identity._fields)
def test_another_device_driver_or_release_is_checked_again(cupy, checks, monkeypatch, field):
    count = checks()
    for _ in range(2):
        assert resolve_device("auto") == "cuda"
        forget()
    assert count["cuda"] == 1
    other = machine.identity()._replace(**{field: "another"})
    monkeypatch.setattr(machine, "identity", lambda: other)
    assert resolve_device("auto") == "cuda"
    assert count["cuda"] == 2


def test_the_kernels_are_known_by_their_sources(monkeypatch):
    before = machine.kernel_digest()
    assert before == machine.kernel_digest.__wrapped__()
    found = list(machine._sources(machine.files("gputree.backends.cuda"), ""))
    assert {"finish.cu", "types.cuh", "lists/score.cu", "refine.py"} <= {name for name, _ in found}
    name, text = found[0]
    monkeypatch.setattr(machine, "_sources", lambda *_: [(name, text + b" "), *found[1:]])
    assert machine.kernel_digest.__wrapped__() != before


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "\x00\xff",
        lambda text: "[]",
        lambda text: "null",
        lambda text: text.replace('"differences": []', '"differences": "none"'),
        lambda text: text.replace('"differences"', '"other"'),
        lambda text: text.replace('"format": 1', '"format": 2'),
        lambda text: text.replace("emulated device", "other device"),
    ],
)
def test_a_damaged_file_counts_for_nothing(cupy, checks, folder, damage):
    count = checks()
    resolve_device("auto")
    (path,) = folder.iterdir()
    whole = path.read_text()
    path.write_text(damage(whole), encoding="latin-1")
    assert path.read_text("latin-1") != whole
    forget()
    assert resolve_device("auto") == "cuda"
    assert count["cuda"] == 2
    assert path.read_text() == whole  # written anew


@pytest.mark.usefixtures("cupy")
def test_only_the_user_can_write_the_folder(folder):
    """A new user's group often may, by the default modes of files."""
    before = os.umask(0o002)
    try:
        comparison.keep(machine.Identity(*machine.Identity._fields), [], lasting=True)
    finally:
        os.umask(before)
    assert list(folder.iterdir())
    assert not stat.S_IMODE(folder.stat().st_mode) & (stat.S_IWGRP | stat.S_IWOTH)


@pytest.mark.usefixtures("cupy")
def test_differences_are_kept(checks):
    count = checks("one: 1")
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match="one: 1"):
            assert resolve_device("auto") == "cpu"
        forget()
    assert count["cuda"] == 1


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("folder_is", ["a file", "not known"])
def test_a_folder_that_cannot_be_written(checks, folder, monkeypatch, folder_is):
    """The process remembers all the same."""
    folder.write_text("")
    if folder_is == "not known":
        monkeypatch.setattr(comparison, "user_cache", lambda: None)
    count = checks()
    assert [resolve_device("auto") for _ in range(3)] == ["cuda"] * 3
    assert count["cuda"] == 1
    assert folder.read_text() == ""
    forget()
    assert resolve_device("auto") == "cuda"
    assert count["cuda"] == 2


@pytest.mark.usefixtures("cupy")
def test_the_file(checks, folder):
    """Readers of the folder see the subject of a check, and its validity."""
    checks()
    resolve_device("auto")
    (path,) = folder.iterdir()
    content = json.loads(path.read_text())
    assert content == {"format": 1, **machine.identity()._asdict(), "differences": []}
    assert content["device"] == "an emulated device"


# ------------------------------------------------------------------------------ the command
@pytest.mark.usefixtures("few_tables", "cupy")
def test_the_command(capsys, folder):
    assert main(["check"]) == 0
    output, errors = capsys.readouterr()
    assert errors == ""
    lines = output.splitlines()
    assert lines[0] == "driver  CUDA 13.0"
    assert lines[3] == "device  an emulated device, compute capability 9.0"
    assert re.match(r"gini, missing values, exact +393 +[\d.]+ s +[\d.]+ s  the same$", lines[6])
    assert lines[-1].startswith("passed: 1 tables")
    assert len(list(folder.iterdir())) == 1


@pytest.mark.usefixtures("few_tables", "wrong_kernel")
def test_the_command_on_a_wrong_device(capsys):
    assert main(["check", "--device", "cuda"]) == 3
    output, errors = capsys.readouterr()
    assert "FAILED: 1 of 1 tables differ" in output
    assert "--device auto does not use this device" in errors


@pytest.mark.usefixtures("few_tables")
def test_the_command_on_threads(capsys):
    assert main(["check", "--device", "cpu"]) == 0
    assert "1 thread " in capsys.readouterr().out


def test_the_command_without_a_device(cupy, capsys, monkeypatch):
    """Everything that is missing is reported at once."""

    def absent() -> None:
        raise RuntimeError("CuPy failed to load libnvrtc.so.13")

    monkeypatch.setattr(cupy.cuda.runtime, "driverGetVersion", lambda: 0)
    monkeypatch.setattr(cupy.cuda.nvrtc, "getVersion", absent)
    assert main(["check"]) == 1
    output, errors = capsys.readouterr()
    assert " ".join(output.split()) == "driver missing CuPy 0 NVRTC missing device missing"
    assert errors.count("\n") == 1
    assert re.match("gputree: error: a CUDA device needs an NVIDIA driver.*; and NVRTC,", errors)
    assert "device=" not in errors
