"""Tables whose parts pass through a CUDA device: the same trees, within the memory allowed."""

from __future__ import annotations

import gc
import pickle
import re
import weakref

import numpy as np
import pytest
from blocks_traffic import Uploads, noisy
from cuda_emulator import launches, memory, transfers
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table
from part_cases import KINDS, mixed_case
from strategies import examples, random_sample

from gputree import (
    C45Classifier,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
from gputree.backends.blocks import backend as blocks
from gputree.backends.blocks import part as parts_
from gputree.backends.blocks.copies import PartCopies
from gputree.backends.cpu import table as table_
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.lanes import Lane, Lanes, columns_from, rows_from
from gputree.backends.workers import cuda_part
from gputree.estimators.held import Held, Parts, View
from gputree.growth import grower

# Small tables of many categories: one in every row, which is told and does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")


@pytest.fixture
def small(monkeypatch):
    """Parts of few rows, and what works on them in little memory; small nodes are few."""
    shrink(monkeypatch)


def shrink(patch, finish_rows=30):
    tune(patch, "cuda", least_work=1 << 14, chunk_rows=40, block_bytes=500)
    patch.setattr("gputree.growth.grower.finish_rows", lambda *_: finish_rows)
    patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)


def on_device(table: CodedTable) -> CodedTable:
    """The same table as batches leave one for a CUDA device."""
    held = table._view.held
    parts = Parts(np.array([0, len(table)]))
    own = Held(held.columns, held.values, held.names, "cuda", held.max_bins, parts)
    return CodedTable.of(View(own))


def least_memory(model, table, y, weight=None) -> int:
    """Bytes that the device needs, as an error tells."""
    with pytest.raises(MemoryError, match=r"parts of [\d,]+ rows needs at least") as error:
        model.set_params(max_device_memory=1).fit(table, y, weight)
    return int(re.search(r"at least ([\d,]+) bytes", str(error.value))[1].replace(",", ""))


def fit_within(model, table, y, weight, budget):
    """Grow in parts, within a budget that is held, on the device."""
    gc.collect()
    memory.peak = before = memory.live
    counted = launches["histogram"] + launches["histogram_global"]
    found = model.set_params(max_device_memory=budget).fit(table, y, weight)
    assert memory.peak - before <= budget
    assert "uploaded_bytes" in found.growth_report_
    assert launches["histogram"] + launches["histogram_global"] > counted
    return found.tree_


def assert_same(model, table, y, weight=None, shares=(1.0, 2.0)):
    """Trees are those of the CPU, whatever part of the table has room."""
    expected = model.fit(table, y, weight).tree_
    own = on_device(table)
    least = least_memory(model, own, y, weight)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_fits", lambda *_: False)
        for share in shares:
            found = fit_within(model, own, y, weight, int(share * least))
            found.check()
            assert found.equals(expected), share
    model.set_params(max_device_memory=None)


@pytest.mark.parametrize(("criterion", "weighted", "limits"), KINDS)
def test_trees_of_mixed_tables(cuda_device, small, criterion, weighted, limits):
    sample, kind, y = mixed_case(criterion, weighted)
    table = CodedTable(sample.X, sample.nominal, max_bins=12, device="cpu")
    assert_same(kind(criterion=criterion, n_jobs=1, **limits), table, y, sample.weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_answers_that_only_rise_or_fall(cuda_device, small, criterion, dtype):
    sample = random_sample(7, 300, 4, 2 if criterion == "gini" else 0, weighted=True)
    kind = DecisionTreeClassifier if criterion == "gini" else DecisionTreeRegressor
    values = np.clip(sample.values, -1e38, 1e38).astype(dtype)
    table = CodedTable(values, max_bins=12, device="cpu")
    model = kind(criterion=criterion, n_jobs=1, monotonic_cst=[1, -1, 0, 1])
    assert_same(model, table, sample.y, sample.weight)


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize("splitter", ["exact", "binned"])
def test_columns_of_more_categories_than_bins(cuda_device, small, kind, splitter):
    rng = np.random.default_rng(1)
    n = 500
    code = (n * 0.9 * rng.random(n) ** 2).astype(int) + 300 * (rng.random(n) < 0.3)
    X = np.stack([code, rng.integers(0, 5, n), rng.standard_normal(n)], axis=1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (code % 7 < 3) + (X[:, 2] > 0) * 1
    table = CodedTable(X, [0, 1], max_bins=16, device="cpu")
    assert_same(kind(min_samples_leaf=6, n_jobs=1, splitter=splitter), table, y)


def test_some_rows_of_a_table(cuda_device, small, monkeypatch):
    sample = random_mixed_table(5, 400, True)
    table = CodedTable(sample.X, sample.nominal, max_bins=12, device="cpu")
    rows = np.random.default_rng(0).permutation(400)[:250]
    y, weight = sample.y[rows], sample.weight[rows]
    model = DecisionTreeClassifier(n_jobs=2)
    expected = model.fit(table.take(rows), y, weight).tree_
    own = on_device(table).take(rows)
    least = least_memory(model, own, y, weight)
    assert fit_within(model, own, y, weight, least).equals(expected)
    monkeypatch.setattr(grower, "FEWEST_ROWS", 250)  # all rows are grown without codes
    found = model.set_params(max_device_memory=least).fit(own, y, weight)
    assert found.tree_.equals(expected)


@examples(5)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(80, 250),
    weighted=st.booleans(),
    regression=st.booleans(),
    exact=st.booleans(),
    rows=st.sampled_from([20, 40, 79]),
    share=st.floats(1.0, 4.0),
    block=st.sampled_from([200, 1 << 20]),
)
def test_random_tables(cuda_device, seed, n, weighted, regression, exact, rows, share, block):
    sample = random_mixed_table(seed, n, weighted)
    kind = DecisionTreeRegressor if regression else DecisionTreeClassifier
    table = CodedTable(sample.X, sample.nominal, max_bins=8, device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch, rows)
        tune(patch, "cuda", block_bytes=block)
        model = kind(n_jobs=1, max_depth=6, splitter="exact" if exact else "binned")
        assert_same(model, table, sample.y, sample.weight, [share])


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
    assert table.device == "cuda"  # of its own accord
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
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
    """What each level of the last tree uploaded; nothing is grown whole on the device."""
    monkeypatch.setattr(blocks, "_fits", lambda *_: False)
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
    """Where every column but one is coded without loss, its values alone are uploaded."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((2000, 8)), 1).clip(-1, 1).astype(np.float32)
    X[:, 5] = rng.standard_normal(2000)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    y = X[:, 5] + rng.standard_normal(2000) > 0.3
    model = DecisionTreeClassifier(n_jobs=1, max_depth=3)
    least = least_memory(model, table, y)
    monkeypatch.setattr(
        blocks, "share_out", lambda *_, own=blocks.share_out: own(*_)._replace(valued=0)
    )
    model.set_params(max_device_memory=4 * least).fit(table, y)
    plan, sent = uploads.plan, uploads.levels
    assert plan.staying * plan.rows >= len(X)
    one = 4 * len(X)  # of one column
    assert all(own % one == 0 for own in sent[1:])
    assert any(own // one % 8 for own in sent[1:])


def test_the_next_part_is_copied_while_one_is_counted(cuda_device, small, monkeypatch):
    monkeypatch.setattr(blocks, "_fits", lambda *_: False)
    events = []

    def spied(name, function):
        return lambda *own, **named: (events.append(name), function(*own, **named))[1]

    X, y = noisy(400, 6)
    table = on_device(CodedTable(X, max_bins=32, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, splitter="binned", max_depth=1)
    least = least_memory(model, table, y)
    monkeypatch.setattr(cuda_part, "histogram", spied("count", cuda_part.histogram))
    monkeypatch.setattr(Lanes, "send", spied("send", Lanes.send))
    monkeypatch.setattr(Lanes, "wait", spied("wait", Lanes.wait))
    monkeypatch.setattr(parts_.BlockPart, "reorder", spied("next pass", parts_.BlockPart.reorder))
    model.set_params(max_device_memory=least).fit(table, y)
    counting = events[: events.index("next pass")]
    passes = counting.count("count")
    assert passes == -(-len(X) // 40)
    arrays = ["send"] * 3  # codes, targets, entries
    assert counting == [*arrays, *(["wait", "count", *arrays] * passes)[:-3]]


def test_kept_entries_are_there_before_another_part_comes(cuda_device, small, monkeypatch):
    """Parts come on streams of their own, to memory of parts that went."""
    if cuda_device == "cuda":
        pytest.skip("the emulator counts waits")
    monkeypatch.setattr(blocks, "_fits", lambda *_: False)
    waits, keep = [], PartCopies.keep

    def kept(*own):
        before = transfers["waits"]
        keep(*own)
        waits.append(transfers["waits"] - before)

    monkeypatch.setattr(PartCopies, "keep", kept)
    X, y = noisy(400, 4)
    table = on_device(CodedTable(X, max_bins=12, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, max_depth=1)
    model.set_params(max_device_memory=least_memory(model, table, y)).fit(table, y)
    assert waits
    assert min(waits) > 0


def test_lanes_last_until_their_copies_are_done(cuda_device):
    if cuda_device == "cuda":
        pytest.skip("the emulator counts waits")
    lane, array = Lane(64), np.arange(4.0)
    lane.send(cupy().empty(4, dtype=np.float64), rows_from(array), 1)
    waits = transfers["waits"]
    del lane
    gc.collect()
    assert transfers["waits"] == waits + 1


def test_copied_tables_are_coded_again(cuda_device, small, monkeypatch):
    monkeypatch.setattr(blocks, "_fits", lambda *_: False)
    X, y = noisy(300, 4)
    table = on_device(CodedTable(X, max_bins=12, device="cpu"))
    model = DecisionTreeClassifier(n_jobs=1, max_depth=3)
    model.set_params(max_device_memory=2 * least_memory(model, table, y))
    expected = model.fit(table, y).tree_
    assert model.fit(pickle.loads(pickle.dumps(table)), y).tree_.equals(expected)


def test_other_tables_let_their_bins_go(monkeypatch):
    made = []
    code = table_.code

    def coded(*own):
        table, bins = code(*own)
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
    monkeypatch.setattr(blocks, "_fits", lambda *_: False)
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
