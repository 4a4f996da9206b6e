"""Histograms in shards of columns are those in one piece; little of them comes to the client."""

import numpy as np
import pytest
from devices import new_backend, tune
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_task, problems

pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")

from eager_client import EagerClient  # noqa: E402  what follows needs Dask

from gputree import DecisionTreeClassifier  # noqa: E402
from gputree.backends.sharded import histograms  # noqa: E402
from gputree.backends.sharded.backend import ShardedBackend  # noqa: E402
from gputree.backends.sharded.cells import beside_best  # noqa: E402
from gputree.backends.sharded.histograms import cut_columns  # noqa: E402
from gputree.distributed import DaskDecisionTreeClassifier  # noqa: E402


@given(st.lists(st.integers(1, 257), min_size=1, max_size=40), st.integers(0, 6))
def test_shards_cover_all_columns_once_and_lie_within_fewer(bins, power):
    offset = np.concatenate([[0], np.cumsum(bins)])
    coarse, fine = (cut_columns(offset, 1 << k) for k in (power, power + 1))
    for found in (coarse, fine):
        assert all(a < b for a, b in found)
        assert [f for a, b in found for f in range(a, b)] == list(range(len(bins)))
    for a, b in fine:
        assert sum(first <= a and b <= last for first, last in coarse) == 1


@given(problems(), st.integers(2, 6), st.data())
def test_histograms_of_some_columns(problem, max_bins, data):
    criterion, sample = problem
    task = make_task(criterion, sample)
    device = new_backend("cpu", sample, task)
    device.encode(max_bins)
    n, d = sample.values.shape
    middle = data.draw(st.integers(0, n))
    columns = sorted(data.draw(st.lists(st.integers(0, d), min_size=2, max_size=2, unique=True)))
    begin, end = np.array([middle, 0]), np.array([n, middle])
    whole = device.new_histograms(2)
    device.histogram(begin, end, whole, np.array([1, 0]))
    first, last = device.table.offset[columns] * device.channels
    found = np.zeros((2, last - first), whole.dtype)
    device.count(begin, end, found, np.array([1, 0]), tuple(columns))
    assert (found == whole[:, first:last]).all()


@given(problems(), st.integers(2, 6))
def test_what_lies_beside_boundaries(problem, max_bins):
    criterion, sample = problem
    task = make_task(criterion, sample)
    device = new_backend("cpu", sample, task)
    device.encode(max_bins)
    n, d = sample.values.shape
    cells, slots = device.new_histograms(2), np.array([1, 0])
    begin, end = np.array([n // 2, 0]), np.array([n, n // 2])
    device.histogram(begin, end, cells, slots)
    scores = device.score(cells, slots)
    next_bin, seen = np.empty((2, d), np.int64), np.empty((2, d), np.bool_)
    beside_best(
        task.criterion, device.table, task.rows.weight is not None, cells, slots, scores.best,
        scores.bin, next_bin, seen,
    )  # fmt: skip
    codes = device.table.codes
    for j in range(2):
        rows = slice(begin[j], end[j])
        for f in range(d):
            is_missing = np.isnan(sample.values[rows, f])
            assert seen[j, f] == is_missing.any()
            if scores.best[j, f] > -np.inf:
                after = codes[rows, f][~is_missing]
                after = after[after > scores.bin[j, f]]
                assert next_bin[j, f] == (after.min() if after.size else -1)


# ---------------------------------------------------------------- what comes to the client
def received_in_levels(monkeypatch, classes, bins, number):
    """Nodes, shards and bytes that come to the client for each level's splits, binned."""
    tune(monkeypatch, "sharded", task_bytes=1, pieces_per_thread=number)
    monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: 1)
    found, score, refine = [], ShardedBackend.score, ShardedBackend.refine

    def scored(self, histograms, slots, bounds=None):
        found.append((slots.size, len(histograms.blocks), -self.shards.tasks.received))
        return score(self, histograms, slots, bounds)

    def refined(self, *arguments):
        splits = refine(self, *arguments)
        nodes, number, before = found[-1]
        found[-1] = nodes, number, before + self.shards.tasks.received
        return splits

    monkeypatch.setattr(ShardedBackend, "score", scored)
    monkeypatch.setattr(ShardedBackend, "refine", refined)
    rng = np.random.default_rng(classes)
    X, y = rng.normal(size=(1000, 6)), rng.integers(0, classes, 1000)
    tree = DaskDecisionTreeClassifier(
        client=EagerClient(), splitter="binned", max_bins=bins, max_depth=4, n_jobs=1
    )
    tree.fit(da.from_array(X, (400, 6)), da.from_array(y, 400))
    return found


@pytest.mark.parametrize(("classes", "bins"), [(2, 8), (2, 256), (12, 8), (12, 256)])
def test_what_comes_is_a_few_numbers_a_node_and_column(monkeypatch, classes, bins):
    """Whatever the number of bins and classes, of which a histogram is the product."""
    found = received_in_levels(monkeypatch, classes, bins, 3)
    assert [number for _, number, _ in found] == [4] * 4
    assert max(nodes for nodes, _, _ in found) >= 4
    for nodes, _, received in found:
        assert received == nodes * (6 * 42 + classes * 8)


def test_candidate_bins_are_of_the_columns_of_their_block(monkeypatch):
    """Cuts inside the bins of each of three blocks make the tree of one table."""
    found, joined = [], histograms.joined
    tune(monkeypatch, "sharded", task_bytes=1, pieces_per_thread=3)
    monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: 1)
    monkeypatch.setattr(
        histograms, "joined", lambda parts: found.append(len(parts)) or joined(parts)
    )
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 6))
    y = (X[:, 1] > 0.21) * 2 + (X[:, 3] > 0.13) + (X[:, 5] > 0.47)
    given = {"max_bins": 8, "max_depth": 5, "n_jobs": 1}
    tree = DaskDecisionTreeClassifier(client=EagerClient(), **given)
    tree.fit(da.from_array(X, (150, 6)), da.from_array(y, 150))
    assert max(found) > 2
    assert tree.tree_.equals(DecisionTreeClassifier(**given).fit(X, y).tree_)
