"""Trees over partitions of Dask are those of the table in one piece, field by field."""

import pickle

import numpy as np
import pytest
from devices import tune
from processes import run_python
from shard_kinds import random_bounds
from sklearn.base import clone

da = pytest.importorskip("dask.array", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")

import pandas as pd  # noqa: E402  a part of Dask's data frames
from eager_client import EagerClient  # noqa: E402  what follows needs Dask

from gputree import DecisionTreeClassifier, DecisionTreeRegressor, load_model, save_model  # noqa: E402
from gputree.backends import has_device  # noqa: E402
from gputree.backends.sharded import coding, tasks  # noqa: E402
from gputree.distributed import (  # noqa: E402
    DaskDecisionTreeClassifier,
    DaskDecisionTreeRegressor,
)
from gputree.errors import MixedColumnWarning  # noqa: E402

# Small tables of many categories: one in every row, which is warned of and does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")

ON_DASK = {
    DecisionTreeClassifier: DaskDecisionTreeClassifier,
    DecisionTreeRegressor: DaskDecisionTreeRegressor,
}


def spread(rows, *arrays):
    """Arrays in partitions of so many rows; None stays."""
    chunks = [None if a is None else (rows, *((n,) for n in a.shape[1:])) for a in arrays]
    return [None if a is None else da.from_array(a, c) for a, c in zip(arrays, chunks, strict=True)]


def on_dask(model, client=None):
    """The estimator over partitions with the same parameters."""
    return ON_DASK[type(model)](client=client or EagerClient(), **model.get_params(deep=False))


def assert_same(model, X, y, weight=None, seed=0, client=None):
    expected = model.fit(X, y, weight).tree_
    bounds = random_bounds(np.random.default_rng(seed), len(X))
    partitions = spread(tuple(np.diff(bounds).tolist()), X, y, weight)
    found = on_dask(model, client).fit(*partitions)
    found.tree_.check()
    assert found.tree_.equals(expected)
    return found


@pytest.fixture(autouse=True)
def cut_into_blocks(monkeypatch):
    """Blocks of one column where a level has many nodes, fewer where it has one."""
    tune(monkeypatch, "sharded", task_bytes=8, pieces_per_thread=100)


@pytest.mark.full
@pytest.mark.parametrize("splitter", ["exact", "binned"])
def test_edges_of_large_tables(monkeypatch, splitter):
    """Binned cuts have the edges of the table in one piece: of picked values, or counted ones."""
    monkeypatch.setattr("gputree.backends.binning.SAMPLE_ROWS", 1 << 10)
    monkeypatch.setattr("gputree.backends.binning.FEWEST_DISTINCT", 1 << 9)
    rng = np.random.default_rng(0)
    n = 5000
    X = np.stack(
        [rng.standard_normal(n), rng.integers(0, 400, n), rng.integers(0, 3, n), np.ones(n)], axis=1
    )
    X[rng.random(X.shape) < 0.02] = np.nan
    y = X[:, 0] + X[:, 1] / 200 > 1
    model = DecisionTreeClassifier(splitter=splitter, max_depth=5, max_bins=64, n_jobs=1)
    assert_same(model, X, y)
    monkeypatch.setattr(coding, "MOST_DISTINCT", 10)  # other edges, in binned cuts
    found = on_dask(model).fit(*spread((2000, 3000), X, y))
    assert abs(found.score(X, y) - model.score(X, y)) < 0.02
    assert found.tree_.equals(model.tree_) or splitter == "binned"


def test_declared_decimals_are_meant_as_categories(recwarn):
    words = [f"{k / 7:.3f}" for k in range(20)] * 2
    for kind, n_warnings in (("category", 0), (object, 1)):
        X = dd.from_pandas(pd.DataFrame({"a": pd.Series(words, dtype=kind)}), npartitions=2)
        y = dd.from_pandas(pd.Series(np.arange(40) % 2), npartitions=2)
        on_dask(DecisionTreeClassifier(max_depth=1)).fit(X, y)
        assert len([one for one in recwarn if one.category is MixedColumnWarning]) == n_warnings


def test_so_many_picked_values_are_enough(monkeypatch):
    """In partitions as in one piece, to the last value."""
    monkeypatch.setattr("gputree.backends.binning.SAMPLE_ROWS", 500)
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 900, (1500, 1)).astype(float), rng.integers(0, 2, 1500)
    picked = np.unique(coding.coding.picked_values(X, 0, len(X))).size
    model = DecisionTreeClassifier(splitter="binned", max_depth=3, max_bins=16, n_jobs=1)
    trees = []
    for fewest in (picked - 1, picked, picked + 1):
        monkeypatch.setattr("gputree.backends.binning.FEWEST_DISTINCT", fewest)
        trees.append(assert_same(model, X, y).tree_)
    assert trees[1].equals(trees[2])
    assert not trees[0].equals(trees[1])


# --------------------------------------------------------------------- data frames
def mixed_frame(n=400):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"]),
            "old": rng.random(n) < 0.3,
        }
    )
    frame.loc[rng.random(n) < 0.1, ["size", "colour"]] = None
    label = np.where(
        (frame["size"].fillna(0) > 0) ^ (frame["colour"] == "red"), "yes", "no"
    ).astype(object)
    label[rng.random(n) < 0.05] = "perhaps"
    return frame, pd.Series(label, name="label")


@pytest.mark.parametrize("class_weight", [None, "balanced", {"yes": 2.0, "no": 1.0, "perhaps": 0}])
def test_data_frames(class_weight):
    frame, label = mixed_frame()
    weight = pd.Series(np.random.default_rng(1).integers(0, 3, len(frame)) / 2)
    X, y, w = (dd.from_pandas(plain, npartitions=3) for plain in (frame, label, weight))
    model = DecisionTreeClassifier(class_weight=class_weight, min_samples_leaf=3, n_jobs=1)
    expected = model.fit(X.compute(), label, weight)
    found = on_dask(model).fit(X, y, w)
    assert found.tree_.equals(expected.tree_)
    for name in ("classes_", "feature_names_in_"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    assert (found.n_features_in_, found.n_classes_, found.n_outputs_) == (5, 3, 1)
    assert found.columns_.same_as(expected.columns_)
    assert found.predict(X).compute().tolist() == expected.predict(frame).tolist()
    assert found.score(X, y, w) == pytest.approx(expected.score(frame, label, weight))
    assert found.report(X, y).as_dict() == expected.report(frame, label).as_dict()


def test_partitions_without_rows_or_values():
    frame, label = mixed_frame()
    frame.loc[:99, "colour"] = None
    X, y = dd.from_pandas(frame, npartitions=4), dd.from_pandas(label, npartitions=4)
    far = X["count"] >= 0
    kept = X[far & (X.index >= 150)], y[far & (y.index >= 150)]
    model = DecisionTreeClassifier(max_depth=5, n_jobs=1)
    expected = model.fit(X.compute()[150:], label[150:])
    found = on_dask(model).fit(*kept)
    assert found.tree_.equals(expected.tree_)
    answers = found.predict_proba(kept[0]).compute(scheduler="synchronous")
    assert np.array_equal(answers, expected.predict_proba(frame[150:]))


# ------------------------------------------------------------------ what is promised
def test_answers_are_lazy_and_those_of_the_plain_tree():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + X[:, 1] ** 2
    dX, dy = spread((90, 0, 110), X, y)
    weight = rng.random(200)
    (dw,) = spread((90, 0, 110), weight)
    tree = DaskDecisionTreeRegressor(max_depth=4, client=EagerClient()).fit(dX.rechunk((90, 2)), dy)
    plain = tree.to_local()
    assert type(plain) is DecisionTreeRegressor
    lazy = tree.predict(dX)
    assert isinstance(lazy, da.Array)
    assert lazy.shape == (200,)
    assert np.array_equal(lazy.compute(scheduler="synchronous"), plain.predict(X))
    assert np.array_equal(tree.apply(dX).compute(scheduler="synchronous"), plain.apply(X))
    assert tree.score(dX, dy, dw) == pytest.approx(plain.score(X, y, weight))
    assert np.array_equal(tree.predict(X), plain.predict(X))  # as anywhere


def test_clones_share_the_client_and_pickles_forget_it(tmp_path):
    client = EagerClient()
    rng = np.random.default_rng(0)
    dX, dy = spread((30, 30), rng.normal(size=(60, 2)), rng.integers(0, 2, 60))
    tree = DaskDecisionTreeClassifier(client=client, ccp_alpha=0.05, criterion="entropy")
    assert clone(tree).client is client
    assert clone(tree).get_params() == tree.get_params()
    again = pickle.loads(pickle.dumps(tree.fit(dX, dy)))
    assert again.client is None
    assert again.tree_.equals(tree.tree_)
    assert tree.tree_.n_nodes < tree.unpruned_tree_.n_nodes
    with pytest.raises(TypeError, match=r"got DaskDecisionTreeClassifier\. Pass its to_local"):
        save_model(tree, tmp_path / "tree.gputree")
    save_model(tree.to_local(), tmp_path / "tree.gputree")
    assert load_model(tmp_path / "tree.gputree").tree_.equals(tree.tree_)


def greatest_messages(n, **limits):
    """Bytes of what passes the client, at most at once, in a fit on n rows of noise."""
    client = EagerClient()
    X = da.random.default_rng(0).normal(size=(n, 4), chunks=(n // 4, 4)).astype(np.float32)
    y = (da.random.default_rng(1).random(n, chunks=n // 4) < 0.5).astype(np.int64)
    DaskDecisionTreeClassifier(client=client, n_jobs=1, max_bins=16, **limits).fit(X, y)
    return max(client.sent), max(client.fetched)


@pytest.mark.full
@pytest.mark.parametrize("limits", [{"max_depth": 4}, {"max_depth": 8, "splitter": "binned"}])
def test_no_array_of_the_tables_size_passes_the_client(monkeypatch, limits):
    """The codes of labels alone have 64,000 to 256,000 bytes; bins have 25,000, whatever n is."""
    tune(monkeypatch, "sharded", round_bytes=1 << 13)
    for n in (64_000, 256_000):
        sent, fetched = greatest_messages(n, **limits)
        assert sent < 32_000
        assert fetched < 32_000


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda X, y: (X.compute(), y), TypeError, "got X of type ndarray: use DecisionTree"),
        (lambda X, y: (X, y.compute()), TypeError, "got y of type ndarray"),
        (lambda X, y: (X, None), ValueError, "requires y to be passed, but the target y is None"),
        (lambda X, y: (X[:, 0], y), ValueError, "Expected 2D array, got 1D"),
        (lambda X, y: (X, y[:50]), ValueError, r"inconsistent numbers of samples: \[60, 50\]"),
        (lambda X, y: (X[:0], y[:0]), ValueError, "minimum of 1 is required by DaskDecision"),
        (lambda X, y: (da.where(X > 0, np.inf, X), y), ValueError, "Input X contains infinity"),
        (lambda X, y: (X, y + 0.5), ValueError, "Unknown label type"),
        (lambda X, y: (X, y, da.zeros(60, chunks=30)), ValueError, "at least one non-zero"),
        (lambda X, y: (X, y, y - 9.0), ValueError, "Negative values in data passed to"),
        (lambda X, y: (X[X[:, 0] > 0], y), ValueError, "inconsistent numbers of samples"),
    ],
)
def test_bad_input(change, error, match):
    rng = np.random.default_rng(0)
    X, y = spread((30, 30), rng.normal(size=(60, 2)), rng.integers(0, 2, 60))
    tree = DaskDecisionTreeClassifier(client=EagerClient())
    with pytest.raises(error, match=match):
        tree.fit(*change(X, y))
    assert not hasattr(tree, "tree_")
    assert not hasattr(tree, "classes_")


def test_bad_parameters():
    rng = np.random.default_rng(0)
    X, y = spread((30, 30), rng.normal(size=(60, 2)), rng.integers(0, 2, 60))
    client = EagerClient()
    for parameters, match in [
        ({"device": "gpu"}, "'device' parameter of DaskDecisionTreeClassifier must be"),
        ({"pruning": "reduced_error"}, "prunes by rows, which lie in partitions"),
        ({"pruning": "cost_complexity_cv"}, "prunes by rows, which lie in partitions"),
    ]:
        with pytest.raises(ValueError, match=match):
            DaskDecisionTreeClassifier(client=client, **parameters).fit(X, y)
    with pytest.raises(TypeError, match="DaskDecisionTreeClassifier has no parameter 'depth'"):
        DaskDecisionTreeClassifier(depth=3)
    with pytest.raises(ValueError, match=r"there is none: make one, distributed.Client"):
        DaskDecisionTreeClassifier().fit(X, y)


@pytest.mark.process
@pytest.mark.skipif(has_device(), reason="a CUDA device answers here")
def test_a_worker_without_a_device(cluster):
    X, y = spread((30, 30), np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2)
    for client in (EagerClient(), cluster[1]):
        tree = DaskDecisionTreeClassifier(client=client, device="cuda")
        with pytest.raises(
            (RuntimeError, ImportError), match=r"A worker on .*: device=.cuda. needs"
        ):
            tree.fit(X, y)
        assert not hasattr(tree, "tree_")


@pytest.mark.process
@pytest.mark.parametrize("absent", ["dask", "distributed"])
def test_without_dask(absent):
    code = f"""
import sys
sys.modules[{absent!r}] = None
import gputree
gputree.DecisionTreeClassifier
try:
    import gputree.distributed
except ImportError as error:
    print(error)
"""
    told = run_python("-c", code)
    assert f'needs {absent}, which is not installed. Install it with: pip install "' in told
    assert 'gputree-learn[dask]"' in told


# ----------------------------------------------------------------- a cluster of processes
@pytest.fixture(scope="module")
def cluster():
    """Two processes, one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


def disturb(monkeypatch, at, act):
    """Call `act` before the sum number `at`."""
    tree, count = tasks.Tasks.tree, iter(range(10**6))

    def disturbed(self, combine, futures):
        if next(count) == at:
            act()
        return tree(self, combine, futures)

    monkeypatch.setattr(tasks.Tasks, "tree", disturbed)


def noisy_table():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3000, 4)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + rng.normal(size=3000) > 0.1).astype(np.int64)


@pytest.mark.process
@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_worker_that_dies(cluster, monkeypatch, at):
    (_, client), (X, y) = cluster, noisy_table()
    model = DecisionTreeClassifier(max_depth=5, max_bins=32, n_jobs=1)
    expected = model.fit(X, y).tree_
    client.wait_for_workers(2)

    def die():
        pids = list(client.run(lambda: __import__("os").getpid()).values())
        __import__("os").kill(pids[at % 2], 9)

    disturb(monkeypatch, at, die)
    found = on_dask(model, client).fit(*spread((900, 1100, 1000), X, y))
    assert found.tree_.equals(expected)


@pytest.mark.process
def test_a_worker_that_joins(cluster, monkeypatch):
    (local, client), (X, y) = cluster, noisy_table()
    model = DecisionTreeClassifier(max_depth=4, max_bins=32, n_jobs=1)
    expected = model.fit(X, y).tree_
    client.wait_for_workers(2)
    disturb(monkeypatch, 3, lambda: local.scale(3))
    found = on_dask(model, client).fit(*spread((900, 1100, 1000), X, y))
    assert found.tree_.equals(expected)
    client.wait_for_workers(3)
    answers = client.compute(found.predict(da.from_array(X, 500))).result()
    assert np.array_equal(answers, found.predict(X))
