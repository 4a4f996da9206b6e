"""What separates cells and the parts of numbers is told by the rows, column by column."""

import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree.datasets import open_batches, read_table
from gputree.datasets.readers import read_batches, read_names


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        path = tmp_path / "t.csv"
        path.write_text(text)
        return path

    return write_file


def test_thousands_are_no_decimals(write):
    """1,036 is more than 999, and so is 1.036 where another column has decimal commas."""
    path = write("a;b\n999;x\n1,036;y\n1,073;z\n")
    assert read_table(path).columns["a"].to_pylist() == ["999", "1,036", "1,073"]
    path = write("a;b\n999;1,5\n1.036;2\n1.073;2,25\n")
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
    """As when commas part all rows alike, too: they do so within the cells."""
    path = write("\n".join([header, *rows]) + "\n")
    assert read_table(path).names == names == read_names(path)


def in_batches(path, text=(), missing=()):
    names = read_names(path)
    numeric = [name for name in names if name not in text]
    batches = read_batches(path, names, text=text, numeric=numeric, missing=missing)
    return pa.concat_tables(batches)


def test_each_column_tells_its_decimal_mark(write):
    rows = ["1,5;0.5;1.10.2;a", "NA;.25;2.0.1;b", "3;NA;1.2.3;c", "-,5;7;4.5.6;d"]
    path = write("comma;point;version;y\n" + "\n".join(rows) + "\n")
    expected = {"comma": [1.5, None, 3.0, -0.5], "point": [0.5, 0.25, None, 7.0]}
    expected |= {"version": ["1.10.2", "2.0.1", "1.2.3", "4.5.6"], "y": ["a", "b", "c", "d"]}
    for table in (read_table(path).columns, in_batches(path, ["version", "y"])):
        assert table.to_pydict() == expected
    batches = open_batches(path, target="y")
    assert {X.schema.field("point").type for X, _ in batches} == {pa.float64()}


def test_the_decimal_mark_is_told_by_all_rows_of_the_head(write):
    """No cell of the first thousand has one."""
    whole = "".join(f"{i};{i}\n" for i in range(1000))
    path = write(f"a;b\n{whole}1,5;2.5\n")
    for table in (read_table(path).columns, in_batches(path)):
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
    assert in_batches(path, text=["y"]).drop(["y"]).to_pydict() == expected
    path.write_text("a\n1,5\n")  # one column, which nothing parts
    assert read_table(path).columns.to_pydict() == {"a": ["1,5"]}
