"""Primitives of the CUDA backend and of the CPU backend: equal bit for bit."""

import numpy as np
import pytest
from cuda_emulator import launches
from cuda_traffic import Traffic
from devices import to_host, tune
from strategies import PROBLEMS, make_task
from twins import assert_equal, assert_same_bins, pair, table

from gputree.backends import binning
from gputree.backends.base import Larger
from gputree.backends.cuda import finish, kernels, tuning, workspace
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.cuda.table import CudaTable


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("exact", "sample_rows"), [(True, 1000), (False, 1000), (False, 60)])
def test_bins(cuda_device, monkeypatch, dtype, exact, sample_rows):
    """Fitted to all values or a sample; a binned tree depends on them, an exact one does not."""
    monkeypatch.setattr(binning, "SAMPLE_ROWS", sample_rows)
    for seed in range(5):
        sample = table("gini", False, dtype=dtype, d=7, seed=seed)
        task = make_task("gini", sample, exact=exact)
        for max_bins in (2, 5, 32, 256):
            assert_same_bins(sample, task, max_bins)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(4))
def test_bins_of_a_sample_of_values(cuda_device, monkeypatch, dtype, seed):
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 150)
    monkeypatch.setattr(binning, "FEWEST_DISTINCT", 40)
    sample = table("gini", False, n=900, d=9, seed=seed, dtype=dtype)
    assert_same_bins(sample, make_task("gini", sample, exact=False), 16)


@pytest.mark.parametrize("d", [30, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_of_groups_of_columns(cuda_device, monkeypatch, dtype, d):
    """Whose edges fit shared memory; the last group, and the last word, are not full."""
    tune(monkeypatch, "cuda", shared_bytes=3 * 8192, chunk_rows=70)
    sample = table("gini", False, n=150, d=d, dtype=dtype)
    assert_same_bins(sample, make_task("gini", sample), 256)


def test_histograms_of_many_groups_of_columns(cuda_device, monkeypatch):
    """More than a grid's second dimension holds, of which the emulator has two here."""
    monkeypatch.setattr("cuda_emulator.library.MOST_BLOCKS_Y", 2)
    tune(monkeypatch, "cuda", shared_bytes=512)
    sample = table("gini", False, n=60, d=30)
    cpu, cuda = pair(sample, make_task("gini", sample), 8)
    assert cuda.counting.groups.size > 4
    begin, end, slots = np.array([0, 25]), np.array([25, 60]), np.array([1, 0])
    cells = []
    for backend in (cpu, cuda):
        cells.append(backend.new_histograms(2))
        backend.histogram(begin, end, cells[-1], slots)
    assert_equal(cells[0], cells[1].get())


@pytest.mark.parametrize("shared_bytes", [48 * 1024, 4096, 64])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_histograms(cuda_device, monkeypatch, criterion, weighted, shared_bytes):
    """In shared memory at once, in groups of columns, and in global memory."""
    tune(monkeypatch, "cuda", shared_bytes=shared_bytes)
    tune(monkeypatch, "cuda", chunk_rows=70)
    sample = table(criterion, weighted, d=9)
    cells = []
    for backend in pair(sample, make_task(criterion, sample), 16):
        whole, parts = backend.new_histograms(2), backend.new_histograms(3)
        backend.histogram(np.array([100, 0]), np.array([250, 100]), whole, np.array([1, 0]))
        larger = Larger(whole, np.array([0]), np.array([2]), np.array([0]))
        backend.histogram(np.array([20]), np.array([60]), parts, np.array([2]), larger)
        backend.score(parts, np.arange(3))
        cells.append((whole, parts))
    for expected, found in zip(*cells, strict=True):
        assert to_host(expected).dtype == to_host(found).dtype
        assert_equal(expected, found)


@pytest.mark.parametrize("d", [1, 7, 9, 28, 32, 45])
def test_histograms_of_two_classes(cuda_device, monkeypatch, d):
    """One to four rows at once, or several groups of columns; pieces that end within 32 rows."""
    tune(monkeypatch, "cuda", chunk_rows=70)
    sample = table("gini", False, n=200, d=d)
    sample = sample._replace(y=sample.y % 2)
    cells = []
    launches.clear()
    for backend in pair(sample, make_task("gini", sample), 256):
        cells.append(backend.new_histograms(2))
        slots = np.array([1, 0])
        backend.histogram(np.array([100, 0]), np.array([200, 93]), cells[-1], slots)
    assert_equal(*cells)
    assert launches["histogram_of_two"] == 1


def test_a_block_counts_fewer_rows_than_16_bits_hold():
    assert tuning.TUNING.chunk_rows < 1 << 16


@pytest.mark.parametrize("shared_bytes", [48 * 1024, 8])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_node_statistics(cuda_device, monkeypatch, criterion, weighted, shared_bytes):
    if criterion not in ("squared_error", "poisson"):  # their four sums always fit
        tune(monkeypatch, "cuda", shared_bytes=shared_bytes)
    tune(monkeypatch, "cuda", chunk_rows=100)
    sample = table(criterion, weighted)
    cpu, cuda = pair(sample, make_task(criterion, sample))
    begin, end = np.array([0, 30, 30]), np.array([30, 250, 31])
    assert_equal(cpu.node_statistics(begin, end), cuda.node_statistics(begin, end))


@pytest.mark.parametrize(
    ("rows", "expected"), [(0, 1024), (500_000, 1024), (1_000_000, 1894), (10_000_000, 8192)]
)
def test_blocks_process_fewer_entries_where_there_are_few(monkeypatch, rows, expected):
    """Blocks of an H100: 528 for 1,000,000 entries of a node, not 123."""
    monkeypatch.setattr(workspace, "filling_chunks", lambda: 4 * 132)
    assert workspace.chunk_rows(rows) == expected
    _, first, last = workspace.cut(np.array([0, rows // 2]), np.array([rows // 2, rows]))
    assert (last - first).sum() == rows
    assert (last - first).max() <= expected
    tune(monkeypatch, "cuda", chunk_rows=50)
    assert workspace.chunk_rows(rows) == 50


def test_subtrees_wait_for_the_device_twice(emulated_device):
    """For the numbers of nodes, and for the nodes."""
    sample = table("gini", False, n=200, d=5, dtype=np.float32)
    _, cuda = pair(sample, make_task("gini", sample), 8)
    before = Traffic.now()
    cuda.finish(np.array([0, 60]), np.array([60, 200]), np.zeros(2, int), np.zeros(2, np.uint64))
    spent = Traffic._make(np.subtract(Traffic.now(), before))
    assert spent.waits == spent.downloads == 2
    assert spent.uploads == 3  # places, roots, and where their nodes go


def test_small_nodes_are_grown_in_launches_by_size(cuda_device, monkeypatch):
    """The shared memory of each is at most twice what a node needs, but in the last."""
    tune(monkeypatch, "cuda", shared_classes=3, warp_rows=100, finish_warps=4)
    monkeypatch.setattr(finish, "shared_rows", lambda _: (900, 440))
    sample = table("gini", False)
    _, cuda = pair(sample, make_task("gini", sample))
    sizes = np.array([1000, 990, 501, 499, 440, 260, 250, 249, 3])
    channels = np.full(sizes.size, 2)
    none = np.zeros(sizes.size, int)
    roots = finish.Roots(none, sizes, none, none.astype(np.uint64), channels, [])
    found = list(finish.launches(cuda.grower, roots))
    assert [sizes[one.first : one.last].tolist() for one in found] == [
        [1000, 990], [501], [499], [440, 260], [250, 249, 3],
    ]  # fmt: skip
    assert [one.copied for one in found] == [0, 1, 1, 2, 2]
    assert [one.warps for one in found] == [4, 4, 4, 4, 2]
    listed = 4 + 1 + 2 * (3 * sample.values.shape[1] + 2)
    sums = finish.SUM_BYTES * cuda.grower.task.n_classes  # of a warp
    assert [one.shared - one.warps * sums for one in found] == [
        0, 501 * 4, 499 * 4, 440 * listed, 250 * listed,
    ]  # fmt: skip
    warp_bytes = 2 * finish.SUM_BYTES + 4 * sample.values.shape[1]
    tune(monkeypatch, "cuda", scratch_bytes=5 * warp_bytes)  # all have the warps of the first
    found = list(finish.launches(cuda.grower, roots))
    assert [one.last - one.first for one in found] == [1] * 6 + [2, 1]


def test_coding_waits_for_the_device_once(emulated_device, monkeypatch):
    """For all bins at once; where bins are fitted to picked values, for those before."""
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 60)
    monkeypatch.setattr(binning, "FEWEST_DISTINCT", 10)
    sample = table("gini", False, n=500)
    values = np.random.default_rng(0).normal(size=(500, 4))
    for exact, waits in ((True, 1), (False, 2)):
        table_ = CudaTable(kernels.cupy().asarray(values), np.zeros(4, bool))
        backend = CudaBackend(table_, make_task("gini", sample, exact=exact), 1)
        before = Traffic.now()
        backend.encode(16)
        assert Traffic.now().waits - before.waits == waits
