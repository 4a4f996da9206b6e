"""Parts counted on a CUDA device: as on the CPU, and as counted one row after another."""

import gc
import struct
from dataclasses import replace

import numpy as np
import pytest
from devices import tune
from oracles import row_statistics
from strategies import PROBLEMS, make_task
from twins import assert_equal, table

from gputree.backends.base import Splits
from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.table import CpuTable
from gputree.backends.cuda.memory import Copies
from gputree.backends.sharded import cuda_shard as shards_
from gputree.backends.sharded.cuda_shard import Cached, CudaShard
from gputree.backends.sharded.shard import FLOAT32_SHIFT, HostShard, RequestedIntervals

BEGIN, END = np.array([120, 0, 90, 90]), np.array([250, 90, 120, 90])  # the last one is empty


def pair(sample, task, max_bins=12, categories=None, seed=0):
    """A part on the CPU and on the device, its rows in some order."""
    host = CpuBackend(CpuTable(sample.values, sample.missing, categories), task, 1)
    host.encode(max_bins)
    host.entries = np.random.default_rng(seed).permutation(host.entries)
    return HostShard(host), CudaShard(host, Cached(host, host.table.codes, host.entries))


def sums_of(shard):
    """Statistics of nodes."""
    sums = np.zeros((BEGIN.size, shard.host.task.statistics), np.int64)
    shard.node_statistics([sums], BEGIN, END)
    return sums


def statistics_of(task):
    """Addends of each row to the channels of a cell."""
    counted = [np.ones((task.rows.target.size, 1), np.int64)] * (task.rows.weight is not None)
    return np.hstack([row_statistics(task), *counted])


@pytest.mark.parametrize("columns", [(0, 9), (0, 3), (2, 7), (8, 9)])
@pytest.mark.parametrize("shared_bytes", [48 * 1024, 512])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS[:1] + PROBLEMS[5:6])
def test_histograms(cuda_device, monkeypatch, criterion, weighted, shared_bytes, columns):
    """Histograms of some columns are added to existing ones, which may be wider."""
    tune(monkeypatch, "cuda", chunk_rows=70)
    tune(monkeypatch, "cuda", shared_bytes=shared_bytes)
    tune(monkeypatch, "sharded", result_bytes=1)  # a node at a time
    sample = table(criterion, weighted, d=9)
    found = []
    for part in pair(sample, make_task(criterion, sample)):
        first, last = part.host.table.offset[list(columns)]
        found.append(np.full((4, int(last - first) * part.host.channels), 5, np.int64))
        part.count([found[-1]], BEGIN[:3], END[:3], np.array([3, 0, 1]), columns)
    assert_equal(*found)


@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_sums(cuda_device, monkeypatch, criterion, weighted):
    tune(monkeypatch, "cuda", chunk_rows=70)
    sample = table(criterion, weighted)
    cpu, cuda = pair(sample, make_task(criterion, sample))
    assert_equal(sums_of(cpu), sums_of(cuda))


# ---------------------------------------------------------------------------- cells
def key_of(x, shift):
    """The bits of a float64 as a number that rises with it."""
    bits = struct.unpack("<q", struct.pack("<d", float(x) + 0.0))[0]
    return (bits + 2**63 if bits >= 0 else ~bits) >> shift


def random_intervals(rng, host, begin, end):
    """Random bins of random columns of each node, with random ranges of their values."""
    values, codes = host.table.values, host.table.codes
    shift = FLOAT32_SHIFT if values.dtype == np.float32 else 0
    node_pairs, column, pair_intervals, ranges, bins = [0], [], [0], [], []
    for first, last in zip(begin, end, strict=True):
        rows = host.entries[first:last]
        for f in np.flatnonzero(rng.random(values.shape[1]) < 0.7):
            starts = []
            for code in range(257):
                starts.append(len(ranges))
                values_in_bin = values[rows[codes[rows, f] == code], f]
                keys = sorted({key_of(x, shift) for x in values_in_bin[~np.isnan(values_in_bin)]})
                ends = sorted(rng.permutation(len(keys))[: 2 * int(rng.integers(0, 4))])
                pairs = zip(ends[::2], ends[1::2], strict=False)
                ranges += [(keys[a], keys[b]) for a, b in pairs]
            if len(ranges) > pair_intervals[-1]:
                column.append(f)
                bins.append(starts)
                pair_intervals.append(len(ranges))
        node_pairs.append(len(column))
    low, high = (np.array([r[k] for r in ranges], np.uint64) for k in range(2))
    cut = np.array([max(int(b - a).bit_length() - 3, 0) for a, b in ranges], np.uint64)
    cells = ((high - low) >> cut).astype(np.int64) + 1
    return RequestedIntervals(
        shift, np.array(node_pairs), np.array(column, np.int64), np.array(pair_intervals), low,
        high, cut, np.append(0, np.cumsum(cells)),
        np.array(bins, np.int32).reshape(-1, 257),
    )  # fmt: skip


def count_plainly(task, values, entries, intervals):
    """One row, column and range after another."""
    cells = int(intervals.first[-1])
    counts = np.zeros((cells, task.channels), np.int64)
    held = [[] for _ in range(cells)]
    added = statistics_of(task)
    for j, (begin, end) in enumerate(zip(BEGIN, END, strict=True)):
        for p in range(intervals.node_pairs[j], intervals.node_pairs[j + 1]):
            for row in entries[begin:end]:
                x = values[row, intervals.column[p]]
                key = None if np.isnan(x) else key_of(x, intervals.key_shift)
                for a in range(intervals.pair_intervals[p], intervals.pair_intervals[p + 1]):
                    if key is not None and int(intervals.low[a]) <= key <= int(intervals.high[a]):
                        c = intervals.first[a] + (
                            key - int(intervals.low[a]) >> int(intervals.shift[a])
                        )
                        counts[c] += added[row]
                        held[c].append(float(x))
    least = [min(keys, default=np.inf) for keys in held]
    return counts.ravel(), np.array(least), np.array([max(keys, default=-np.inf) for keys in held])


def empty_sums(task, cells):
    return [
        np.zeros(cells * task.channels, np.int64), np.full(cells, np.inf), np.full(cells, -np.inf)
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("criterion", "weighted"), PROBLEMS)
def test_cells(cuda_device, monkeypatch, criterion, weighted, dtype):
    tune(monkeypatch, "cuda", chunk_rows=50)
    for seed in range(3):
        sample = table(criterion, weighted, d=6, seed=seed, dtype=dtype)
        task = make_task(criterion, sample)
        cpu, cuda = pair(sample, task, seed=seed)
        rng = np.random.default_rng(seed)
        asked = random_intervals(rng, cpu.host, BEGIN, END)
        expected = count_plainly(task, sample.values, cpu.host.entries, asked)
        for part in (cpu, cuda):
            sums = empty_sums(task, int(asked.first[-1]))
            part.count_intervals(sums, BEGIN, END, asked)
            for array, found in zip(expected, sums, strict=True):
                assert_equal(array, found)


@pytest.mark.parametrize(("criterion", "weighted"), [("gini", False), ("squared_error", True)])
@pytest.mark.parametrize("count", [4, 300])
def test_categories(cuda_device, criterion, weighted, count):
    rng = np.random.default_rng(count)
    sample = table(criterion, weighted)
    sample.values[:, 1] = np.where(rng.random(250) < 0.2, np.nan, rng.integers(0, count, 250))
    task = make_task(criterion, sample)
    cpu, cuda = pair(sample, task, categories=np.array([0, count, 0, 0]))
    expected = np.zeros((4, count + 1, task.channels), np.int64)
    for j, (begin, end) in enumerate(zip(BEGIN, END, strict=True)):
        for row in cpu.host.entries[begin:end]:
            x = sample.values[row, 1]
            expected[j, count if np.isnan(x) else int(x)] += statistics_of(task)[row]
    for part in (cpu, cuda):
        counts = np.zeros((4, expected[0].size), np.int64)
        part.count_categories([counts], BEGIN, END, 1)
        assert_equal(expected.reshape(4, -1), counts)


# -------------------------------------------------------------------------- targets
@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
@pytest.mark.parametrize("weighted", [True, False])
def test_targets(cuda_device, criterion, weighted):
    """Nodes of one target are distinguished from others, over parts that are joined."""
    sample = table(criterion, weighted)
    first = np.random.default_rng(0).permutation(250)[:90]  # of the order of `pair`
    sample.y[first] = 0.5
    for part in pair(sample, make_task(criterion, sample)):
        lows, highs = np.full(4, -np.inf), np.full(4, np.inf)
        part.narrow_targets([lows, highs], BEGIN, END)
        assert (lows <= highs).tolist() == [False, True, False, True]
        before = lows[1], highs[1]
        part.narrow_targets([lows, highs], BEGIN, END)  # of another part
        assert (lows[1], highs[1]) == before
        assert np.isfinite(before).all()


# ------------------------------------------------------------------------ partition
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exact", [True, False])
def test_partition(cuda_device, monkeypatch, dtype, exact):
    """Between bins, inside them, and by categories, of which a part may hold none."""
    tune(monkeypatch, "cuda", partition_rows=30)
    rng = np.random.default_rng(1)
    sample = table("gini", False, d=5, dtype=dtype)
    sample.values[:, 3] = np.where(rng.random(250) < 0.2, np.nan, rng.integers(0, 9, 250))
    sample.values[:, 4] = rng.integers(0, 300, 250)
    categories = np.array([0, 0, 0, 9, 300])
    cpu, cuda = pair(sample, make_task("gini", sample, exact=exact), categories=categories)
    listed = {3: np.array([1, 4, 8], np.uint32), 4: np.arange(7, 290, 3).astype(np.uint32)}
    for f in range(5):
        splits = Splits.none(3)
        splits.feature[:] = f
        splits.missing_left[:] = [False, True, False]
        if f in listed:
            splits.codes[:] = [listed[f], listed[f][:1], listed[f][1:]]
        else:
            bins = int(cpu.host.table.offset[f + 1] - cpu.host.table.offset[f])
            splits.cut_bin[:] = [0, bins // 2, bins // 3]
            splits.next_bin[:] = [1, bins // 2 + 1, -1]
            splits.inside[:] = [False, False, exact]
            splits.threshold[:] = np.nanmedian(sample.values[:, f])
        before = cpu.host.entries
        found = [part.partition(BEGIN[:3], END[:3], splits) for part in (cpu, cuda)]
        for expected, array in zip(*found, strict=True):
            assert_equal(expected, array, f)
        assert found[1][0] is not cuda.place.order_of
        cpu.host.entries = before


# ----------------------------------------------------------------------------- copies
def test_copies_are_kept_while_arrays_and_room_are():
    copies = Copies()
    arrays = [np.zeros(k) for k in range(4)]
    for k, array in enumerate(arrays):
        copies.keep(array, f"copy {k}", 10)
    assert copies.nbytes == 40
    assert copies.find(arrays[0]) == "copy 0"  # the last that was used
    copies.make_room(15, 40)
    assert [copies.find(array) for array in arrays] == ["copy 0", None, None, "copy 3"]
    del array, arrays[3]
    gc.collect()
    assert copies.nbytes == 10
    copies.make_room(50, 40)
    assert copies.nbytes == 0
    assert copies.find(np.zeros(3)) is None
    copies.keep(arrays[0], "again", 5)
    copies.keep(arrays[0], "and again", 7)
    assert (copies.nbytes, copies.find(arrays[0])) == (7, "and again")


def test_rows_are_copied_once_and_given_up(cuda_device, monkeypatch):
    monkeypatch.setattr(shards_, "COPIES", Copies())
    sample = table("gini", False)
    task = make_task("gini", sample)
    parts = [pair(sample, task, seed=seed)[1] for seed in (0, 1)]
    made = []
    copy_rows = shards_.copy_rows
    monkeypatch.setattr(shards_, "copy_rows", lambda host: made.append(host) or copy_rows(host))
    for part in (*parts, *parts):
        sums_of(part)
    assert made == [part.host for part in parts]
    splits = Splits.none(1)
    splits.feature[0], splits.cut_bin[0] = 0, 3
    entries = parts[0].partition(np.array([0]), np.array([90]), splits)[0]
    assert shards_.COPIES.find(entries) is not None
    assert shards_.COPIES.nbytes == 3 * entries.nbytes + 2 * (250 * (4 + 4 + 8 * 4))
    made.clear()
    del part, parts[1], entries
    gc.collect()
    assert shards_.COPIES.nbytes == 250 * (4 + 4 + 4 + 8 * 4)


def test_shards_take_turns_within_a_budget(cuda_device, monkeypatch):
    """Two parts of which one fits: each is copied whenever it is needed."""
    monkeypatch.setattr(shards_, "COPIES", Copies())
    sample = table("gini", False)
    needed = 250 * (4 + 4 + 8 * 4 + 4 + 8)
    tune(monkeypatch, "cuda", least_work=0)
    task, made, copy_rows = make_task("gini", sample), [], shards_.copy_rows
    monkeypatch.setattr(shards_, "copy_rows", lambda host: made.append(host) or copy_rows(host))
    for budget, copies in ((needed, 4), (3 * needed, 2)):
        limited = replace(task, max_device_memory=budget)
        parts = [pair(sample, limited, seed=seed) for seed in (0, 1)]
        made.clear()
        for cpu, cuda in (*parts, *parts):
            assert_equal(sums_of(cpu), sums_of(cuda))
        assert len(made) == copies
        assert shards_.COPIES.nbytes <= budget
    limited = replace(task, max_device_memory=needed - 1)
    with pytest.raises(MemoryError, match=r"A part of 250 rows needs at least .* smaller partit"):
        sums_of(pair(sample, limited)[1])
