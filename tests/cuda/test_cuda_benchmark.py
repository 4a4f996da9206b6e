"""The first programs to run on a device run to their end, and say so where there is no device."""

import json
import sys

import numpy as np
import pytest
from cuda_emulator import emulated_cuda, memory, unavailable

from benchmarks import device, gpu
from gputree.backends.cuda import workspace
from gputree.backends.cuda.workspace import Buffer

ROWS = 2500

# Recomputed by default.
A_FEW = (
    "regression, weights, float32, binned",
    "categories, gini",
    "C4.5, weights, fractions of rows",
)
AGAIN = "`python -m benchmarks.device record` writes them anew"

# A separate line for each, as soon as it is measured.
NAMED = ('"seconds"', '"fit_seconds"', '"kernels"', '"stages"', '"xgboost"')


@pytest.fixture
def small(monkeypatch):
    if reason := unavailable():
        pytest.skip(reason)
    monkeypatch.setitem(sys.modules, "xgboost", None)  # takes real devices alone
    monkeypatch.setattr(gpu, "REPEATS", 1)
    monkeypatch.setattr(gpu, "WARM_ROWS", 400)
    monkeypatch.setattr(gpu, "DEPTHS", {"2": 2, "5": 5})


@pytest.mark.emulated
def test_all_cases_are_measured_and_written(small, tmp_path, capsys):
    output = tmp_path / "results" / "gpu.md"
    with emulated_cuda():
        options = ["--rows", str(ROWS), "--threads", "1", "--output", str(output)]
        assert gpu.main(options) == 0
    text = output.read_text()
    assert text in capsys.readouterr().out
    assert text.startswith("# an emulated device, ")
    summary = [line for line in text.splitlines() if line.startswith(f"| {ROWS:,} |")]
    assert len(summary) == 16  # 2 places x 2 depths x 2 splitters, in two tables
    assert all("| yes |" in line for line in summary[:8])
    assert all(line.count(" GB; ") == 5 for line in summary[8:12])  # depth 2: none is finished
    assert text.count("| gather_rows | ") == 4  # exact growths refine
    assert text.count("XGBoost: not installed.") == 4  # on the device


@pytest.mark.emulated
def test_one_case_its_longest_kernels_and_a_run_for_a_profiler(small, tmp_path, capsys):
    longest, output = tmp_path / "longest.txt", tmp_path / "goal.json"
    options = ["--rows", str(ROWS), "--depths", "2", "--splitters", "exact", "--places", "device"]
    options += ["--threads", "1", "--no-cpu"]
    with emulated_cuda():
        written = ["--longest", str(longest), "--output", str(output)]
        assert gpu.main([*options, *written]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert gpu.main([*options, "--once"]) == 0
    assert [named for named in NAMED for line in lines if named in line] == list(NAMED)
    (case,) = json.loads(output.read_text())["cases"]
    assert longest.read_text().split() == list(case["kernels"])[:3]
    assert case["fit_seconds"] > 0
    assert all(times["launches"] > 0 for times in case["kernels"].values())
    assert f"{case['nodes']} nodes" in capsys.readouterr().out


@pytest.mark.emulated
@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("machine", ["a module compiled", "Event(), get_elapsed_time: works", "compiles for 75"]),
        ("warm", ["2 of 2 modules in"]),
        ("bits", 2 * ["  equal\n"]),
        ("small", 2 * ["  equal\n"]),
    ],
)
def test_first_steps_on_a_device(small, capsys, monkeypatch, what, said):
    def grow_on_the_device(case, table, side, *, grow=device.grow_case):
        assert side == device.DEVICE  # for the CPU's trees are on record
        return grow(case, table, side)

    monkeypatch.setattr(device, "grow_case", grow_on_the_device)
    with emulated_cuda():
        assert device.main([what, "--most", "2"]) == 0
    output = capsys.readouterr().out
    assert "FAILED" not in output
    for words in said:
        assert words in output
        output = output.replace(words, "", 1)


@pytest.mark.emulated
def test_an_interface_that_is_not_as_expected_fails(small, capsys):
    with emulated_cuda() as cupy:
        cupy.cuda.Event = object
        assert device.main(["machine"]) == 1
    assert "Event(), get_elapsed_time: FAILED: AttributeError: " in capsys.readouterr().out


@pytest.mark.emulated
def test_bits_that_differ_fail(small, capsys):
    with emulated_cuda(replace={"return a.rank < b.rank;": "return a.rank > b.rank;"}):
        assert device.main(["bits", "--most", "1"]) == 1
    assert "DIFFERENT: first_child of node " in capsys.readouterr().out


@pytest.mark.emulated
def test_trees_that_are_not_on_record_are_compared_with_the_cpus(small, capsys, monkeypatch):
    table = device.CASES[0].table()
    other = table._replace(X=table.X + 1)  # numbers that come out otherwise than recorded
    monkeypatch.setattr(device, "CASES", [device.CASES[0]._replace(table=lambda: other)])
    with emulated_cuda():
        assert device.main(["bits", "--most", "1"]) == 0
    assert "equal to the CPU's, which is not on record" in capsys.readouterr().out


@pytest.mark.emulated
@pytest.mark.parametrize("stays", [False, True])
def test_an_error_that_stays_ends_the_comparison(small, capsys, monkeypatch, stays):
    """And one that does not stay is no reason to leave out the next tree."""

    def raise_error(*_):
        raise RuntimeError("an illegal memory access")

    with emulated_cuda() as cupy:
        cupy.RawModule.get_function = raise_error
        monkeypatch.setattr(
            cupy.cuda.Device, "synchronize", raise_error if stays else lambda _: None
        )
        assert device.main(["small", "--most", "3"]) == 1
    output = capsys.readouterr().out
    assert output.count("FAILED: RuntimeError: an illegal memory access") == (1 if stays else 3)
    assert output.count("what follows was not run, for the error stays") == stays


@pytest.mark.emulated
def test_arrays_of_small_trees_lie_apart(small):
    """Each in a separate allocation, with the arrays sent; together only if requested."""
    shapes, host = [((3, 5), np.int64), (7, np.float32)], np.arange(9)
    with emulated_cuda(), device.apart():
        room = Buffer()
        before = memory.allocations
        carved = [*workspace.allocate(*shapes), *room.allocate(shapes, lambda: 10_000)]
        sent = [*workspace.send(host, host), *room.send([host, host], lambda: 10_000)]
        owners = {array.host.ctypes.data for array in (*carved, *sent) if array.host.base is None}
        assert len(owners) == len(carved) + len(sent) == 8
        assert memory.allocations >= before + 8
        assert [array.shape for array in carved] == 2 * [(3, 5), (7,)]
        assert all(np.array_equal(array.get(), host) for array in sent)
    with emulated_cuda():
        together = workspace.allocate(*shapes)
        assert all(array.host.base is not None for array in together)


# --------------------------------------------------------------- trees on record
def test_the_cpus_trees_are_those_on_record():
    """Or a device would be compared with trees of another release."""
    known = json.loads(device.RECORD.read_text("utf-8"))
    cases = [*device.CASES, *device.LARGE]
    assert list(known) == [case.name for case in cases]
    found = {case.name: device.on_cpu(case) for case in cases if case.name in A_FEW}
    assert found == {name: known[name] for name in A_FEW}, AGAIN
    assert device.digest(*device.weighted()) == known["large: gini, weights"]["table"]


@pytest.mark.full
@pytest.mark.parametrize("case", [*device.CASES, *device.LARGE], ids=lambda case: case.name)
def test_each_of_the_cpus_trees_is_the_one_on_record(case):
    known = json.loads(device.RECORD.read_text("utf-8"))[case.name]
    table = case.table()
    if device.digest(*table) != known["table"]:
        pytest.skip("sines and logarithms are rounded otherwise here: another table")
    assert device.on_cpu(case) == known, AGAIN


@pytest.mark.emulated
def test_a_case_that_fails_is_reported_and_the_next_one_runs(small, tmp_path, monkeypatch):
    measured = gpu.measure_device

    def fails_on_the_device(case, *rest):
        parts = measured(case, *rest)
        yield next(parts)
        if case.place == "device":
            raise MemoryError("no room")
        yield from parts

    monkeypatch.setattr(gpu, "measure_device", fails_on_the_device)
    output = tmp_path / "gpu.json"
    with emulated_cuda():
        options = ["--rows", str(ROWS), "--threads", "1", "--no-cpu", "--output", str(output)]
        assert gpu.main(options) == 1
    cases = json.loads(output.read_text())["cases"]
    assert [case.get("error") for case in cases] == 4 * ["MemoryError: no room", None]
    assert ["seconds" in case for case in cases] == 8 * [True]
    assert ["stages" in case for case in cases] == 4 * [False, True]


def test_without_a_device_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "has_device", lambda: False)
    assert gpu.main([]) == 1
    assert "There is no CUDA device to measure" in capsys.readouterr().err
