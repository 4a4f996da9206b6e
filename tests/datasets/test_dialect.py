"""Separators of cells and of parts of numbers are inferred from the rows, column by column."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree import CodedTable
from gputree.datasets import ReadingWarning, open_batches, read_table
from gputree.datasets.readers import read_batches, read_names


def test_thousands_are_no_decimals(write):
    """1,036 is more than 999, and so is 1.036 where another column has decimal commas."""
    path = write("a;b\n999;x\n1,036;y\n1,073;z\n")
    with pytest.warns(ReadingWarning, match=r"holds numbers with commas before three digits"):
        assert read_table(path).columns["a"].to_pylist() == ["999", "1,036", "1,073"]
    path = write("a;b\n999;1,5\n1.036;2\n1.073;2,25\n")
    with pytest.warns(ReadingWarning, match=r"such as 1\.036, .* add .*\(thousands='\.'\)"):
        assert read_table(path).columns.to_pydict() == {
            "a": ["999", "1.036", "1.073"],
            "b": [1.5, 2.0, 2.25],
        }


@pytest.mark.parametrize(
    ("header", "rows", "names"),
    [
        ("height, cm;weight, kg", ["1,5;2,5", "1,75;2"], ["height, cm", "weight, kg"]),
        ("n;price, EUR", ["20;3,50", "21;4,25"], ["n", "price, EUR"]),
        ("n|a;b", ["1|x;y", "2|z;"], ["n|a", "b"]),  # semicolons before bars
        ("P(A|B),n;m", ["0.5,1", "0.25,2"], ["P(A|B)", "n;m"]),
        ('"a;b",c', ["1,2", "3,4"], ["a;b", "c"]),
    ],
)
def test_headers_that_hold_other_marks(write, header, rows, names):
    """Read marks in the header as text, also where commas split all rows alike."""
    path = write("\n".join([header, *rows]) + "\n")
    assert read_table(path).names == names == read_names(path)


def test_numbers_with_points_beside_decimal_commas_may_be_padded(write):
    path = write("a;b\n 1.5 ;1,5\n2.25;2,5\n  ;3\n")
    assert read_table(path).columns.to_pydict() == {"a": [1.5, 2.25, None], "b": [1.5, 2.5, 3.0]}


def columns_in_batches(path, text=()):
    names = read_names(path)
    numeric = [name for name in names if name not in text]
    return pa.concat_tables(read_batches(path, names, text=text, numeric=numeric))


def test_each_column_tells_its_decimal_mark(write):
    rows = ["1,5;0.5;1.10.2;a", "NA;.25;2.0.1;b", "3;NA;1.2.3;c", "-,5;7;4.5.6;d"]
    path = write("comma;point;version;y\n" + "\n".join(rows) + "\n")
    expected = {"comma": [1.5, None, 3.0, -0.5], "point": [0.5, 0.25, None, 7.0]}
    expected |= {"version": ["1.10.2", "2.0.1", "1.2.3", "4.5.6"], "y": ["a", "b", "c", "d"]}
    for table in (read_table(path).columns, columns_in_batches(path, ["version", "y"])):
        assert table.to_pydict() == expected
    batches = open_batches(path, target="y")
    assert {X.schema.field("point").type for X, _ in batches} == {pa.float64()}


def test_the_decimal_mark_is_told_by_all_rows_of_the_head(write):
    """No cell of the first thousand has one."""
    whole = "".join(f"{i};{i}\n" for i in range(1000))
    path = write(f"a;b\n{whole}1,5;2.5\n")
    for table in (read_table(path).columns, columns_in_batches(path)):
        assert table["a"].to_pylist() == [*range(1000), 1.5]
        assert table["b"].to_pylist() == [*range(1000), 2.5]


@given(st.lists(st.tuples(*[st.floats(-1e9, 1e9)] * 3), min_size=1), st.lists(st.booleans()))
def test_numbers_come_back_whatever_their_marks(rows, commas):
    """A table written with either mark, by column, is that with points."""
    commas = (*commas, False, False, False)[:3]
    lines = [map(written, row, commas) for row in rows]
    stream = io.BytesIO("\n".join(["a;b;c", *map(";".join, lines)]).encode())
    table = read_table(stream).columns
    for j, name in enumerate("abc"):
        assert table[name].to_pylist() == [float(f"{row[j]:.4f}") for row in rows]


def written(x, comma):
    return f"{x:.4f}".replace(".", ",") if comma else f"{x:.4f}"


def test_decimal_commas_in_tsv(write):
    path = write("a\tb;c\ty\n1,5\t1.5\tx\n-2,25\t2.5\ty\n")
    path = path.rename(path.with_suffix(".tsv"))
    expected = {"a": [1.5, -2.25], "b;c": [1.5, 2.5]}
    assert read_table(path, "y").columns.to_pydict() == expected
    assert columns_in_batches(path, text=["y"]).drop(["y"]).to_pydict() == expected
    path.write_text("a\n1,5\n")
    assert read_table(path).columns.to_pydict() == {"a": [1.5]}


# ------------------------------------------------------------------ 007 is no 7 where it is a class
BATCH_BYTES = "gputree.datasets.delimited.BATCH_BYTES"


def in_batches(path, *arguments, **options):
    """Table and target of all batches."""
    tables, targets = zip(*open_batches(path, *arguments, **options), strict=True)
    return pa.concat_tables(tables), np.concatenate(targets)


@pytest.mark.filterwarnings("ignore::gputree.datasets.ReadingWarning")
def test_leading_zeros_are_kept_in_targets_and_categories(write):
    path = write("zip,n,y\n007,007,01\n7,7,1\n07,07,2\n")
    categories = ["zip", "absent"]
    with pytest.warns(ReadingWarning, match="'n' holds integers with leading zeros, such as 007"):
        whole = read_table(path, "y", categorical=categories)
    assert whole.columns.to_pydict() == {"zip": ["007", "7", "07"], "n": [7, 7, 7]}
    assert whole.target.tolist() == ["01", "1", "2"]
    columns, target = in_batches(path, "y", categorical=categories)
    assert columns.to_pydict() == whole.columns.to_pydict()
    assert target.tolist() == whole.target.tolist()
    assert read_table(path, "y", numeric=["y"]).target.tolist() == [1, 1, 2]
    assert in_batches(path, "y", numeric=["y"])[1].tolist() == [1, 1, 2]
    both = read_table(path, "y", categorical=["zip"], numeric=["zip"])
    assert both.columns["zip"].to_pylist() == [7, 7, 7]


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["0", "10", "100"], False),
        (["00", "1"], True),
        (["-07", "1"], True),
        (["0.5", "00.25"], False),  # no integers
        (["250.1", "007"], True),
        (["NA", "07"], True),
        (["0x7", "7"], True),
    ],
)
def test_what_has_leading_zeros(write, cells, kept):
    path = write("a,y\n" + "".join(f"{cell},{k}\n" for k, cell in enumerate(cells)))
    found = read_table(path, "y", categorical=["a"]).columns["a"]
    assert found.type == (pa.string() if kept else read_table(path, "y").columns["a"].type)
    assert not kept or found.to_pylist() == cells
    batched = in_batches(path, "y", categorical=["a"])[0]["a"]
    assert batched.to_pylist() == found.to_pylist()


@given(
    st.lists(
        st.one_of(
            st.integers(-20, 20).map(str),
            st.integers(0, 20).map("{:03}".format),
            st.sampled_from(["1.5", "-0.25", "x", "0"]),
        ),
        min_size=1,
    ),
    st.sampled_from([",", ";", "\t"]),
)
def test_targets_are_those_of_a_naive_reader(tmp_path_factory, cells, delimiter):
    path = tmp_path_factory.mktemp("codes") / ("t.tsv" if delimiter == "\t" else "t.csv")
    path.write_text(f"y{delimiter}a\n" + "".join(f"{cell}{delimiter}0\n" for cell in cells))
    whole = [cell for cell in cells if cell.lstrip("-").isdigit()]
    is_text = "x" in cells or any(str(int(cell)) != cell.replace("-0", "0") for cell in whole)
    expected = cells if is_text else [float(cell) for cell in cells]
    for found in (
        read_table(path, "y").target,
        in_batches(path, "y")[1],
        read_table(io.BytesIO(path.read_bytes()), "y").target if delimiter != "\t" else None,
    ):
        assert found is None or found.tolist() == expected


def test_leading_zeros_further_down_are_told(write, monkeypatch):
    monkeypatch.setattr(BATCH_BYTES, 64)
    rows = "".join(f"{k % 3},{k}\n" for k in range(50))
    path = write("a,y\n" + rows + "01,50\n")
    message = r"t\.csv: column 'a' holds numbers at the beginning, and '01' further down\. .*text="
    with pytest.raises(ValueError, match=message):
        in_batches(path, "y", categorical=["a"])
    assert in_batches(path, "y", categorical=["a"], text=["a"])[0]["a"][-1].as_py() == "01"
    assert in_batches(path, "y", categorical=["a"], numeric=["a"])[0]["a"][-1].as_py() == 1
    assert in_batches(path, "y")[0]["a"][-1].as_py() == 1  # a number like others
    message = r"column 'y' holds integers at the beginning, and {} further down.*{}=\['y'\]"
    for cell, kind in (("0.5", "numeric"), ("x", "text")):
        path = write("a,y\n" + rows + f"1,{cell}\n")
        with pytest.raises(ValueError, match=message.format(repr(cell), kind)):
            in_batches(path, "y")


def test_targets_of_pointed_numbers_beside_decimal_commas(write):
    path = write("a;y\n1,5;1.5\n2,5;2.5\n")
    assert in_batches(path, "y")[1].tolist() == read_table(path, "y").target.tolist() == [1.5, 2.5]
    path = write("a;y\n1,5;1,5\n2,5;2,5\n")
    assert in_batches(path, "y")[1].tolist() == read_table(path, "y").target.tolist() == [1.5, 2.5]


TIMES = {"a": ["10:30", "09:30"], "b": ["2001-02-03", "2001-02-04"], "c": ["2001-02-03 10", ""]}


def test_dates_and_times_are_categories_where_asked_for(write, tmp_path):
    rows = "".join(",".join(row) + ",x\n" for row in zip(*TIMES.values(), strict=True))
    path = write("a,b,c,y\n" + rows)
    expected = TIMES | {"c": ["2001-02-03 10", None]}
    assert read_table(path, "y", categorical=[*TIMES]).columns.to_pydict() == expected
    assert in_batches(path, "y", categorical=[*TIMES])[0].to_pydict() == expected
    table = CodedTable.from_batches(open_batches(path, "y", categorical=[*TIMES]))
    assert table._table.columns.nominal.all()
    days = pa.array(TIMES["b"]).cast(pa.date32())
    pq.write_table(pa.table({"b": days, "y": ["x", "y"]}), tmp_path / "t.parquet")
    for read in (read_table, lambda *a, **b: open_batches(*a, **b)):
        found = read(tmp_path / "t.parquet", "y", categorical=["b"])
        columns = next(iter(found))[0] if read is not read_table else found.columns
        assert columns["b"].to_pylist() == TIMES["b"]
    path = write("@relation r\n@attribute b date\n@attribute y {x}\n@data\n2001,x\n", "t.arff")
    assert read_table(path, "y", categorical=["b"]).columns["b"].to_pylist() == ["2001"]
    assert pa.types.is_timestamp(read_table(path, "y").columns["b"].type)


def test_text_of_another_encoding_is_named_in_a_target(write):
    path = write("", "l.csv")
    path.write_bytes("a,y\n1,\u00e9\n".encode("latin-1"))
    for read in (read_table, open_batches):
        with pytest.raises(ValueError, match=r"is not UTF-8 text, as it must be: see 'y'"):
            read(path, "y")
