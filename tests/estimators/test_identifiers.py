"""Columns that name rows are told before growth, and again where they win."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, ID3Classifier

N = 200


def table(ids: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.choice(["low", "high"], N)
    y = (rng.random(N) < np.where(x == "low", 0.2, 0.8)).astype(int)
    return pa.table({"x": x, "id": ids}), y


def names(n: int = N, n_alike: int = 0) -> np.ndarray:
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
    first, *_ = said(ID3Classifier(), names(n_alike=9)[:, None], np.arange(N) % 2)
    assert "Column 0 of X has a unique value in 95.5% of the rows." in first


@pytest.mark.parametrize("ids", [names(n_alike=20), np.arange(N), np.arange(N) * 0.5])
def test_words_that_rows_share_and_numbers_name_no_rows(ids):
    X, y = table(ids)
    for kind in (ID3Classifier, C45Classifier, DecisionTreeClassifier):
        assert [told for told in said(kind(), X, y) if "its own" in told] == []


def test_numbers_that_are_listed_as_categories_may_name_rows():
    X, y = table(np.arange(N))
    assert said(DecisionTreeClassifier(categorical_features=["id"]), X, y)


def test_few_rows_and_missing_values_are_no_evidence():
    assert said(ID3Classifier(), names(99)[:, None], np.arange(99) % 2) == []
    ids = names()
    ids[50:] = None
    assert said(ID3Classifier(), ids[:, None], np.arange(N) % 2) == []


def test_categories_that_no_row_has_do_not_count():
    ids = pa.DictionaryArray.from_arrays(np.arange(N) % 2, names())
    assert said(ID3Classifier(), pa.table({"id": ids}), np.arange(N) % 2) == []


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
