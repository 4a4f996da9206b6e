"""A column of text that is nearly one of numbers: a warning, once, wherever a table is read."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    ID3Classifier,
    MDLPDiscretizer,
    RandomForestClassifier,
    rank_features,
)
from gputree.errors import MixedColumnWarning
from gputree.pruning import CostComplexityCV

AGE = [*map(str, range(17)), "unknown", "?", "?"]
OTHER = np.linspace(0.0, 1.0, len(AGE))
X = pd.DataFrame({"age": pd.Series(AGE, dtype=object), "other": OTHER})
Y = np.arange(len(AGE)) % 2

FITS = {
    "CART": lambda X: DecisionTreeClassifier().fit(X, Y),
    "regression": lambda X: DecisionTreeRegressor().fit(X, Y),
    "C4.5": lambda X: C45Classifier().fit(X, Y),
    "ID3": lambda X: ID3Classifier().fit(X[["age"]], Y),
    "forest": lambda X: RandomForestClassifier(n_estimators=2, random_state=0).fit(X, Y),
    "extra-trees": lambda X: ExtraTreesRegressor(n_estimators=2, random_state=0).fit(X, Y),
    "boosted": lambda X: BoostedC45Classifier(n_trials=2).fit(X, Y),
    "rules": lambda X: C45Rules().fit(X, Y),
    "boosted rules": lambda X: BoostedC45Rules(n_trials=2).fit(X, Y),
    "folds": lambda X: C45Classifier(pruning=CostComplexityCV(cv=2)).fit(X, Y),
    "coded": lambda X: [DecisionTreeClassifier().fit(t, Y) for t in [CodedTable(X)] * 2],
    "batches": lambda X: CodedTable.from_batches([X[:9], X[9:]]),
    "scores": lambda X: rank_features(X, Y),
}


def said(fit, *arguments):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit(*arguments)
    return [str(w.message) for w in found if issubclass(w.category, MixedColumnWarning)]


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_each_fit_warns_once_of_the_cells_and_says_what_to_do(fit):
    (message,) = said(fit, X)
    assert message.startswith(
        "Column 'age' of X holds 17 numbers, but 3 cells are text ('?', 'unknown'), and "
    )
    assert "pandas.to_numeric(column, errors='coerce')" in message


def test_numbers_as_text_are_no_names_of_rows():
    unique = X.assign(age=[*map(str, range(19)), "unknown"])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        DecisionTreeClassifier().fit(unique, Y)
    assert [w.category for w in found] == [MixedColumnWarning]
    listed = DecisionTreeClassifier(categorical_features=["age"])
    with pytest.warns(UserWarning, match="Column 'age' of X has a unique value"):
        listed.fit(unique, Y)


def test_a_typeset_minus_is_a_minus():
    column = DECIMALS["a"].str.replace("^1", "\u22121", regex=True)
    (message,) = said(DecisionTreeClassifier().fit, pd.DataFrame({"a": column}), HALVES)
    advice = "column.str.replace('\u2212', '-')"
    assert f"Convert it, as by pandas.to_numeric({advice});" in message


def test_warnings_name_the_class_that_is_called():
    (message,) = said(FITS["rules"], X)
    assert "and C45Rules (by C45Classifier) takes all of it for categories" in message
    model = C45Rules(C45Classifier())
    with pytest.warns(UserWarning, match=r"C45Rules \(by C45Classifier\) cannot learn from it"):
        model.fit([[f"k{n}"] for n in range(20)], Y)
    assert "_caller" not in vars(model.estimator_)


READ = {
    "text": X.astype({"age": "string"}),
    "categorical": X.astype({"age": "category"}),
    "polars": pl.from_pandas(X),
    "arrow": pa.Table.from_pandas(X),
    "array": X.to_numpy(),
    "list": X.to_numpy().tolist(),
    "numbers among text": X.assign(age=pd.Series([*range(17), *AGE[17:]], dtype=object)),
}


@pytest.mark.parametrize("table", READ.values(), ids=READ)
def test_tables_of_any_kind(table):
    (message,) = said(FITS["CART"], table)
    assert "holds 17 numbers, but 3 cells are text ('?', 'unknown')" in message


def test_one_of_many_texts_is_an_example():
    many = [*map(str, range(400)), *"abcd"]
    frame = pd.DataFrame({"a": pd.Series(many, dtype=object)})
    (message,) = said(DecisionTreeClassifier(max_depth=1).fit, frame, np.arange(len(many)) % 2)
    assert "400 numbers, but 4 cells are text (such as 'a', 'b', 'c')" in message


@pytest.mark.parametrize(
    "words",
    [
        ["2", "4", "more"] * 7,
        ["a", "b", "c", "1"] * 5,
        [*map(str, range(20))],
        ["1", "2", None] * 7,
        [f"A{number}" for number in range(20)],
        [True, "False", "True"] * 6,
    ],
)
def test_columns_of_categories_are_no_cause(words):
    frame = pd.DataFrame({"a": pd.Series(words, dtype=object)})
    assert said(DecisionTreeClassifier().fit, frame, np.arange(len(words)) % 2) == []


DECIMALS = pd.DataFrame({"a": pd.Series([f"{k / 7:.3f}" for k in range(40)] * 2, dtype=object)})
HALVES = np.arange(80) % 2


@pytest.mark.parametrize("as_read", [lambda X: X, pl.from_pandas, pa.Table.from_pandas])
def test_decimals_as_text_are_numbers(as_read):
    (message,) = said(DecisionTreeClassifier().fit, as_read(DECIMALS), HALVES)
    assert message.startswith("Column 'a' of X holds 80 numbers as text, and Decision")
    assert "Convert it, as by pandas.to_numeric(column);" in message
    assert len(said(lambda: CodedTable.from_batches([DECIMALS[:40], DECIMALS[40:]]))) == 1


@pytest.mark.parametrize(
    "column",
    [
        DECIMALS["a"].str.replace(".", ""),  # codes
        DECIMALS["a"].where(DECIMALS["a"] < "2", "1.500"),  # few
        DECIMALS["a"].astype("category"),  # declared
    ],
)
def test_codes_few_decimals_and_declared_categories_are_meant(column):
    assert said(DecisionTreeClassifier().fit, pd.DataFrame({"a": column}), HALVES) == []
    listed = DecisionTreeClassifier(categorical_features=["a"])
    assert said(listed.fit, DECIMALS, HALVES) == []


def test_declared_decimals_that_are_unique_name_rows():
    words = pd.Categorical([f"{k / 7:.3f}" for k in range(40)])
    frame, y = pd.DataFrame({"a": words, "b": 0.0}), np.arange(40) % 2
    assert said(CodedTable, frame) == said(CodedTable.from_batches, [frame[:20], frame[20:]]) == []
    for X in (frame, CodedTable(frame), CodedTable.from_batches([frame[:20], frame[20:]])):
        with pytest.warns(UserWarning, match="Column 'a' of X has a unique value in every row"):
            DecisionTreeClassifier(max_depth=1).fit(X, y)


def test_columns_that_are_listed_or_ordered_are_meant():
    model = DecisionTreeClassifier(categorical_features=["age"])
    assert said(model.fit, X, Y) == []
    assert said(lambda: CodedTable(X, categorical_features=["age"])) == []
    assert said(lambda: CodedTable.from_batches([X], categorical_features=["age"])) == []
    order = {"age": list(dict.fromkeys(AGE))}
    assert said(DecisionTreeClassifier(ordered_categories=order).fit, X, Y) == []


def test_what_cuts_numbers_alone_refuses_it_by_its_cells():
    with pytest.raises(ValueError, match=r"holds 17 numbers, but 3 cells are text .*to_numeric"):
        MDLPDiscretizer().fit(X, Y)
    with pytest.raises(ValueError, match=r"holds 80 numbers as text, .*to_numeric\(column\)\."):
        MDLPDiscretizer().fit(DECIMALS, HALVES)
    with pytest.raises(ValueError, match="column 'age' holds categories"):
        MDLPDiscretizer().fit(X.assign(age=[*"abcde"] * 4), Y)
