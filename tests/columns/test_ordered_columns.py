"""Columns of ordered categories are ranks: by their types, and by the order that is given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ordered_tables import LEVELS, as_text, asked, by_rank, ordered_table

from gputree.columns import fit_columns, fit_encode
from gputree.columns.merging import MergedColumns

X = ordered_table()[0]
TEXT = as_text(X)
ENUM = pl.DataFrame(
    {"level": pl.Series(TEXT["level"].tolist(), dtype=pl.Enum(LEVELS)), "z": X["z"].to_numpy()}
)
CODES = pa.array(X["level"].cat.codes.to_numpy(), mask=X["level"].isna().to_numpy())
ARROW = pa.table(
    {"level": pa.DictionaryArray.from_arrays(CODES, LEVELS, ordered=True), "z": X["z"]}
)

BY_TYPE = {"pandas": X[["level", "z"]], "arrow": ARROW, "batch": ARROW.to_batches()[0]}
GIVEN = {
    "text": (TEXT[["level", "z"]], LEVELS),
    "array": (TEXT[["level", "z"]].to_numpy(), LEVELS),
    "enum": (ENUM, "declared"),
    "categorical": (X[["level", "z"]].assign(level=X["level"].cat.as_unordered()), "declared"),
    "index": (TEXT[["level", "z"]], pd.Index(LEVELS)),
    "numbers": (by_rank(X)[["level", "z"]], range(5)),
}


def require_ranks(columns, values, levels=LEVELS):
    assert columns.ordered.tolist() == [True, False]
    assert not columns.nominal.any()
    assert columns.n_categories.tolist() == [0, 0]
    assert columns.categories[0].tolist() == list(levels)
    np.testing.assert_array_equal(values, by_rank(X)[["level", "z"]])


@pytest.mark.parametrize("table", BY_TYPE.values(), ids=BY_TYPE)
def test_types_that_are_ordered(table):
    table = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    require_ranks(*fit_encode(table))
    plain = fit_columns(table, ordered_categories=None)
    assert plain.nominal.tolist() == [True, False]
    assert fit_columns(table, ordered_categories={0: None}).same_as(plain)
    listed = fit_columns(table, ["level"])
    assert listed.ordered.tolist() == [True, False]


@pytest.mark.parametrize(("table", "order"), GIVEN.values(), ids=GIVEN)
def test_orders_that_are_given(table, order):
    place = 0 if isinstance(table, np.ndarray) or isinstance(order, pd.Index) else "level"
    assert not fit_columns(table).ordered.any()
    columns, values = fit_encode(table, ordered_categories={place: order})
    require_ranks(columns, values, LEVELS if isinstance(order, str) else order)


def test_a_given_order_is_not_that_of_the_type():
    turned = LEVELS[::-1]
    columns, values = fit_encode(X[["level"]], ordered_categories={"level": turned})
    assert columns.categories[0].tolist() == turned
    np.testing.assert_array_equal(values[:, 0], 4 - by_rank(X)["level"])


@pytest.mark.parametrize("read", [as_text, lambda rows: pl.from_pandas(rows)])
def test_levels_go_by_name_and_unknown_ones_are_missing(read):
    columns = fit_columns(X)
    rows = asked(X)
    np.testing.assert_array_equal(columns.encode(read(rows))[:, :2], by_rank(rows)[["level", "z"]])
    other = rows.assign(level=pd.Categorical(rows["level"], ["beyond", *LEVELS[::-1]]))
    np.testing.assert_array_equal(columns.encode(other), columns.encode(rows))


def test_numbers_that_are_ranks_already_are_not_copied():
    values = np.array([[0.0, 0.5], [2.0, 1.5], [1.0, 2.5]], np.float32)
    columns = fit_columns(values, ordered_categories={0: [0, 1, 2]})
    assert np.shares_memory(columns.encode(values), values)
    columns = fit_columns(values, ordered_categories={0: [2, 0, 1]})
    assert columns.encode(values)[:, 0].tolist() == [1.0, 0.0, 2.0]
    assert np.isnan(columns.encode(values + 7)[:, 0]).all()


def test_of_columns_that_are_all_categories_an_order_is_but_that_of_the_codes():
    columns, values = fit_encode(X[["level"]], every_nominal=True)
    assert columns.nominal.all()
    assert columns.categories[0].tolist() == LEVELS
    np.testing.assert_array_equal(values[:, 0], by_rank(X)["level"])


PARAMETER = "The 'ordered_categories' parameter "
WRONG = [
    ("level", PARAMETER + "must be 'auto', None or a dict"),
    ({"level": "low"}, r"must be 'auto', None or a dict .* Got 'low' for 'level'"),
    ({"level": 3}, "Got 3 for 'level'"),
    ({"level": []}, "must list text or numbers, none of them missing"),
    ({"level": ["low", None]}, "must list text or numbers, none of them missing"),
    ({"level": ["low", ("high",)]}, "must list text or numbers"),
    ({"level": ["low", "high", "low"]}, "lists 'low' twice for column 'level'"),
    ({"size": LEVELS}, r"must name columns of X. Got \['size'\], which are none"),
    ({3: LEVELS}, "indices from 0 to 2. Got 3 instead"),
    ({True: LEVELS}, "indices from 0 to 2. Got True instead"),
    ({"c": "declared"}, "order of column 'c' of X from its type, which declares no categories"),
    ({"z": "declared"}, "column 'z' of X from its type"),
    ({"level": LEVELS[:3]}, "'level' of X holds '(high|top, above all)', which 'ordered_categor"),
    ({"z": [1, 2]}, "Column 'z' of X holds .*, which 'ordered_categories' does not list"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_orders_that_are_none(given, message):
    with pytest.raises(ValueError, match=message):
        fit_columns(X, ordered_categories=given)


def test_names_of_an_array():
    with pytest.raises(ValueError, match="names columns, but X has no column names"):
        fit_columns(np.zeros((2, 2)), ordered_categories={"a": [0]})


# --------------------------------------------------------------------- batches
NONE = np.array([False])


def merged(*tables, empty=NONE):
    found = MergedColumns(["'level'"])
    for table in tables:
        columns = fit_columns(table)
        found.add(columns, np.array([table["level"].isna().all()]))
    return found.columns()


def test_batches_of_one_order():
    level = X[["level"]]
    nothing = level.assign(level=None)
    first, second = level.iloc[:40], level.iloc[40:]
    for batches in ([first, second], [nothing, first, second], [first, nothing]):
        columns = merged(*batches)
        assert columns.ordered.tolist() == [True]
        assert columns.categories[0].tolist() == LEVELS
    assert merged(nothing.astype(level.dtypes)).ordered.tolist() == [True]


def test_batches_of_several_orders():
    level = X[["level"]]
    turned = level.assign(level=level["level"].cat.reorder_categories(LEVELS[::-1]))
    with pytest.raises(ValueError, match=r"'level' of X declares the order .* in earlier ones"):
        merged(level, turned)
    text = level.astype(object)
    with pytest.raises(ValueError, match=r"held ordered categories .* holds categories .* Give it"):
        merged(level, text)
    with pytest.raises(ValueError, match=r"held categories .* holds ordered categories"):
        merged(text, level)
