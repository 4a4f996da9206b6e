"""A few extreme targets or weights beside many ordinary ones: told where they cost the tree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor

N = 20_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
NORMAL = X[:, 0] + 0.1 * RNG.normal(size=N)
STUMP = DecisionTreeRegressor(max_depth=2, splitter="binned", max_bins=8)


def with_rows(value, rows=(17,), y=NORMAL):
    y = y.copy()
    y[list(rows)] = value
    return y


COARSE = {
    "one huge": with_rows(1e15),
    "one low": with_rows(-1e16),
    "far beyond": with_rows(1e60),
    "both ends": with_rows([1e15, -1e15], (3, 4)),
    "a few": with_rows(1e15, range(0, N, 100)),
    "truth values": with_rows(1e16, y=(X[:, 0] > 0) * 1.0),
    "few of one kind": with_rows(1e16, y=(X[:, 0] > 1) * 1.0),
    "a scale of its own": with_rows(1e-5, y=NORMAL * 1e-20),
    "large numbers": with_rows(1e25, y=NORMAL * 1e9 + 1e10),
    "tails beyond fixed point": np.exp(12 * NORMAL),
}


@pytest.mark.parametrize("case", COARSE)
def test_most_targets_are_one(case):
    with pytest.warns(UserWarning, match="to multiples of about .*Clip the extreme targets"):
        STUMP.fit(X, COARSE[case])


@pytest.mark.full
@pytest.mark.parametrize("case", ["one huge", "truth values"])
def test_the_advice_is_what_helps(case):
    """Clipped to the range that the warning names, the tree is that of the ordinary targets."""
    y = COARSE[case]
    with pytest.warns(UserWarning, match="a range of") as record:
        lost = DecisionTreeRegressor(max_depth=4).fit(X, y)
    kept = float(str(record[0].message).split("a range of ")[1].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clipped = DecisionTreeRegressor(max_depth=4).fit(X, np.clip(y, None, kept))
    rest = np.arange(N) != 17
    error = [np.var(y[rest] - model.predict(X)[rest]) for model in (lost, clipped)]
    assert error[1] < 0.5 * np.var(y[rest])
    assert error[1] < error[0]


FINE = {
    "normal": NORMAL,
    "one of 1e12": with_rows(1e12),
    "lognormal": np.exp(NORMAL),
    "wide lognormal": np.exp(5 * NORMAL),
    "cauchy": RNG.standard_cauchy(N),
    "pareto": RNG.pareto(0.7, N),
    "prices": np.round(np.exp(10 + 1.5 * NORMAL), 2),
    "zeros and prices": np.where(X[:, 0] > 1, np.round(np.exp(8 + NORMAL), 2), 0.0),
    "counts": RNG.poisson(3, N) * 1.0,
    "whole numbers that the steps hold": with_rows(2.0**42, y=np.round(NORMAL)),
    "equal but for one": with_rows(1e15, y=np.full(N, 0.1)),
    "rounding about a constant": with_rows(1e5, y=0.1 + 1e-17 * np.round(NORMAL)),
    "timestamps": 1.7e18 + 1e9 * np.arange(N),
    "constant": np.full(N, 3.0),
}


@pytest.mark.parametrize("case", FINE)
@pytest.mark.parametrize("weighted", [False, True])
def test_no_alarm(case, weighted):
    weight = np.exp(RNG.normal(size=N)) if weighted else None
    STUMP.fit(X, FINE[case], weight)


@pytest.mark.parametrize("y", [[1.0, 2.0, 3.0, 1e17], [0.1, 0.2, 0.3, 1e15, -1e15]])
def test_few_rows(y):
    with pytest.warns(UserWarning, match="rounded to multiples of about"):
        STUMP.fit(X[: len(y)], y)


@pytest.mark.parametrize("y", [[1.0], [1.0, 1e17], [1.0, 2.0, 1e17], [1.0, 2.0, 3.0, 1e12]])
def test_too_few_rows_to_tell(y):
    STUMP.fit(X[: len(y)], y)


# ------------------------------------------------------------------ weights
MODELS = [
    DecisionTreeClassifier(max_depth=2, splitter="binned", max_bins=8),
    STUMP,
    C45Classifier(pruning=None, max_depth=2),
]


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS)
def test_one_weight_beside_which_others_vanish(model):
    y = (X[:, 0] > 0).astype(int)
    weight = np.exp(0.3 * RNG.normal(size=N))
    weight[5] = 1e17
    with pytest.warns(UserWarning, match="Sample weights reach up to 1e.17.*Clip the largest"):
        model.fit(X, y, weight)
    weight[5] = 1e12
    model.fit(X, y, weight)


@pytest.mark.full
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("sigma", [0.0, 1.0, 5.0])
def test_ordinary_weights(model, sigma):
    y = (X[:, 0] > 0).astype(int)
    model.fit(X, y, np.exp(sigma * RNG.normal(size=N)))
    model.fit(X, y, RNG.integers(1, 5, N))
