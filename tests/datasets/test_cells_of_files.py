"""A cell means the same whatever file it is in: marks of missing values, units of time, frames.

The oracles are pandas, polars and Python.
"""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from table_files import write_table

from gputree import CodedTable, DecisionTreeClassifier
from gputree.columns import fit_columns
from gputree.columns.cells import text_of_times
from gputree.columns.merging import MergedColumns
from gputree.datasets import open_batches, read_table
from gputree.datasets.conversion import Kinds, convert

# ------------------------------------------------------------------------ marks of missing cells
CELLS = pa.table({"a": [1, -999, 3, -99], "c": ["x", "?", "y", "-999"], "y": ["n", "p", "n", "p"]})
MARKS = ["-999", "?", "-99.0"]
# of a column of text, "-99.0" is other text than any cell
EXPECTED = {"a": [1, None, 3, None], "c": ["x", None, "y", None]}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather", "arff"])
def test_marks_in_every_format(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    write_table(CELLS, path)
    found = read_table(path, "y", missing=MARKS).columns
    again = pa.concat_tables([X for X, _ in open_batches(path, "y", missing=MARKS)])
    for table in (found, again):
        assert {name: table[name].to_pylist() for name in table.column_names} == EXPECTED


TYPES = [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2)]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_marks_of_every_type_of_number(kind):
    column = pa.array([Decimal(7), Decimal(9), None, Decimal(100)]).cast(kind)
    marks = ["9", "1e2", "-1", "300", "?", "nan", "0.5"]
    table = convert("t", pa.table({"a": column}), Kinds(missing=marks))
    assert table["a"].is_null().to_pylist() == [False, True, True, True]
    assert table["a"].type == kind
    assert table["a"][0].as_py() == 7


def test_marks_with_leading_zeros_are_no_numbers():
    table = convert("t", pa.table({"a": [7, 8]}), Kinds(missing=["007"]))
    assert table["a"].to_pylist() == [7, 8]


def test_marks_among_categories_of_numbers():
    """A dictionary stays one, so that its column stays one of categories."""
    coded = pa.chunked_array([pa.array([3, -1, 5]).dictionary_encode()])
    table = convert("t", pa.table({"a": coded}), Kinds(missing=["-1"]))
    assert pa.types.is_dictionary(table["a"].type)
    assert table["a"].to_pylist() == [3, None, 5]
    assert convert("t", pa.table({"a": coded}), Kinds(missing=["4"]))["a"].equals(coded)


def test_a_missing_target_is_told_in_every_format(tmp_path):
    for suffix in ("csv", "parquet", "feather", "arff"):
        path = tmp_path / f"t.{suffix}"
        write_table(CELLS.select(["c", "a"]), path)
        with pytest.raises(ValueError, match="has no value in 1 row"):
            read_table(path, "a", missing=["-999", "?"])


# --------------------------------------------------------------------------------- units of time
INSTANTS = [
    datetime.datetime(2020, 1, 1),
    datetime.datetime(2020, 1, 1, 3, 4, 5),
    datetime.datetime(2020, 12, 31, 23, 59, 59, 500_000),
    None,
]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_are_the_text_of_python(unit):
    expected = [None if one is None else str(one) for one in INSTANTS]
    assert text_of_times(pa.array(INSTANTS, pa.timestamp(unit))).to_pylist() == expected
    seconds = text_of_times(pa.array(INSTANTS[:2], pa.timestamp("s"))).to_pylist()
    assert seconds == expected[:2]


def test_nanoseconds_days_and_hours_are_the_text_of_pandas_and_python():
    nano = pd.Timestamp("2020-01-01 00:00:00.123456789")
    assert text_of_times(pa.array(pd.Series([nano]))).to_pylist() == [str(nano)]
    day, hour = datetime.date(2020, 2, 29), datetime.time(10, 30, 0, 250_000)
    for kind in (pa.date32(), pa.date64()):
        assert text_of_times(pa.array([day], kind)).to_pylist() == [str(day)]
    for kind in (pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        assert text_of_times(pa.array([hour], kind)).to_pylist() == [str(hour)]
    zone = pa.array([datetime.datetime(2020, 1, 1)], pa.timestamp("us", "UTC"))
    assert text_of_times(zone).to_pylist() == ["2020-01-01 00:00:00Z"]


def of_unit(path, unit, instants=INSTANTS[:3]):
    times = pa.array(instants, pa.timestamp(unit))
    table = pa.table({"d": times, "y": pa.array(instants, pa.timestamp(unit)), "a": [1, 2, 3]})
    parquet.write_table(table, path)


def test_times_of_files_in_units_of_their_own(tmp_path):
    expected = [str(one) for one in INSTANTS[:3]]
    for unit in ("ms", "us", "ns"):
        path = tmp_path / f"{unit}.parquet"
        of_unit(path, unit)
        table = read_table(path, "y", categorical=["d"])
        assert table.columns["d"].to_pylist() == table.target.tolist() == expected
    batches = list(open_batches(tmp_path, "y", categorical=["d"]))
    assert len(batches) == 3
    for X, y in batches:
        assert X["d"].to_pylist() == y.tolist() == expected


def test_times_as_categories_of_frames():
    """A type of categories that are times: polars, pyarrow and pandas, in any unit."""
    expected = sorted(str(one) for one in INSTANTS[:3])
    times = pd.Series(INSTANTS[:3])
    frames = [pd.DataFrame({"d": times.astype(f"datetime64[{u}]").astype("category")})
              for u in ("ms", "us", "ns")]  # fmt: skip
    frames += [
        pa.table({"d": pa.array(INSTANTS[:3], pa.timestamp(u)).dictionary_encode()})
        for u in ("ms", "us", "ns")
    ]
    for frame in frames:
        assert sorted(fit_columns(frame).categories[0].tolist()) == expected


# ------------------------------------------------------------------------------- record batches
def test_a_record_batch_is_a_table():
    y = list("nnnnpppp")
    table = pa.table({"flag": [True] * 4 + [False] * 4, "k": range(8)})
    batch = table.to_batches()[0]
    tree = DecisionTreeClassifier().fit(batch, y)
    assert tree.feature_names_in_.tolist() == table.column_names
    assert tree.columns_.nominal.tolist() == fit_columns(table).nominal.tolist() == [True, False]
    assert tree.predict(batch).tolist() == y
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        tree.predict(table.select(["k", "flag"]).to_batches()[0])


# ------------------------------------------------------------------------- columns without a value
NOTHING = {
    "object": pd.DataFrame({"a": pd.Series([None] * 4, dtype=object)}),
    "string": pd.DataFrame({"a": pd.Series([None] * 4, dtype="string")}),
    "null": pa.table({"a": pa.nulls(4)}),
    "polars": pl.DataFrame({"a": [None] * 4}),
    "array": np.array([[None]] * 4, object),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_is_unknown_stays_unknown(name):
    """Text and numbers are categories that were not met, as for the type of text."""
    columns = fit_columns(NOTHING[name])
    assert [words.tolist() for words in columns.categories] == [[]]
    for later in (["call back", None], [2.5, None]):
        frame = pd.DataFrame({"a": pd.Series(later, dtype=object)})
        codes = columns.encode(frame if name != "array" else frame.to_numpy())[:, 0]
        assert codes[0] == -1
        assert np.isnan(codes[1])
    np.testing.assert_array_equal(columns.encode(NOTHING[name])[:, 0], [np.nan] * 4)


def test_numbers_by_type_stay_numbers():
    columns = fit_columns(pd.DataFrame({"a": [np.nan] * 4}))
    assert not columns.nominal[0]
    known = fit_columns(pd.DataFrame({"a": [1.0, 2.0]}))
    np.testing.assert_array_equal(known.encode(NOTHING["null"])[:, 0], [np.nan] * 4)


def test_batches_that_know_a_column_decide():
    merged = MergedColumns(["a"])
    merged.add(fit_columns(NOTHING["null"]), np.array([True]))
    merged.add(fit_columns(pa.table({"a": [1.5, 2.0]})), np.array([False]))
    assert merged.columns().nominal.tolist() == [False]


def test_a_fold_may_lack_the_words():
    from sklearn.model_selection import KFold, cross_val_score

    note = pd.Series([None] * 10 + ["call back", "moved"], dtype=object)
    X = pd.DataFrame({"a": np.arange(12.0), "note": note})
    y = np.array(["n", "p"] * 6)
    scores = [
        cross_val_score(DecisionTreeClassifier(), frame, y, cv=KFold(3))
        for frame in (X, X.astype({"note": "string"}))
    ]
    assert np.isfinite(scores[0]).all()
    np.testing.assert_array_equal(*scores)


# ------------------------------------------------------------------------------ no value at all
def test_a_csv_column_without_a_value_is_unknown_in_batches(tmp_path):
    """Text in it later is no error, as in one table, and no file says that it holds numbers."""
    for name, rows in {"a": ",1,n\n,2,p\n", "b": ",3,n\n,4,p\n"}.items():
        (tmp_path / f"{name}.csv").write_text("void,x,y\n" + rows)
    batches = open_batches(tmp_path, target="y")
    table = CodedTable.from_batches(batches)
    tree = DecisionTreeClassifier().fit(table, table.target)
    whole = DecisionTreeClassifier().fit(pa.concat_tables(X for X, _ in batches), table.target)
    for fitted in (tree, whole):
        assert fitted.columns_.nominal.tolist() == [True, False]
        assert fitted.columns_.categories[0].tolist() == []
        later = pa.table({"void": ["text", None], "x": [1, 4]})
        assert fitted.predict(later).tolist() == ["n", "p"]


def test_a_csv_column_with_numbers_further_down_is_numeric(tmp_path):
    (tmp_path / "a.csv").write_text("void,x,y\n,1,n\n,2,p\n")
    (tmp_path / "b.csv").write_text("void,x,y\n7,3,n\n8,4,p\n")
    table = CodedTable.from_batches(open_batches(tmp_path, target="y"))
    assert DecisionTreeClassifier().fit(table, table.target).columns_.nominal.tolist() == [0, 0]
