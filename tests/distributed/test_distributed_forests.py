"""Forests over partitions of Dask are those of the table in one piece, bit for bit."""

import pickle

import numpy as np
import pytest
from devices import tune
from frames import mixed
from shard_kinds import random_bounds
from sklearn.base import clone

da = pytest.importorskip("dask.array", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")

import pandas as pd  # noqa: E402  a part of Dask's data frames
from eager_client import EagerClient  # noqa: E402  what follows needs Dask

from gputree import RandomForestClassifier, RandomForestRegressor, load_model, save_model  # noqa: E402
from gputree.backends.sharded import coding  # noqa: E402
from gputree.distributed import (  # noqa: E402
    DaskDecisionTreeClassifier,
    DaskRandomForestClassifier,
    DaskRandomForestRegressor,
)

ON_DASK = {
    RandomForestClassifier: DaskRandomForestClassifier,
    RandomForestRegressor: DaskRandomForestRegressor,
}
WEIGHT = np.random.default_rng(1).integers(0, 4, 60) / 2


@pytest.fixture(autouse=True)
def cut_into_blocks(monkeypatch):
    """Blocks of one column where a level has many nodes, fewer where it has one."""
    tune(monkeypatch, "sharded", task_bytes=8, pieces_per_thread=100)


def on_dask(model, **others):
    """The estimator over partitions with the same parameters."""
    return ON_DASK[type(model)](client=EagerClient(), **model.get_params(deep=False), **others)


def numbers():
    X, labels, y = mixed()
    return X[["a", "b", "d"]].to_numpy(), labels, y


def partitions(seed, *columns):
    """Collections of the same random partitions, of which some may have no rows."""
    bounds = random_bounds(np.random.default_rng(seed), len(columns[0]))
    chunks = tuple(np.diff(bounds).tolist())
    return [
        None if array is None else da.from_array(array, (chunks, *((n,) for n in array.shape[1:])))
        for array in columns
    ]


def assert_same_forest(found, expected):
    assert len(found._trees) == len(expected._trees)
    for packed, tree in zip(found._trees, expected._trees, strict=True):
        assert packed.expand().equals(tree.expand())


CASES = [
    (RandomForestClassifier, {}, None),
    (RandomForestClassifier, {"bootstrap": False, "splitter": "binned", "max_bins": 8}, None),
    (RandomForestClassifier, {"class_weight": "balanced_subsample", "max_depth": 4}, None),
    (RandomForestClassifier, {"class_weight": "balanced", "criterion": "entropy"}, WEIGHT),
    (RandomForestClassifier, {"max_samples": 0.4, "ccp_alpha": 0.01}, np.ones(60)),
    (RandomForestRegressor, {"max_samples": 50, "max_features": 2}, None),
    (RandomForestRegressor, {"bootstrap": False, "max_leaf_nodes": 9, "max_features": 1}, WEIGHT),
    (RandomForestRegressor, {"min_samples_leaf": 0.05, "splitter": "binned"}, WEIGHT),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "options", "weight"), CASES)
def test_any_partitions_grow_the_forest_of_the_table(kind, options, weight):
    X, labels, y = numbers()
    target = labels if kind is RandomForestClassifier else y
    model = kind(n_estimators=3, random_state=4, **options).fit(X, target, weight)
    for seed in (0, 1):
        given = partitions(seed, X, target, weight)
        found = on_dask(model).fit(*given)
        assert_same_forest(found, model)
        lazy = found.predict(given[0])
        assert np.array_equal(lazy.compute(scheduler="synchronous"), model.predict(X))
        assert found.score(*given) == pytest.approx(model.score(X, target, weight))
    leaves = found.apply(given[0])
    assert leaves.shape == (60, 3)
    assert np.array_equal(leaves.compute(scheduler="synchronous"), model.apply(X))


@pytest.mark.parametrize("kind", list(ON_DASK))
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_data_frames_with_categories_and_missing_values(kind, weight):
    X, labels, y = mixed()
    X.loc[::6, "c"] = None
    target = pd.Series(labels if kind is RandomForestClassifier else y)
    model = kind(n_estimators=3, random_state=0, max_features=2).fit(X, target, weight)
    for n in (2, 5):
        weights = None if weight is None else dd.from_pandas(pd.Series(weight), npartitions=n)
        given = dd.from_pandas(X, npartitions=n), dd.from_pandas(target, npartitions=n), weights
        found = on_dask(model).fit(*given)
        assert_same_forest(found, model)
        assert found.columns_.same_as(model.columns_)
        assert found.predict(given[0]).compute().tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(found.feature_importances_, model.feature_importances_)


def test_rows_are_coded_once(monkeypatch):
    X, labels, _ = numbers()
    coded = []

    def encode(table, *arguments):
        coded.append(len(table.values))
        return encode_columns(table, *arguments)

    encode_columns = coding.encode_columns
    monkeypatch.setattr(coding, "encode_columns", encode)
    on_dask(RandomForestClassifier(n_estimators=3)).fit(*partitions(0, X, labels))
    assert sum(coded) == len(X)


def test_trees_are_added_and_told_which_rows_they_have(tmp_path):
    X, labels, _ = numbers()
    model = RandomForestClassifier(n_estimators=3, random_state=4).fit(X, labels)
    given = partitions(2, X, labels)
    found = on_dask(clone(model).set_params(n_estimators=1, warm_start=True)).fit(*given)
    found.set_params(n_estimators=3).fit(*given)
    assert_same_forest(found, model)
    with pytest.raises(ValueError, match="is expecting 3 features"):
        found.set_params(n_estimators=4).fit(given[0][:, :2], given[1])
    for samples, rows in zip(found.estimators_samples_, model.estimators_samples_, strict=True):
        assert np.array_equal(samples, rows)
    again = pickle.loads(pickle.dumps(found))
    assert again.client is None
    assert_same_forest(again, model)
    save_model(found.to_local(), tmp_path / "forest.gputree")
    assert_same_forest(load_model(tmp_path / "forest.gputree"), model)
    weighted = on_dask(clone(model)).fit(*given, da.from_array(WEIGHT, given[1].chunks))
    with pytest.raises(ValueError, match="forests that were grown over partitions"):
        weighted.estimators_samples_  # noqa: B018


@pytest.mark.filterwarnings("ignore:.* have no standard error")
def test_standard_errors_are_those_of_a_forest_in_memory():
    X, labels, y = numbers()
    for model, target in [(RandomForestRegressor(), y), (RandomForestClassifier(), labels)]:
        model.set_params(n_estimators=4, random_state=0).fit(X, target)
        given = partitions(2, X, target)
        found = on_dask(clone(model)).fit(*given).predict_standard_error(given[0])
        np.testing.assert_array_equal(found.compute(), model.predict_standard_error(X))


def test_what_is_refused():
    X, labels, y = numbers()
    X, labels, y, weight = partitions(0, X, labels, y, WEIGHT)
    for model, message in [
        (RandomForestClassifier(oob_score=True), "takes no 'oob_score': it looks at all rows"),
        (RandomForestClassifier(max_samples="balanced"), "takes no 'max_samples'"),
        (RandomForestRegressor(quantreg=True), "takes no 'quantreg': it looks at all rows"),
        (RandomForestRegressor(bootstrap=False, max_samples=3), "`max_sample` cannot be set"),
    ]:
        target = y if isinstance(model, RandomForestRegressor) else labels
        with pytest.raises(ValueError, match=message):
            on_dask(model).fit(X, target)
    model = on_dask(RandomForestRegressor(n_estimators=1)).fit(X, y)
    with pytest.raises(ValueError, match="takes no 'quantreg': it looks at all rows"):
        model.predict_quantiles(X)
    model = RandomForestClassifier(class_weight="balanced_subsample", bootstrap=False)
    with pytest.raises(ValueError, match="needs bootstrap=True, or no sample_weight"):
        on_dask(model).fit(X, labels, weight)
    with pytest.raises(ValueError, match="nor a table in batches or in partitions"):
        DaskDecisionTreeClassifier(splitter="random", client=EagerClient()).fit(X, labels)


@pytest.mark.process
def test_trees_are_grown_at_once_on_a_cluster():
    X, labels, _ = numbers()
    model = RandomForestClassifier(n_estimators=4, random_state=0).fit(X, labels, WEIGHT)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        found = DaskRandomForestClassifier(n_estimators=4, random_state=0, n_jobs=2, client=client)
        assert_same_forest(found.fit(*partitions(3, X, labels, WEIGHT)), model)
