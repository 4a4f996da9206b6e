"""Trees and forests of several targets over partitions of Dask are those of the table."""

import numpy as np
import pytest

da = pytest.importorskip("dask.array", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")

import pandas as pd  # noqa: E402
from eager_client import EagerClient  # noqa: E402

import gputree  # noqa: E402  what follows needs Dask
from gputree import distributed as on_dask  # noqa: E402
from gputree.errors import InputError  # noqa: E402

KINDS = {"DecisionTree": {"max_depth": 4}, "RandomForest": {"n_estimators": 3, "random_state": 1}}


def table(n=120):
    """Columns of numbers and of text with missing values; targets of numbers and of labels."""
    r = np.random.default_rng(3)
    X = pd.DataFrame(
        {"a": r.normal(size=n), "b": r.integers(0, 5, n), "c": r.choice(list("xyz"), n)}
    )
    X.loc[::7, ["a", "c"]] = None
    numbers = pd.DataFrame({"u": X["b"] + r.normal(size=n), "v": X["a"].fillna(3) - X["b"]})
    labels = pd.DataFrame({"u": np.where(X["b"] > 2, "high", "low"), "v": r.integers(0, 3, n)})
    return X, numbers, labels, pd.Series(r.integers(0, 3, n) / 2)


def both(kind, ending):
    """Estimators of a table in memory and of partitions, with the same parameters."""
    name = f"{kind}{ending}"
    parameters = KINDS[kind]
    if ending == "Classifier":
        parameters = {**parameters, "class_weight": "balanced"}
    plain = getattr(gputree, name)(**parameters)
    return plain, getattr(on_dask, f"Dask{name}")(client=EagerClient(), **parameters)


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("ending", ["Classifier", "Regressor"])
def test_partitions_grow_the_trees_of_the_table(kind, ending):
    X, numbers, labels, weight = table()
    Y = labels if ending == "Classifier" else numbers
    plain, found = both(kind, ending)
    plain.fit(X, Y, weight)
    given = [dd.from_pandas(frame, npartitions=3) for frame in (X, Y, weight)]
    found.fit(*given)
    trees = [[t.tree_ for t in getattr(m, "estimators_", [m])] for m in (plain, found)]
    assert all(a.equals(b) for a, b in zip(*trees, strict=True))
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]
    assert found.target_names_in_.tolist() == list(Y)
    assert found.score(*given) == pytest.approx(plain.score(X, Y, weight))
    lazy = found.predict(given[0])
    assert lazy.dtype == plain.predict(X).dtype
    assert lazy.shape[1] == 2
    assert lazy.compute(scheduler="synchronous").tolist() == plain.predict(X).tolist()
    if ending == "Classifier":
        parts = [p.compute(scheduler="synchronous") for p in found.predict_proba(given[0])]
        np.testing.assert_array_equal(np.hstack(parts), np.hstack(plain.predict_proba(X)))
    assert found.to_local().predict(X).tolist() == plain.predict(X).tolist()


def test_a_constant_target_scores_as_in_memory():
    X, numbers, *_ = table()
    X, Y = X[["b"]].to_numpy(), numbers.assign(w=2.0).to_numpy()
    plain, found = both("DecisionTree", "Regressor")
    given = da.from_array(X, (50, 1)), da.from_array(Y, (50, 3))
    assert found.fit(*given).score(*given) == pytest.approx(plain.fit(X, Y).score(X, Y))


def test_standard_errors_are_of_one_target():
    X, numbers, *_ = table()
    given = [dd.from_pandas(frame, npartitions=2) for frame in (X, numbers)]
    _, forest = both("RandomForest", "Regressor")
    with pytest.raises(InputError, match="predict_standard_error of collections takes one target"):
        forest.fit(*given).predict_standard_error(given[0])
