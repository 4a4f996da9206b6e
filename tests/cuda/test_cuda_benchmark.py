"""What is run on a device at first runs to its end, and says so where there is no device."""

import json
import sys

import pytest
from cuda_emulator import emulated_cuda, unavailable

from benchmarks import device, gpu

ROWS = 2500


@pytest.fixture
def small(monkeypatch):
    if reason := unavailable():
        pytest.skip(reason)
    monkeypatch.setitem(sys.modules, "xgboost", None)  # takes real devices alone
    monkeypatch.setattr(gpu, "REPEATS", 1)
    monkeypatch.setattr(gpu, "WARM_ROWS", 400)
    monkeypatch.setattr(gpu, "COPY_BYTES", 1 << 10)
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
    assert text.count("| gather_inside | ") == 2  # exact growths of depth 2 refine
    assert text.count("XGBoost: not installed.") == 4  # on the device


@pytest.mark.emulated
def test_one_case_its_longest_kernels_and_a_run_for_a_profiler(small, tmp_path, capsys):
    longest, output = tmp_path / "longest.txt", tmp_path / "goal.json"
    options = ["--rows", str(ROWS), "--depths", "2", "--splitters", "exact", "--places", "device"]
    options += ["--threads", "1", "--no-cpu"]
    with emulated_cuda():
        written = ["--longest", str(longest), "--output", str(output)]
        assert gpu.main([*options, *written]) == 0
        capsys.readouterr()
        assert gpu.main([*options, "--once"]) == 0
    (case,) = json.loads(output.read_text())["cases"]
    assert longest.read_text().split() == list(case["kernels"])[:3]
    assert case["fit_seconds"] > 0
    assert all(times["launches"] > 0 for times in case["kernels"].values())
    assert f"{case['nodes']} nodes" in capsys.readouterr().out


@pytest.mark.emulated
@pytest.mark.parametrize(("what", "said"), [("machine", "a module compiled"), ("bits", "equal"),
                                            ("small", "C4.5")])  # fmt: skip
def test_first_steps_on_a_device(small, capsys, what, said):
    with emulated_cuda():
        assert device.main([what, "--rows", "300"]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.emulated
def test_bits_that_differ_fail(small, capsys):
    with emulated_cuda(replace={"return a.rank < b.rank;": "return a.rank > b.rank;"}):
        assert device.main(["bits", "--rows", "300"]) == 1
    assert "DIFFERENT: feature" in capsys.readouterr().out


@pytest.mark.emulated
def test_a_case_that_fails_is_reported_and_the_next_one_runs(small, tmp_path, monkeypatch):
    measured = gpu.measure_device

    def fails_on_the_device(case, *rest):
        if case.place == "device":
            raise MemoryError("no room")
        return measured(case, *rest)

    monkeypatch.setattr(gpu, "measure_device", fails_on_the_device)
    output = tmp_path / "gpu.json"
    with emulated_cuda():
        options = ["--rows", str(ROWS), "--threads", "1", "--no-cpu", "--output", str(output)]
        assert gpu.main(options) == 1
    cases = json.loads(output.read_text())["cases"]
    assert [case.get("error") for case in cases] == 4 * ["MemoryError: no room", None]


def test_without_a_device_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(gpu, "has_device", lambda: False)
    assert gpu.main([]) == 1
    assert "There is no CUDA device to measure" in capsys.readouterr().err
