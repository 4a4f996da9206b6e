"""Tables whose parts pass through a CUDA device: the same trees, within the memory allowed."""

import gc
import pickle
import re
import weakref

import numpy as np
import pytest
from cuda_emulator import launches, memory, transfers
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table
from shard_kinds import fit_within, in_shards, least_memory, shrink
from shard_traffic import Uploads, noisy
from strategies import examples, random_sample

from gputree import C45Classifier, CodedTable, DecisionTreeClassifier, ID3Classifier
from gputree.backends.cpu import table as table_
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.source import Lane, Lanes, columns_from, rows_from
from gputree.backends.sharded import cuda_shard, device
from gputree.backends.sharded.device import ShardCopies
from gputree.growth import grower

# Small tables of many categories: one in every row, whose warning does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")


@pytest.fixture
def small(monkeypatch):
    """Shards of few rows, and what works on them in little memory; small nodes are few."""
    shrink_all(monkeypatch)


def shrink_all(patch):
    shrink(patch)
    patch.setattr("gputree.growth.grower.finish_rows", lambda *_: 30)
    patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)


def on_device(table):
    """The same table as batches leave one for a CUDA device."""
    return in_shards(table, [0, len(table)], "cuda")


def test_some_rows_of_a_table(cuda_device, small, monkeypatch):
    sample = random_mixed_table(5, 400, True)
    table = CodedTable(sample.X, sample.nominal, max_bins=12, device="cpu")
    rows = np.random.default_rng(0).permutation(400)[:250]
    y, weight = sample.y[rows], sample.weight[rows]
    model = DecisionTreeClassifier(n_jobs=2)
    expected = model.fit(table.take(rows), y, weight).tree_
    chosen = on_device(table).take(rows)
    least = least_memory(model, chosen, y, weight)
    assert fit_within(model, chosen, y, weight, least).equals(expected)
    monkeypatch.setattr(grower, "FEWEST_ROWS", 250)  # all rows are grown without codes
    found = model.set_params(max_device_memory=least).fit(chosen, y, weight)
    assert found.tree_.equals(expected)


@examples(3)
@given(seed=st.integers(0, 10**6), size=st.sampled_from([7, 90, 1000]), exact=st.booleans())
def test_batches(cuda_device, seed, size, exact):
    """Read from batches of any size, grown whole on the device and in parts."""
    sample = random_sample(seed, 300, 5, 3, weighted=False)
    X, y = np.clip(sample.values, -1e38, 1e38), sample.y
    batches = [(X[a : a + size], y[a : a + size]) for a in range(0, 300, size)]
    model = DecisionTreeClassifier(n_jobs=1, splitter="exact" if exact else "binned")
    expected = model.fit(CodedTable(X, max_bins=16, device="cpu"), y).tree_
    table = CodedTable.from_batches(batches, max_bins=16)
    assert table.device == "cuda"  # without a request
    with pytest.MonkeyPatch.context() as patch:
        shrink_all(patch)
        counted = launches["histogram"]
        whole = model.set_params(max_device_memory=None).fit(table, y)
        assert whole.tree_.equals(expected)
        assert "uploaded_bytes" not in whole.growth_report_
        assert launches["histogram"] > counted
        least = least_memory(model, table, y)
        assert fit_within(model, table, y, None, least).equals(expected)


# ------------------------------------------------------------------------------- traffic
@pytest.fixture
def uploads(monkeypatch):
    """Bytes that each level of the last tree uploaded; nothing is grown whole on the device."""
    monkeypatch.setattr(device, "_fits", lambda *_: False)
    return Uploads(monkeypatch)


def test_parts_that_fit_are_uploaded_once(cuda_device, small, monkeypatch, uploads):
    X, y = noisy(2000, 6)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, splitter="binned", max_depth=5)
    least = least_memory(model, table, y)
    model.set_params(max_device_memory=3 * least).fit(table, y)
    plan, sent = uploads.plan, uploads.levels
    assert plan.staying * plan.rows >= len(X)
    assert len(sent) == 5
    assert sent == [len(X) * (8 + 4 + 4), 0, 0, 0, 0]  # codes, targets, entries: no values


def test_parts_that_do_not_fit_pass_twice_a_level(cuda_device, small, monkeypatch, uploads):
    """To be counted, and to be partitioned; but for two that are there still."""
    X, y = noisy(2000, 6)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, splitter="binned", max_depth=5)
    least = least_memory(model, table, y)
    model.set_params(max_device_memory=int(1.2 * least)).fit(table, y)
    plan, sent = uploads.plan, uploads.levels
    passing = len(X) - plan.staying * plan.rows
    assert 0 < plan.staying * plan.rows < len(X) - 2 * plan.rows
    assert sent[0] == (len(X) + passing) * 16
    assert max(sent[1:]) <= 2 * passing * 16


def test_values_of_columns_that_are_asked_for_pass(cuda_device, small, monkeypatch, uploads):
    """Only the values of one column are uploaded where all others are coded without loss."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((2000, 8)), 1).clip(-1, 1).astype(np.float32)
    X[:, 5] = rng.standard_normal(2000)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    y = X[:, 5] + rng.standard_normal(2000) > 0.3
    model = DecisionTreeClassifier(n_jobs=1, max_depth=3)
    least = least_memory(model, table, y)
    monkeypatch.setattr(
        device, "share_out", lambda *_, share_out=device.share_out: share_out(*_)._replace(valued=0)
    )
    model.set_params(max_device_memory=4 * least).fit(table, y)
    plan, sent = uploads.plan, uploads.levels
    assert plan.staying * plan.rows >= len(X)
    one = 4 * len(X)  # of one column
    assert all(size % one == 0 for size in sent[1:])
    assert any(size // one % 8 for size in sent[1:])


def test_the_next_part_is_copied_while_one_is_counted(cuda_device, small, monkeypatch):
    monkeypatch.setattr(device, "_fits", lambda *_: False)
    events = []

    def spied(name, function):
        return lambda *arguments, **named: (events.append(name), function(*arguments, **named))[1]

    X, y = noisy(400, 6)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, splitter="binned", max_depth=1)
    least = least_memory(model, table, y)
    monkeypatch.setattr(cuda_shard, "histogram", spied("count", cuda_shard.histogram))
    monkeypatch.setattr(Lanes, "send", spied("send", Lanes.send))
    monkeypatch.setattr(Lanes, "wait", spied("wait", Lanes.wait))
    monkeypatch.setattr(
        cuda_shard.CudaShard, "partition", spied("next pass", cuda_shard.CudaShard.partition)
    )
    model.set_params(max_device_memory=least).fit(table, y)
    counting = events[: events.index("next pass")]
    passes = counting.count("count")
    assert passes == -(-len(X) // 40)
    arrays = ["send"] * 3  # codes, targets, entries
    assert counting == [*arrays, *(["wait", "count", *arrays] * passes)[:-3]]


def test_kept_entries_are_there_before_another_part_comes(emulated_device, small, monkeypatch):
    """Parts are copied on separate streams, to memory of parts that were released."""
    monkeypatch.setattr(device, "_fits", lambda *_: False)
    waits, keep = [], ShardCopies.keep

    def kept(*arguments):
        before = transfers["waits"]
        keep(*arguments)
        waits.append(transfers["waits"] - before)

    monkeypatch.setattr(ShardCopies, "keep", kept)
    X, y = noisy(400, 4)
    table = on_device(CodedTable(X, max_bins=12, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, max_depth=1)
    model.set_params(max_device_memory=least_memory(model, table, y)).fit(table, y)
    assert waits
    assert min(waits) > 0


def test_lanes_last_until_their_copies_are_done(emulated_device):
    lane, array = Lane(64), np.arange(4.0)
    lane.send(cupy().empty(4, dtype=np.float64), rows_from(array), 1)
    waits = transfers["waits"]
    del lane
    gc.collect()
    assert transfers["waits"] == waits + 1


def test_copied_tables_are_coded_again(cuda_device, small, monkeypatch):
    monkeypatch.setattr(device, "_fits", lambda *_: False)
    X, y = noisy(300, 4)
    table = on_device(CodedTable(X, max_bins=12, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, max_depth=3)
    model.set_params(max_device_memory=2 * least_memory(model, table, y))
    expected = model.fit(table, y).tree_
    assert model.fit(pickle.loads(pickle.dumps(table)), y).tree_.equals(expected)


def test_other_tables_let_their_bins_go(monkeypatch):
    made = []
    code = table_.code

    def coded(*arguments):
        table, bins = code(*arguments)
        made.append(weakref.ref(bins.edge))
        return table, bins

    monkeypatch.setattr(table_, "code", coded)
    X, y = noisy(300, 4)
    table = CodedTable(X, max_bins=12, device="cpu")
    DecisionTreeClassifier(n_jobs=1, splitter="binned").fit(table, y)
    gc.collect()
    assert made
    assert not any(edge() is not None for edge in made)


# -------------------------------------------------------------------------------- memory
def test_nothing_stays_on_the_device(cuda_device, small, monkeypatch):
    monkeypatch.setattr(device, "_fits", lambda *_: False)
    gc.collect()
    before = memory.live
    X, y = noisy(300, 6)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1)
    model.set_params(max_device_memory=2 * least_memory(model, table, y)).fit(table, y)
    gc.collect()
    assert memory.live == before


def test_codes_of_a_task_with_more_memory_go(cuda_device, small):
    """A table that was grown on whole leaves its codes there, and a lower budget is held yet."""
    X, y = noisy(600, 6)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, max_depth=4)
    gc.collect()
    before = memory.live
    expected = model.fit(table, y).tree_
    gc.collect()
    assert memory.live > before
    least = least_memory(model, table, y)
    memory.peak = memory.live
    assert fit_within(model, table, y, None, least).equals(expected)
    assert memory.live == before


def test_attribute_lists_that_do_not_fit(cuda_device, monkeypatch):
    """Lists of all rows lie on the device, of batches as well; or an error says what they need."""
    X, y = noisy(200, 3)
    X = np.round(X).clip(-1, 1)
    batches = [(X[a : a + 60], y[a : a + 60]) for a in range(0, 200, 60)]
    table = CodedTable.from_batches(batches, range(3), device="cuda")
    tune(monkeypatch, "cuda", default_share=1.0)
    for kind in (C45Classifier, ID3Classifier):
        model, counted = kind(n_jobs=1), launches.total()
        monkeypatch.setattr(cupy().cuda.Device, "mem_info", (1, 1))
        with pytest.raises(
            MemoryError, match=r"lists of 200 rows.* free device memory is 1\. .*='cpu'"
        ) as e:
            model.fit(table, y)
        needed = int(re.search(r"at least ([\d,]+) bytes", str(e.value))[1].replace(",", ""))
        assert needed > 2 * 8 * X.size
        assert launches.total() == counted
        monkeypatch.setattr(cupy().cuda.Device, "mem_info", (needed, needed))
        tree = model.fit(table, y).tree_
        assert launches.total() > counted
        whole = CodedTable(X, range(3), device="cpu")
        assert tree.equals(model.set_params(device="cpu").fit(whole, y).tree_)


@pytest.mark.parametrize("shape", [(50,), (50, 3), (50, 8)])
@pytest.mark.parametrize("size", [1, 40, 10_000])
def test_lanes(cuda_device, monkeypatch, shape, size):
    """Rows in blocks, of another type, with columns left out or added."""
    tune(monkeypatch, "cuda", block_bytes=size)
    array = np.random.default_rng(0).integers(0, 200, shape).astype(np.uint8)
    lanes = Lanes(2, 64)
    sent = cupy().empty(shape, dtype=np.int32)
    lanes.send(sent, rows_from(array))
    lanes.wait()
    np.testing.assert_array_equal(sent.get(), array)
    if array.ndim == 2:
        wider = cupy().empty((50, 12), dtype=np.uint8)
        lanes.send(wider, rows_from(array))
        few = cupy().empty((50, 2), dtype=np.uint8)
        lanes.send(few, columns_from(array, np.array([0, 2])))
        np.testing.assert_array_equal(wider.get()[:, : shape[1]], array)
        assert not wider.get()[:, shape[1] :].any()
        np.testing.assert_array_equal(few.get(), array[:, [0, 2]])
    assert lanes.sent == sent.nbytes + (array.ndim - 1) * (50 * 12 + 50 * 2)
