"""Warnings of fit: the line of the caller, targets that vanish, columns that name rows."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
    entropy,
    variance_reduction,
)
from gputree.compilation import store

IDS = np.array([[f"id{i}"] for i in range(120)], object)
Y = np.arange(120) % 2
TARGETS = np.append(1e15, np.random.default_rng(0).normal(size=399))

CALLS = {
    "fit": lambda: DecisionTreeClassifier().fit(IDS, Y),
    "multiway": lambda: C45Classifier().fit(IDS, Y),
    "search": lambda: GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=2).fit(IDS, Y),
    "pipeline": lambda: make_pipeline(DecisionTreeClassifier()).fit(IDS, Y),
    "targets": lambda: DecisionTreeRegressor().fit(np.arange(400.0)[:, None], TARGETS),
    "counts": lambda: entropy([90, 5]),
    "scores": lambda: variance_reduction(np.arange(1200.0).reshape(400, 3), TARGETS),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_line_is_the_callers(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        CALLS[call]()
    assert found
    assert {warning.filename for warning in found} == {__file__}


def test_kernels_that_cannot_be_kept_are_told_once(monkeypatch):
    """Warn again after a warning that was raised as an error."""
    monkeypatch.setattr(store, "folders", list)
    monkeypatch.setattr(store, "_warned", False)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="cannot be kept"):
                store._warn_once()
    with pytest.warns(UserWarning, match="cannot be kept"):
        store._warn_once()
    store._warn_once()


# ----------------------------------------------------------------- a few extreme targets or weights
N = 4000
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
    "tails beyond fixed point": np.exp(24 * NORMAL),
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


# --------------------------------------------------------------------------- columns that name rows
FEW = 200


def table(ids: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.choice(["low", "high"], FEW)
    y = (rng.random(FEW) < np.where(x == "low", 0.2, 0.8)).astype(int)
    return pa.table({"x": x, "id": ids}), y


def names(n: int = FEW, n_alike: int = 0) -> np.ndarray:
    ids = np.array([f"id {i}" for i in range(n)], object)
    ids[:n_alike] = "nobody"
    return ids


def said(estimator, X, y) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimator.fit(X, y)
    return [str(warning.message) for warning in found]


@pytest.mark.parametrize(
    "kind", [ID3Classifier, C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor]
)
def test_a_value_of_its_own_in_every_row(kind):
    first, *_ = said(kind(), *table(names()))
    assert first == (
        f"Column 'id' of X has a unique value in every row. {kind.__name__} cannot learn "
        "from it what holds for other rows: leave it out."
    )


def test_an_identifier_that_wins_is_told_with_its_place():
    _, second = said(ID3Classifier(), *table(names()))
    assert second == (
        "ID3Classifier chose column 'id' of X, which has a unique value in every row, at the "
        "root: what the tree has learned there holds for no other rows. Leave it out."
    )
    model = DecisionTreeClassifier(categorical_split="one_vs_rest", device="cpu")
    _, second = said(model, *table(names()))
    nodes = np.count_nonzero(model.tree_.feature == 1)
    assert 0 < nodes < model.tree_.n_nodes
    assert f"at {nodes} of {model.tree_.n_nodes} nodes:" in second


def test_one_that_is_pruned_away_does_not_win():
    model = DecisionTreeClassifier(categorical_split="one_vs_rest", ccp_alpha=0.05)
    assert len(said(model, *table(names()))) == 1
    assert model.tree_.feature[0] == 0


def test_nearly_every_row_is_enough():
    first, *_ = said(ID3Classifier(), names(n_alike=9)[:, None], np.arange(FEW) % 2)
    assert "Column 0 of X has a unique value in 95.5% of the rows." in first


@pytest.mark.parametrize("ids", [names(n_alike=20), np.arange(FEW), np.arange(FEW) * 0.5])
def test_words_that_rows_share_and_numbers_name_no_rows(ids):
    X, y = table(ids)
    for kind in (ID3Classifier, C45Classifier, DecisionTreeClassifier):
        assert [told for told in said(kind(), X, y) if "its own" in told] == []


def test_numbers_that_are_listed_as_categories_may_name_rows():
    X, y = table(np.arange(FEW))
    assert said(DecisionTreeClassifier(categorical_features=["id"]), X, y)


def test_few_rows_and_missing_values_are_no_evidence():
    assert said(ID3Classifier(), names(9)[:, None], np.arange(9) % 2) == []
    shared = np.append(names(98), names(1))  # some words of so few rows may well differ
    assert said(ID3Classifier(), shared[:, None], np.arange(99) % 2) == []
    ids = names()
    ids[9:] = None
    assert said(ID3Classifier(), ids[:, None], np.arange(FEW) % 2) == []


@pytest.mark.parametrize("rows", [10, 99])
def test_few_rows_with_a_text_each(rows):
    warned = said(ID3Classifier(), names(rows)[:, None], np.arange(rows) % 2)
    assert "has a unique value in every row" in warned[0]
    numbers = np.arange(rows).astype(object)[:, None]
    tree = DecisionTreeClassifier(categorical_features=[0])
    assert said(tree, numbers, np.arange(rows) % 2) == []


def test_categories_that_no_row_has_do_not_count():
    ids = pa.DictionaryArray.from_arrays(np.arange(FEW) % 2, names())
    assert said(ID3Classifier(), pa.table({"id": ids}), np.arange(FEW) % 2) == []


# --------------------------------------------------------------- numbers of ID3
CODES = np.arange(60) % 4
QUANTITIES = {
    "fractions": (CODES + 0.5, "auto", True),
    "many": (np.arange(60) // 2, "auto", True),
    "few": (CODES, "auto", False),
    "booleans": (CODES > 1, "auto", False),
    "listed": (np.arange(60) // 2, [0], False),
    "others are listed": (np.arange(60) // 2, [1], True),
    "all rows differ": (np.arange(60)[:12], "auto", True),
}


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("case", QUANTITIES)
def test_id3_warns_of_numbers_that_are_no_codes(case, frame):
    column, listed, warned = QUANTITIES[case]
    X = np.column_stack([column, np.zeros(column.size)])
    if frame:
        X = pd.DataFrame({"a": column, "b": np.zeros(column.size)})
        listed = listed if listed == "auto" else ["ab"[f] for f in listed]
    with warnings.catch_warnings(record=True) as found:
        ID3Classifier(categorical_features=listed).fit(X, np.arange(column.size) % 2)
    told = [str(one.message) for one in found]
    label = "'a'" if frame else "0"
    expected = f"Column {label} of X contains numbers: ID3Classifier creates a branch for each"
    assert [one.startswith(expected) for one in told] == [True] * warned


@pytest.mark.filterwarnings("error")
def test_numbers_of_a_categorical_type_are_codes():
    X = pd.DataFrame({"a": pd.Categorical(np.arange(60) + 0.5)})
    ID3Classifier().fit(X, np.arange(60) % 2)
