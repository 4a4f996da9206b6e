"""Forests of some trees of a forest, and of the trees of two: predictions, out-of-bag rows."""

import pickle
import warnings

import numpy as np
import pytest
from frames import mixed
from sklearn.base import clone
from twin_lists import assert_same_trees

from gputree import (
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    export_json,
    load_model,
    read_json,
    save_model,
)

TABLE, LABELS, TARGET = mixed()
MORE = {"warm_start": True, "oob_score": False}
TABLE, LABELS, TARGET = TABLE[:60], LABELS[:60], TARGET[:60]


def grown(n=4, seed=0, kind=RandomForestRegressor, **others):
    target = LABELS if kind is RandomForestClassifier else TARGET
    forest = kind(n, random_state=seed, max_depth=3, n_jobs=1, **others)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few trees, some rows are out of no bag
        return forest.fit(TABLE, target)


def assert_same(one, other):
    """The same trees, rows and predictions."""
    assert len(one) == len(other) == one.n_estimators
    for mine, theirs in zip(one, other, strict=True):
        assert_same_trees(mine.tree_, theirs.tree_)
        assert mine.random_state == theirs.random_state
    for mine, theirs in zip(one.estimators_samples_, other.estimators_samples_, strict=True):
        assert (mine == theirs).all()
    assert (one.predict(TABLE) == other.predict(TABLE)).all()


@pytest.fixture(scope="module")
def forest():
    return grown(oob_score=True)


def test_the_first_trees_are_the_forest_of_so_many(forest):
    first = forest[:2]
    assert type(first) is RandomForestRegressor
    assert_same(first, grown(2))
    assert not hasattr(first, "oob_score_")
    assert hasattr(forest, "oob_score_")
    assert len(forest) == forest.n_estimators == 4
    again = first.set_params(**MORE, n_estimators=4).fit(TABLE, TARGET)
    assert_same(again, forest)


def test_parts_know_the_rows_that_their_trees_have_drawn(forest):
    for place in (slice(1, 3), slice(None, None, -2), slice(-1, None)):
        part, numbers = forest[place], range(4)[place]
        expected = [forest.estimators_samples_[t] for t in numbers]
        for mine, theirs in zip(part.estimators_samples_, expected, strict=True):
            assert (mine == theirs).all()
        found = part.oob_permutation_importance(TABLE, TARGET).importances
        whole = forest.oob_permutation_importance(TABLE, TARGET).importances
        np.testing.assert_array_equal(found, whole[:, list(numbers)])
    more = forest[2:3].set_params(**MORE, n_estimators=2).fit(TABLE, TARGET)
    assert_same_trees(more[1].tree_, forest[3].tree_)


def test_two_forests_answer_with_the_mean_of_their_trees(forest):
    other = grown(2, seed=1)
    both = forest + other
    expected = (4 * forest.predict(TABLE) + 2 * other.predict(TABLE)) / 6
    np.testing.assert_allclose(both.predict(TABLE), expected, rtol=1e-12)
    assert_same(both[:4], forest)
    assert_same(both[4:], other)
    assert_same(forest[:1] + forest[1:], forest)
    assert_same(sum(forest[t : t + 1] for t in range(4)), forest)
    assert not hasattr(both, "oob_score_")
    assert clone(both).n_estimators == 6


def test_a_joined_forest_grows_on_with_trees_of_its_own():
    both = grown(2) + grown(1, seed=1)
    both.set_params(n_estimators=5, warm_start=True, oob_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both.fit(TABLE, TARGET)
    assert_same(both[3:], grown(3, seed=1)[1:])
    assert np.isfinite(both.oob_score_)


def test_files_hold_cut_and_joined_forests(tmp_path, forest):
    joined = forest[1:] + grown(2, seed=1)
    path = tmp_path / "forest.gputree"
    save_model(joined, path)
    assert_same(load_model(path), joined)
    assert_same(pickle.loads(pickle.dumps(joined)), joined)
    assert_same(read_json(export_json(joined)), joined)
    save_model(forest[:2], path)
    whole = path.read_bytes()
    save_model(grown(2).set_params(oob_score=True), path)
    assert path.read_bytes() == whole


def test_quantiles_of_parts(tmp_path):
    forest, other = grown(quantreg=True), grown(2, seed=1, quantreg=True)
    few = grown(2, quantreg=True)
    for rows in (TABLE[:9], None):
        np.testing.assert_array_equal(
            forest[:2].predict_quantiles(rows), few.predict_quantiles(rows)
        )
    save_model(few + other, tmp_path / "both")
    both = load_model(tmp_path / "both")
    mixed_up = other + few
    found, expected = (one.predict_quantiles(TABLE[:9]) for one in (both, mixed_up))
    np.testing.assert_allclose(found, expected)
    with pytest.raises(ValueError, match="must have kept the targets of the same rows"):
        few + grown(1, seed=2)
    shorter = clone(other).fit(TABLE[:50], TARGET[:50])
    with pytest.raises(ValueError, match="must have kept the targets of the same rows"):
        few + shorter


def test_trees_of_tables_of_other_sizes():
    shorter = grown(1, seed=5)
    shorter.fit(TABLE[:50], TARGET[:50])
    both = grown(2) + shorter
    assert [rows.size for rows in both.estimators_samples_] == [60, 60, 50]
    with pytest.raises(ValueError, match=r"X has 60, and estimators_\[2\] was grown on 50"):
        both.oob_permutation_importance(TABLE, TARGET)
    both.set_params(n_estimators=4, warm_start=True, oob_score=True)
    with pytest.raises(ValueError, match=r"oob_score=True .* X has 60, and estimators_\[2\] was"):
        both.fit(TABLE, TARGET)
    both.set_params(oob_score=False).fit(TABLE, TARGET)
    assert [rows.size for rows in both.estimators_samples_] == [60, 60, 50, 60]


def test_what_cannot_be_cut_or_joined(forest):
    with pytest.raises(ValueError, match=r"RandomForestRegressor\[4:\] none of 4"):
        forest[4:]
    with pytest.raises(TypeError, match=r"one class, got RandomForestRegressor \+ ExtraTrees"):
        forest + grown(1, kind=ExtraTreesRegressor)
    with pytest.raises(TypeError, match="unsupported operand"):
        forest + 1
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + forest
    for place in (4, -5):
        with pytest.raises(
            IndexError, match=rf"index {place} is out of range for 4 trees of Random"
        ):
            forest[place]
    renamed = clone(forest).set_params(oob_score=False)
    renamed.fit(TABLE.rename(columns={"a": "z"}), TARGET)
    with pytest.raises(ValueError, match="must have the same names and categories"):
        forest + renamed
    one = grown(1, kind=RandomForestClassifier)
    other = clone(one).fit(TABLE, LABELS == "low")
    with pytest.raises(ValueError, match=r"must have the same classes to join them: \["):
        one + other
    with pytest.raises(ValueError, match="not fitted"):
        forest + RandomForestRegressor()
    with pytest.warns(UserWarning, match="2 of 2 trees are in both forests"):
        assert len(forest + forest[1:3]) == 6
