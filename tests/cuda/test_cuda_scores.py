"""Scores on a CUDA device are those of the CPU, to the last bit."""

import importlib

import numpy as np
import pytest

from gputree import (
    CodedTable,
    gain_ratio,
    gini_gain,
    information_gain,
    rank_features,
    variance_reduction,
)

SCORES = [information_gain, gain_ratio, gini_gain, variance_reduction]


def problem(kind, n=1200):
    rng = np.random.default_rng(5)
    X = np.stack([rng.integers(0, k, n) for k in (1, 7, 300)] + [rng.normal(size=n)], axis=1)
    X[rng.random(n) < 0.1, 2] = np.nan
    y = (X[:, 3] + rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 3)
    if kind is variance_reduction:
        y = y + rng.normal(size=n)
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", SCORES)
def test_scores_are_the_same(kind, weighted, cuda_device):
    X, y, weight = problem(kind)
    options = {"sample_weight": weight if weighted else None}
    expected = kind(X, y, device="cpu", **options)
    np.testing.assert_array_equal(kind(X, y, device="cuda", **options), expected)


@pytest.mark.parametrize("kind", [information_gain, variance_reduction])
def test_tables_on_the_device(kind, cuda_device):
    xp = importlib.import_module("cupy")
    X, y, _ = problem(kind)
    expected = kind(X, y, device="cpu")
    np.testing.assert_array_equal(kind(xp.asarray(X), xp.asarray(y), device="cuda"), expected)
    table = CodedTable(X, device="cuda")
    np.testing.assert_array_equal(kind(table, y), expected)
    rows = np.arange(100, 1000)
    np.testing.assert_array_equal(kind(table.take(rows), y[rows]), kind(X[rows], y[rows]))


def test_rankings_are_the_same(cuda_device):
    X, y, _ = problem(information_gain)
    for numeric in ("threshold", "mdl"):
        expected = rank_features(X, y, numeric=numeric, device="cpu")
        assert repr(rank_features(X, y, numeric=numeric, device="cuda")) == repr(expected)
