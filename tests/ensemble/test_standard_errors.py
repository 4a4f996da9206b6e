"""Standard errors by the infinitesimal jackknife: ranger's figures, the definition."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from gputree import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    load_model,
    save_model,
)
from gputree.datasets import load_auto_mpg
from gputree.ensemble import out_of_bag
from gputree.ensemble.out_of_bag import common_draws, jackknife_variances

# ranger 0.14.1: mpg of R's mtcars by cyl, disp, hp, wt and qsec, 60 trees, seed 3; draws and
# predictions of its trees, and predict(type="se", se.method="infjack"); null is NaN there.
RANGER = json.loads(Path(__file__).with_name("ranger_standard_errors.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def cars():
    """A table of 30 rows: its trees are grown in the interpreter."""
    X, y = load_auto_mpg(return_X_y=True)
    return X[:30], y[:30]


def by_covariances(forest, X):
    """Standard errors by (5) and (7) of the paper, one training row after the other."""
    n = forest._draws.n
    counts = np.array([np.bincount(rows, minlength=n) for rows in forest.estimators_samples_])
    predictions = np.array([tree.predict(X) for tree in forest.estimators_])
    trees = len(counts)
    raw, spread = 0.0, 0.0
    for i in range(n):
        drawn = counts[:, i] - counts[:, i].mean()
        raw = raw + (drawn @ predictions / trees) ** 2
        spread += drawn @ drawn / trees
    with np.errstate(invalid="ignore"):
        return np.sqrt(raw - spread / trees * predictions.var(axis=0))


def test_the_figures_of_ranger():
    counts = [np.array([*map(int, digits)]) for digits in RANGER["counts"]]
    predictions = np.array(RANGER["predictions"]).T[:, :, None]
    found = jackknife_variances(predictions, common_draws(counts))[:, 0]
    expected = np.array(RANGER["standard_errors"], float)
    assert (found[np.isnan(expected)] < 0).all()
    np.testing.assert_allclose(np.sqrt(found[found > 0]), expected[found > 0], rtol=1e-12)


@pytest.mark.parametrize("max_samples", [None, 20])
def test_covariances_of_draws_and_predictions(cars, max_samples, monkeypatch):
    """Blocks of training rows and of rows are of no consequence."""
    X, y = cars
    rows = X[::3]
    few = {"n_estimators": 25, "max_depth": 2, "random_state": 0}
    model = RandomForestRegressor(max_samples=max_samples, **few).fit(X, y)
    expected = by_covariances(model, rows)
    lacking = np.isnan(expected).sum()
    assert 0 < lacking < len(rows)
    message = rf"{lacking} of 10 predictions have no standard error \(nan\): 25 trees are too few"
    with pytest.warns(UserWarning, match=message):
        found = model.predict_standard_error(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    monkeypatch.setattr(out_of_bag, "COUNT_BYTES", 8 * 25 * 3)
    with pytest.warns(UserWarning, match="Increase n_estimators"):
        np.testing.assert_allclose(model[:].predict_standard_error(rows), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.* have no standard error")
def test_the_errors_of_probabilities(cars, tmp_path):
    """Two classes have the same errors, as their probabilities add up to 1."""
    X, y = cars
    model = RandomForestClassifier(n_estimators=10, max_depth=2, random_state=0).fit(X, y > 16)
    found = model.predict_standard_error(X)
    assert found.shape == (30, 2)
    assert (found > 0).any()
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=1e-6, atol=1e-9)
    save_model(model, tmp_path / "forest.gputree")
    for other in (load_model(tmp_path / "forest.gputree"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_standard_error(X), found)


@pytest.mark.filterwarnings("ignore:.* have no standard error")
def test_trees_that_are_added_are_counted(cars):
    X, y = cars
    model = RandomForestRegressor(n_estimators=10, max_depth=1, random_state=0).fit(X, y)
    before = model.predict_standard_error(X)
    np.testing.assert_allclose(before, by_covariances(model, X), rtol=1e-9)
    model.set_params(n_estimators=12, warm_start=True).fit(X, y)
    after = model.predict_standard_error(X)
    np.testing.assert_allclose(after, by_covariances(model, X), rtol=1e-9)
    assert not np.allclose(before, after)


@pytest.mark.filterwarnings("ignore:.* have no standard error")
def test_forests_of_earlier_pickles_have_them(cars):
    """Their trees have no place for what is kept between calls."""
    X, y = cars
    model = RandomForestRegressor(n_estimators=4, max_depth=1, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert "common_draws" not in vars(again._trees)
    np.testing.assert_array_equal(again.predict_standard_error(X), model.predict_standard_error(X))


def test_what_is_refused(cars):
    X, y = cars
    few = {"n_estimators": 2, "max_depth": 2, "random_state": 0}
    one = RandomForestRegressor(n_estimators=1).fit(X, y)
    whole = ExtraTreesRegressor(**few).fit(X, y)
    weighted = RandomForestRegressor(**few).fit(X, y, np.arange(len(y)))
    joined = RandomForestRegressor(**few).fit(X, y) + RandomForestRegressor(
        n_estimators=2, max_depth=2, random_state=1
    ).fit(X[:20], y[:20])
    for model, message in [
        (one, "need two trees at least; this RandomForestRegressor has one"),
        (whole, "fit the ExtraTreesRegressor with bootstrap=True"),
        (weighted, "has drawn them in proportion to weights"),
        (joined, r"predict_standard_error needs the rows that every tree was grown on"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict_standard_error(X)
