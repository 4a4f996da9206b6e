"""Trees over partitions are the same whatever workers count on: CPUs, CUDA devices, or both."""

from __future__ import annotations

import numpy as np
import pytest
from devices import needs_emulator
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import random_mixed_table
from part_cases import KINDS, mixed_case
from strategies import examples, random_sample

pytest.importorskip("dask.dataframe", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")

from eager_client import EagerClient  # noqa: E402  what follows needs Dask
from emulated_worker import EmulatedDevice, launched  # noqa: E402
from test_distributed import assert_same, noisy_table, on_dask, spread  # noqa: E402

from gputree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: E402
from gputree.backends.cuda.copies import Copies  # noqa: E402
from gputree.backends.workers import cuda_part as parts  # noqa: E402
from gputree.distributed import growing  # noqa: E402

# Small tables of many categories: one in every row, which is told and does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")


class Fleet:
    """What workers choose, task by task; how often each device was chosen."""

    def __init__(self, seed, share):
        self.rng, self.share = np.random.default_rng(seed), share
        self.chosen = {"cpu": 0, "cuda": 0}

    def __call__(self, device):
        assert device == "auto"
        own = "cuda" if self.rng.random() < self.share else "cpu"
        self.chosen[own] += 1
        return own


@pytest.fixture
def fleet(monkeypatch, cuda_device):
    """``fleet(seed, share)``: let tasks choose the device at random, with so many on CUDA."""

    def set_out(seed, share=0.5):
        own = Fleet(seed, share)
        monkeypatch.setattr(growing, "resolve_device", own)
        return own

    return set_out


@pytest.mark.parametrize(("criterion", "weighted", "limits"), KINDS[3:8] + KINDS[-2:])
def test_trees_of_mixed_tables(fleet, finish_rows, criterion, weighted, limits):
    """Each task runs twice, perhaps on two devices."""
    sample, kind, y = mixed_case(criterion, weighted)
    nominal = np.flatnonzero(sample.nominal)
    model = kind(criterion=criterion, max_bins=12, categorical_features=nominal, n_jobs=1, **limits)
    own = fleet(len(limits))
    assert_same(model, sample.X, y, sample.weight, client=EagerClient(again=True))
    assert min(own.chosen.values()) > 0


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
def test_columns_of_more_categories_than_bins(fleet, finish_rows, kind):
    fleet(1)
    rng = np.random.default_rng(1)
    n = 400
    code = (n * 0.9 * rng.random(n) ** 2).astype(int) + 300 * (rng.random(n) < 0.3)
    X = np.stack([code, rng.integers(0, 5, n), rng.standard_normal(n)], axis=1)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (code % 7 < 3) + (X[:, 2] > 0) * 1
    model = kind(min_samples_leaf=6, n_jobs=1, max_bins=16, categorical_features=[0, 1])
    assert_same(model, X, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers_that_only_rise_or_fall(fleet, finish_rows, dtype):
    fleet(2)
    sample = random_sample(7, 300, 4, 2, weighted=True)
    values = np.clip(sample.values, -1e38, 1e38).astype(dtype)
    model = DecisionTreeClassifier(n_jobs=1, monotonic_cst=[1, -1, 0, 1], max_bins=12)
    assert_same(model, values, sample.y, sample.weight, 3)


@examples(10)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 200),
    weighted=st.booleans(),
    regression=st.booleans(),
    exact=st.booleans(),
    rows=st.sampled_from([1, 40, None]),
    share=st.sampled_from([0.3, 0.7, 1.0]),
)
def test_random_tables(cuda_device, seed, n, weighted, regression, exact, rows, share):
    sample = random_mixed_table(seed, n, weighted)
    kind = DecisionTreeRegressor if regression else DecisionTreeClassifier
    nominal = np.flatnonzero(sample.nominal)
    model = kind(max_bins=8, n_jobs=1, categorical_features=nominal)
    model.set_params(splitter="exact" if exact else "binned", max_depth=6)
    with pytest.MonkeyPatch.context() as patch:
        if rows is not None:
            patch.setattr("gputree.growth.grower.finish_rows", lambda *_: rows)
            patch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
        patch.setattr(growing, "resolve_device", Fleet(seed, share))
        assert_same(model, sample.X, sample.y, sample.weight, seed)


def test_nothing_stays_on_the_device(cuda_device, monkeypatch):
    monkeypatch.setattr(parts, "COPIES", Copies())
    X, y = noisy_table()
    model = DecisionTreeClassifier(max_depth=2, max_bins=16, n_jobs=1, device="cuda")
    found = on_dask(model).fit(*spread((100, 150), X[:250], y[:250]))
    assert found.tree_.equals(model.set_params(device="cpu").fit(X[:250], y[:250]).tree_)
    assert parts.COPIES.nbytes == 0


# ----------------------------------------------------------------- a cluster of processes
@pytest.mark.parametrize("mark", [pytest.param(0, marks=needs_emulator)])
def test_a_cluster_of_both_kinds(mark, monkeypatch):
    X, y = noisy_table()
    model = DecisionTreeClassifier(max_depth=5, max_bins=32, n_jobs=1)
    expected = model.fit(X, y).tree_
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(EmulatedDevice([0]))
        partitions = spread((400,) * 7 + (200,), X, y)
        assert on_dask(model, client).fit(*partitions).tree_.equals(expected)
        few, many = sorted(client.run(launched).values())
        assert few == 0 < many
        with pytest.raises((RuntimeError, ImportError), match=r"A worker on .* has no device"):
            on_dask(model.set_params(device="cuda"), client).fit(*partitions)
