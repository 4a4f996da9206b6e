"""The benchmark of a device runs, and says so where there is none."""

import pytest
from cuda_emulator import emulated_cuda, unavailable

from benchmarks import gpu


@pytest.mark.emulated
@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
@pytest.mark.parametrize("place", ["host", "device"])
def test_a_case_is_measured(monkeypatch, place):
    monkeypatch.setattr(gpu, "REPEATS", 1)
    with emulated_cuda():
        bandwidth = gpu.copy_bandwidth(1 << 10)
        result = gpu.measure(gpu.Case(3000, place, 2, "exact"), bandwidth)
    assert result["same_nodes"]
    assert result["nodes"] == 7
    assert set(result["stages"]) >= {"arrive", "encode", "histogram", "score", "refine"}
    assert result["share_of_copy_bandwidth"]["encode"] > 0


def test_without_a_device_it_says_so(monkeypatch, capsys):
    def no_device():
        raise RuntimeError("no driver")

    monkeypatch.setattr(gpu, "describe_machine", no_device)
    assert gpu.main([]) == 1
    assert "There is no CUDA device to measure: no driver" in capsys.readouterr().err
