"""Quantile regression forests: the weights of the paper, in fractions."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from copy import deepcopy
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from damage import pack, unpack
from frames import mixed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from gputree import (
    CodedTable,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    load_model,
    save_model,
)
from gputree.compilation import tiers
from gputree.persistence.container import npy_bytes
from gputree.prediction import answers, quantiles

KINDS = (RandomForestRegressor, ExtraTreesRegressor)
LEVELS = ["0", "0.1", "0.5", "0.8", "0.9", "1"]


def weights_of(leaf, leaves, weight):
    """Meinshausen 2006, (4) and (5): of training rows, for a row in these leaves of the trees."""
    mean = [Fraction(0)] * len(weight)
    for t in range(len(leaf)):
        shared = [w if leaves[i, t] == leaf[t] else 0 for i, w in enumerate(weight)]
        for i, w in enumerate(shared):
            mean[i] += Fraction(w, sum(shared) * len(leaf))
    return mean


def least_reaching(y, weight, level):
    """Smallest target up to which the weights add up to the level."""
    return min(v for v in y if sum(w for w, u in zip(weight, y, strict=True) if u <= v) >= level)


@pytest.fixture(params=[None, 2], ids=["cells", "few_cells"])
def cells(request, monkeypatch):
    """With few, targets are found in several steps, as otherwise beyond 512 of them."""
    with nullcontext() if request.param is None else tiers.forced("never"):
        monkeypatch.setattr(quantiles, "BITS", request.param or quantiles.BITS)
        yield


@cache
def fitted_once(kind):
    X, _, y = mixed()
    y = np.round(y, 1)  # some are equal
    weight = np.arange(len(X)) % 4
    forest = kind(n_estimators=5, min_samples_leaf=3, bootstrap=True, quantreg=True, random_state=1)
    return forest.fit(X, y, weight), X, y, weight


@pytest.fixture(params=KINDS)
def fitted(request, cells):
    return deepcopy(fitted_once(request.param))  # some tests change it


def test_quantiles_are_those_of_the_paper(fitted):
    forest, X, y, weight = fitted
    new, leaves = mixed(12, seed=1)[0], forest.apply(X)
    found = forest.predict_quantiles(new, [float(level) for level in LEVELS])
    for row, leaf in zip(found, forest.apply(new), strict=True):
        shares = weights_of(leaf, leaves, weight.tolist())
        assert sum(shares) == 1
        known = [(w, v) for w, v in zip(shares, y, strict=True) if w]
        for level, value in zip(LEVELS, row, strict=True):
            of_known, targets = zip(*known, strict=True)
            assert value == least_reaching(targets, of_known, Fraction(level))


def test_training_rows_out_of_the_bag(fitted):
    """Predict by the trees that have not drawn them, and without their target."""
    forest, X, y, weight = fitted
    leaves, found = forest.apply(X), forest.predict_quantiles(quantiles=[0.2, 0.8])
    samples = forest.estimators_samples_
    for i in range(len(X)):
        trees = [t for t, rows in enumerate(samples) if i not in rows]
        if not trees or not weight[i]:
            assert np.isnan(found[i]).all()
            continue
        others = np.where(np.arange(len(X)) == i, 0, weight).tolist()
        shares = weights_of(leaves[i, trees], leaves[:, trees], others)
        known = [(w, v) for w, v in zip(shares, y, strict=True) if w]
        of_known, targets = zip(*known, strict=True)
        assert found[i].tolist() == [
            least_reaching(targets, of_known, Fraction(level)) for level in ("0.2", "0.8")
        ]


def test_equal_weights_reach_a_level_to_the_row():
    """Eight of ten rows are 0.8 of them, though eight times 0.1 is less in floating point."""
    forest = RandomForestRegressor(
        n_estimators=3, bootstrap=False, min_samples_leaf=10, quantreg=True
    ).fit(np.zeros((10, 1)), np.arange(10.0))
    levels = np.arange(11) / 10
    assert forest.predict_quantiles([[0.0]], levels).tolist() == [[0.0, *range(10)]]


def test_orders_and_shapes_of_levels(fitted):
    forest, X, *_ = fitted
    found = forest.predict_quantiles(X)
    assert (forest.predict_quantiles(X, (0.9, 0.1, 0.5)) == found[:, [2, 0, 1]]).all()
    assert (forest.predict_quantiles(X, 0.5) == found[:, 1]).all()
    assert forest.predict_quantiles(X, []).shape == (len(X), 0)
    assert (forest.predict_quantiles(CodedTable(X)) == found).all()


def test_threads_and_blocks_find_the_same(monkeypatch, fitted):
    forest, X, *_ = fitted
    found, inside = forest.predict_quantiles(X), forest.predict_quantiles()
    monkeypatch.setattr(answers, "FEWEST_ROWS", 1)
    monkeypatch.setattr(answers, "BLOCK_ROWS", 7)
    for threads in (1, 2):
        forest.set_params(n_jobs=threads)
        assert (forest.predict_quantiles(X) == found).all()
        np.testing.assert_array_equal(forest.predict_quantiles(), inside)
        again = clone(forest).fit(X, *fitted[2:])
        assert (again.predict_quantiles(X) == found).all()


def test_trees_that_move_nodes(monkeypatch, fitted):
    """Large trees are laid out depth-first for prediction."""
    forest, X, y, weight = fitted
    numbers = X[["a", "b", "d"]]
    found = clone(forest).fit(numbers, y, weight).predict_quantiles(numbers)
    monkeypatch.setattr("gputree.prediction.descent.FEW_NODES", 1)
    moved = clone(forest).fit(numbers, y, weight)
    assert any((np.diff(tree.place) != 1).any() for tree in moved._trees.packed(np.float64, 1))
    assert (moved.predict_quantiles(numbers) == found).all()
    np.testing.assert_array_equal(
        moved.predict_quantiles(), clone(forest).fit(numbers, y, weight).predict_quantiles()
    )


def test_trees_that_are_added_and_rows_that_change(fitted):
    forest, X, y, weight = fitted
    stepwise = clone(forest).set_params(warm_start=True, n_estimators=2).fit(X, y, weight)
    stepwise.set_params(n_estimators=5).fit(X, y, weight)
    assert (stepwise.predict_quantiles(X) == forest.predict_quantiles(X)).all()
    # leaves of the first trees without a row of the second table count for nothing
    stepwise.set_params(n_estimators=6).fit(X[:20], y[:20], weight[:20])
    assert np.isin(stepwise.predict_quantiles(X), y[:20]).all()


def test_files_and_pickles_keep_the_targets(fitted, tmp_path):
    forest, X, *_ = fitted
    save_model(forest, tmp_path / "forest.gputree")
    for again in (pickle.loads(pickle.dumps(forest)), load_model(tmp_path / "forest.gputree")):
        assert (again.predict_quantiles(X) == forest.predict_quantiles(X)).all()
    with pytest.raises(ValueError, match="drawn in proportion to weights"):
        again.predict_quantiles()


def test_pickles_of_older_builds_are_read(fitted):
    forest, X, *_ = fitted
    (of_target,) = forest._leaf_targets
    older = clone(forest)
    older.__dict__ = vars(forest) | {"_leaf_targets": of_target}
    again = pickle.loads(pickle.dumps(older))
    assert (again.predict_quantiles(X) == forest.predict_quantiles(X)).all()


def test_forests_without_quantreg_keep_nothing(fitted):
    forest, X, y, _ = fitted
    assert clone(forest).get_params()["quantreg"]
    plain = forest.set_params(quantreg=False).fit(X, y)
    assert not hasattr(plain, "_leaf_targets")
    with pytest.raises(ValueError, match="fit it with quantreg=True"):
        plain.predict_quantiles(X)


def test_what_is_refused(fitted):
    forest, X, y, _ = fitted
    for levels in (1.5, [0.1, -0.1], [np.nan], [[0.5]]):
        with pytest.raises(ValueError, match=r"Quantiles must be in the range \[0, 1\]"):
            forest.predict_quantiles(X, levels)
    with pytest.raises(ValueError, match="only available if bootstrap=True"):
        forest.set_params(bootstrap=False).fit(X, y).predict_quantiles()
    with pytest.raises(NotFittedError):
        clone(forest).predict_quantiles(X)
    with pytest.raises(ValueError, match="'quantreg' parameter"):
        clone(forest).set_params(quantreg="yes").fit(X, y)
    with pytest.raises(TypeError, match="no parameter 'quantreg': classes have no quant"):
        RandomForestClassifier(quantreg=True)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("leaf", lambda a: a[:1], "the arrays of targets differ in length"),
        ("leaf", lambda a: a * 0, "targets must be in leaves"),
        ("leaf", lambda a: a + 10**6, "targets must be in leaves"),
        ("leaf", lambda a: a - 10**6, "targets must be in leaves"),
        ("target", lambda a: a[::-1], "targets must be ascending"),
        ("target", lambda a: a + np.inf, "targets must be finite"),
        ("weight", lambda a: a - 1.0, "weights greater than 0"),
        ("row", lambda a: a * 0, "each target must be that of another row"),
        ("row", lambda a: a + 1, "each target must be that of another row"),
    ],
)
def test_damaged_files(fitted, tmp_path, name, change, message):
    path = tmp_path / "forest.gputree"
    save_model(fitted[0], path)
    parts, key = unpack(path), f"leaf_targets/{name}.npy"
    array = change(getattr(fitted[0]._leaf_targets[0], name))
    pack(path, parts | {key: npy_bytes(array)})
    with pytest.raises(ValueError, match=message):
        load_model(path)
    del parts[key]
    pack(path, parts)
    with pytest.raises(ValueError, match=f"holds no {key}"):
        load_model(path)
    header = json.loads(parts["model.json"])
    assert header["params"]["quantreg"]
