"""`--cv` on few rows: folds are of even size, and their predictions are scored together."""

import contextlib
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from sklearn.model_selection import StratifiedKFold

from gputree.cli.resampling import resampling
from gputree.datasets import load_golf
from gputree.evaluation import Answers, measures_of_classes, pooled

GOLF = load_golf().filename


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_parts(counts, data):
    """Each row is predicted once; folds, and each class in them, differ by a row at most."""
    y = np.random.default_rng(sum(counts)).permutation(np.repeat(np.arange(len(counts)), counts))
    if y.size < 2:
        return
    cv = data.draw(st.integers(2, y.size))
    with contextlib.redirect_stderr(io.StringIO()):
        splits = resampling(y, True, None, cv, 3).splits
    asked = np.concatenate([test for _, test in splits])
    assert sorted(asked.tolist()) == list(range(y.size))
    for train, test in splits:
        assert sorted([*train, *test]) == list(range(y.size))
        assert test.size in (y.size // cv, -(-y.size // cv))
        for code, count in enumerate(counts):
            assert (y[test] == code).sum() in (count // cv, -(-count // cv))


def test_parts_are_scikit_learns_where_it_has_them():
    y = np.repeat([0, 1], [9, 5])
    expected = list(StratifiedKFold(5, shuffle=True, random_state=7).split(y[:, None], y))
    for ours, theirs in zip(resampling(y, True, None, 5, 7).splits, expected, strict=True):
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


@pytest.mark.parametrize("cv", ["10", "14"])
def test_wekas_first_exercise(gputree, tmp_path, cv):
    """14 rows, 9 of one class, 5 of the other: errors and matrix are of all 14 rows."""
    train = ["train", GOLF, "--target", "play", "--algorithm", "c45", "--quiet", "--cv", cv]
    status, out, said = gputree(*train, "-o", tmp_path / "m.gputree")
    assert status == 0
    assert ("not each of the 10 parts has a row of 'no' (5 rows), 'yes' (9 rows)" in said) == (
        cv == "10"
    )
    pool = out.split("all held-out rows\n")[1]
    matrix = np.array([re.findall(r"\d+", line)[-2:] for line in pool.splitlines()[-2:]], int)
    assert matrix.sum(axis=1).tolist() == [5, 9]
    errors = int(matrix[0, 1] + matrix[1, 0])
    assert re.search(rf"errors +{errors} \({errors / 14:.2%}\)", pool)
    true = np.repeat([0, 0, 1, 1], matrix.ravel())
    answer = np.repeat([0, 1, 0, 1], matrix.ravel())
    kappa = cohen_kappa_score(true, answer)
    assert re.search(rf"kappa +{kappa:.4f}\n", pool)


def test_pooled_answers_are_those_of_scikit_learn():
    """Folds that lack a class, and folds with a class that others lack."""
    labels = [np.array(["a", "b"]), np.array(["a", "c"])]
    truth = [np.array(["a", "b", "b"]), np.array(["c", "c", "a"])]
    answer = [np.array(["a", "a", "b"]), np.array(["c", "a", "a"])]
    shares = [
        np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]),
        np.array([[0.1, 0.9], [0.7, 0.3], [1, 0]]),
    ]
    found = pooled([
        Answers(y, p, s, each) for y, p, s, each in zip(truth, answer, shares, labels, strict=True)
    ])  # fmt: skip
    y, p = np.concatenate(truth), np.concatenate(answer)
    whole = np.array([
        [0.9, 0.1, 0], [0.6, 0.4, 0], [0.2, 0.8, 0], [0.1, 0, 0.9], [0.7, 0, 0.3], [1, 0, 0],
    ])  # fmt: skip
    assert found.labels.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found.shares, whole)
    measures = measures_of_classes(found)
    assert measures["errors"] == (y != p).sum() == 2
    assert measures["kappa"] == pytest.approx(cohen_kappa_score(y, p))
    off = whole - (y[:, None] == found.labels)
    assert measures["mean_absolute_error"] == pytest.approx(np.abs(off).mean())
    assert measures["root_mean_squared_error"] == pytest.approx(np.sqrt((off**2).mean()))
    assert confusion_matrix(found.y, found.predicted).sum() == 6
