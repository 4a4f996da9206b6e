"""Guesses about a file are warnings, and ordinary files have none."""

import json
import lzma
import warnings
import zipfile

import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gputree.datasets import FileFormat, ReadingWarning, open_batches, read_batches, read_table
from gputree.datasets.first_rows import header_is_row


def rows(*columns):
    return "".join(",".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))


def guessed(read, *arguments, **options):
    """The guesses of a reader, without the name of the file."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        table = read(*arguments, **options)
    assert all(one.category is ReadingWarning for one in found)
    return table, [str(one.message).partition(": ")[2] for one in found]


def batches(*arguments, **options):
    return pa.concat_tables([X for X, _ in open_batches(*arguments, **options)])


N = list(range(3, 63))
Y = ["p" if n > 30 else "n" for n in N]


# ------------------------------------------------------------------------------------- header
@pytest.mark.parametrize(
    ("names", "body", "expected"),
    [
        (["5.1", "3.5", "a"], [["4.9", "3.0", "b"]], True),
        (["-1", "a"], [["4", "b"]], True),
        (["1", "1", "a"], [["4", "2", "b"]], True),
        (["0", "1", "2"], [["4.9", "3.0", "7"]], False),  # columns that are counted
        (["city", "2019", "2020"], [["x", "3", "4"]], False),  # years
        (["a", "b"], [["1", "2"]], False),
        (["x", "o"], [["o", "x"], ["x", "o"]], True),  # words of the same columns
        (["x", "o"], [["x", "x"], ["x", "x"]], False),
        (["a", "1.5"], [["x", "y"]], False),  # a number that names text
        (["1", "a"], [], False),
    ],
)
def test_headers_that_are_rows(names, body, expected):
    assert header_is_row(names, body) == expected


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_a_header_that_is_a_row(write, delimiter):
    path = write("5.1,3.5,a\n4.9,3.0,b\n4.7,3.2,a\n".replace(",", delimiter))
    for read in (read_table, batches):
        _, (said,) = guessed(read, path, "a")
        assert said.startswith("the header looks like a row of values: 5.1, 3.5, a. If it is one")
        assert "FileFormat(has_header=False)" in said
    form = FileFormat(has_header=False)
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        table, said = guessed(read, path, "V3", file_format=form)
        assert (table.column_names, table.num_rows, said) == (["V1", "V2"], 3, [])
    table = read_table(path, "y", file_format=FileFormat(names=["x", "z", "y"]))
    assert table.columns["x"].to_pylist() == [5.1, 4.9, 4.7]
    with pytest.raises(ValueError, match="has 3 columns, and 2 names were given"):
        read_table(path, "y", file_format=FileFormat(names=["x", "y"]))


def test_words_twice_in_a_header_that_is_a_row(write):
    with pytest.raises(ValueError, match=r"same name: 'x'. If these are values, add has_header"):
        read_table(write("x,x,y\nx,o,z\no,x,y\nx,x,y\n"), "y")


# ---------------------------------------------------------------------------------- row names
@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
@pytest.mark.parametrize("place", [0, 1])
def test_row_names_without_a_name_are_left_out(write, name, place):
    columns = [[k % 7 for k in N], Y]
    columns.insert(place, [f"r{n}" for n in N])
    names = ["x", "y"]
    names.insert(place, name)
    path = write(",".join(names) + "\n" + rows(*columns))
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        table, (said,) = guessed(read, path, "y")
        assert table.column_names == ["x"]
        assert f"column {name!r} holds row names" in said
    assert read_table(path, "y", ignore=[name]).left_out == (name,)
    assert guessed(read_table, path, "y", columns=[name, "x"])[0].names == [name, "x"]


def test_a_column_without_a_name_and_without_values_is_left_out(write, monkeypatch):
    path = write("x,y,\n" + rows([k % 7 for k in N], Y, [""] * 60))
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        table, (said,) = guessed(read, path, "y")
        assert table.column_names == ["x"]
        assert said.startswith("column '' holds no values, and its heading is no name, and is left")
    monkeypatch.setattr("gputree.datasets.csv_head.HEAD_BYTES", 64)
    path = write("x,y,\n" + rows([k % 7 for k in N], Y, [""] * 58 + [7, 7]))
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        assert guessed(read, path, "y")[0].column_names == ["x", ""]


def test_a_column_without_a_name_that_repeats_is_no_index(write):
    table, (said,) = guessed(read_table, write(",y\n1,a\n1,b\n2,a\n"), "y")
    assert table.names == [""]
    assert "has no name. To leave it out add ignore=['']" in said


@pytest.mark.parametrize(("name", "count"), [("Id", 20), ("row_id", 20), ("anything", 120)])
def test_columns_that_count_the_rows(write, name, count):
    numbers = list(range(1, count + 1))
    path = write(
        f"x,{name},y\n" + rows([k % 7 for k in numbers], numbers, [k % 2 for k in numbers])
    )
    for read in (read_table, batches):
        _, (said,) = guessed(read, path, "y")
        assert said.startswith(f"column {name!r} counts the rows from 1 to {count}. To leave it")
    assert guessed(read_table, path, "y", numeric=[name])[1] == []


def test_numbers_that_ascend_are_features(write):
    numbers = list(range(1, 20))
    assert guessed(read_table, write("x,y\n" + rows(numbers, numbers)), "y")[1] == []
    assert guessed(read_table, write("id,y\n" + rows(numbers[::-1], numbers)), "y")[1] == []


def test_the_index_of_a_shuffled_frame(tmp_path):
    frame = pd.DataFrame({"x": range(20), "y": list("ab") * 10}).sample(frac=1, random_state=0)
    for name in (None, "key"):
        path = tmp_path / f"{name}.parquet"
        frame.rename_axis(name).to_parquet(path)
        for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
            table, (said,) = guessed(read, path, "y")
            assert table.column_names == ["x"]
            assert "holds the index of pandas, and is left out" in said
    assert read_table(path, "key", columns=["x"]).target.size == 20
    damaged = pa.table({"x": [1, 2]}).replace_schema_metadata({"pandas": json.dumps([1])})
    parquet.write_table(damaged, path)
    assert read_table(path).names == ["x"]


# -------------------------------------------------------------------------------- texts, numbers
@pytest.mark.parametrize("word", ["x", "-", ".", "n.d.", "12.5%", "$1.25", "1.234,50"])
def test_a_text_among_numbers(write, word):
    _, (said,) = guessed(read_table, write("a,y\n" + rows(N, Y) + f'"{word}",p\n'), "y")
    assert said.startswith(f"column 'a' holds 60 numbers and 1 text ({word!r}), and is taken for")
    assert f"add missing=[{word!r}]; numeric=['a'] makes an error of it" in said


@pytest.mark.parametrize("word", ["null", "N/A", "#N/A", "NULL"])
def test_other_spellings_of_missing_numbers(write, word):
    path = write("a,y\n" + rows(N, Y) + f"{word},p\n")
    table, (said,) = guessed(read_table, path, "y")
    assert table.columns["a"].to_pylist() == [*N, None]
    assert table.columns["a"].type == pa.int64()
    assert f"column 'a' holds numbers and {word!r} in 1 cell, which is taken as missing" in said
    again, none = guessed(read_table, path, "y", missing=[word])
    assert again.columns.equals(table.columns)
    assert none == []


def test_missing_numbers_of_r_and_pandas_are_no_guess(write):
    path = write("a,b,y\n" + rows(N, N, Y) + "NA,nan,p\n,NaN,n\n")
    assert guessed(read_table, path, "y")[1] == []


def test_thousands_that_are_read_as_decimals(write):
    path = write("preis;y\n50;b\n950;b\n1.000;t\n1.050;t\n")
    for read in (read_table, batches):
        _, (said,) = guessed(read, path, "y")
        assert "column 'preis' holds numbers with points before three digits, such as 1.000" in said
    numbers = {".": [50.0, 950.0, 1.0, 1.05], None: [50.0, 950.0, 1000.0, 1050.0]}
    for form, expected in (
        (FileFormat(decimal="."), numbers["."]),
        (FileFormat(thousands="."), numbers[None]),
    ):
        for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
            table, said = guessed(read, path, "y", file_format=form)
            assert table["preis"].to_pylist() == expected
            assert said == []


@pytest.mark.parametrize("body", ["0.125;a\n1.250;b\n", "1.5;a\n1.250;b\n", "1250;a\n1.250;b\n"])
def test_decimals_are_no_thousands(write, body):
    assert guessed(read_table, write("a;y\n" + body), "y")[1] == []


def test_commas_behind_a_zero_are_decimal(write):
    path = write('a,y\n"0,044",p\n"1,288",q\n"-0,119",p\n')
    table, (said,) = guessed(read_table, path, "y")
    assert said.startswith("column 'a' holds numbers with commas, such as -0,119, and is taken for")
    table, said = guessed(read_table, path, "y", file_format=FileFormat(thousands=","))
    assert table.columns["a"].to_pylist() == ["0,044", "1,288", "-0,119"]


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f"])
def test_blanks_between_thousands(write, blank):
    path = write(f"a,y\n3{blank}744{blank}703,p\n89{blank}606,q\n-7,p\n")
    _, (said,) = guessed(read_table, path, "y")
    assert "blanks before three digits" in said
    assert "FileFormat(thousands=' ')" in said
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        table, said = guessed(read, path, "y", file_format=FileFormat(thousands=" "))
        assert (table["a"].to_pylist(), said) == ([3744703, 89606, -7], [])


def test_units_and_thousands(write):
    path = write('p,c,t,y\n12.5%,$1.25,"1,234.5",a\n3 %,$2,7,b\n,-$3,,a\n')
    _, said = guessed(read_table, path, "y")
    assert [one.partition(",")[0] for one in said][:2] == [
        "column 'p' holds numbers with a unit",
        "column 'c' holds numbers with a unit",
    ]
    form = FileFormat(units=["p", "c"], thousands=",")
    expected = {"p": [12.5, 3.0, None], "c": [1.25, 2.0, -3.0], "t": [1234.5, 7.0, None]}
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        assert guessed(read, path, "y", file_format=form)[0].to_pydict() == expected
    with pytest.raises(ValueError, match=r"must hold numbers with the unit '\$'; it holds '€2'"):
        read_table(write("c,y\n$1,a\n€2,b\n"), "y", file_format=FileFormat(units=["c"]))


def test_markers_of_missing_values_have_no_unit(write):
    path = write("w,y\n-999,a\n3 kg,b\n1.#IND,a\n")
    form = FileFormat(units=["w"])
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        columns = guessed(read, path, "y", missing=["-999"], file_format=form)[0]
        assert columns.select(["w"]).to_pydict() == {"w": [None, 3.0, None]}


def test_negative_numbers_of_typesetters_and_accountants(write):
    path = write("m,p,u,y\n\u22121.5,(1.5),\u22123 kg,a\n2,2,4 kg,b\n")
    form = FileFormat(units=["u"])
    for read in (lambda *one, **how: read_table(*one, **how).columns, batches):
        columns = guessed(read, path, "y", file_format=form)[0]
        assert columns.select(["m", "u"]).to_pydict() == {"m": [-1.5, 2.0], "u": [-3.0, 4.0]}
    _, (parentheses,) = guessed(read_table, path, "y", file_format=form)
    assert parentheses == (
        "column 'p' holds numbers in parentheses, such as (1.5), and is taken for text. If these "
        "are negative, write them with a minus sign to the file"
    )


def test_leading_zeros_and_large_integers(write):
    path = write("zip,month,id,y\n02139,01,9007199254740993,a\n10001,12,7,b\n")
    _, (zeros, large) = guessed(read_table, path, "y")
    assert zeros.startswith("column 'zip' holds integers with leading zeros, such as 02139")
    assert large.startswith("column 'id' holds integers beyond 2**53, such as 9007199254740993")
    assert guessed(read_table, path, "y", categorical=["zip"], numeric=["id"])[1] == []


def test_a_quote_that_is_not_closed(write):
    text = "a,s,y\n1,u,n\n" + '2,"p\n' + "3,u,n\n" * 20 + '","n"\n'
    _, said = guessed(read_table, write(text), "y")
    assert any("column 's' holds a cell of 22 lines" in one for one in said)


# ----------------------------------------------------------------------- one meaning of each cell
HEXADECIMAL = [f"0x{n:02x}" for n in range(16)]


def test_hexadecimal_numbers_however_they_are_read(write):
    path = write("a,y\n" + rows(HEXADECIMAL, Y[:16]))
    whole = read_table(path, "y").columns["a"].to_pylist()
    by_batch = pa.concat_tables(read_batches(path, ["a"], numeric=["a"]))["a"].to_pylist()
    assert whole == by_batch == list(range(16))
    with path.open("rb") as stream:
        streamed = pa.concat_tables(read_batches(stream, ["a"], numeric=["a"]))
    assert streamed["a"].to_pylist() == whole


def test_cells_that_only_later_batches_have(write, monkeypatch):
    """The reader gives up after some batches; none is given twice, and none is lost."""
    from gputree.datasets import delimited

    monkeypatch.setattr(delimited, "BATCH_BYTES", 64)
    cells = [*range(100), "0x10", "true", *range(50)]
    path = write("a,b\n" + rows(cells, [1] * len(cells)))
    found = pa.concat_tables(read_batches(path, ["b", "a"], numeric=["a", "b"]))
    assert found["a"].to_pylist() == [*range(100), 16, 1, *range(50)]
    path = write("a,b\n" + rows([*cells, "x"], [1] * (len(cells) + 1)))
    with pytest.raises(ValueError, match="column 'a' must hold numbers; it holds 'x'"):
        list(read_batches(path, ["a"], numeric=["a"]))


def test_decimal_commas_behind_the_first_rows(write, monkeypatch):
    from gputree.datasets import csv_head

    monkeypatch.setattr(csv_head, "HEAD_BYTES", 64)
    path = write("a;y\n" + "".join(f"{n};p\n" for n in N) + "1,5;n\n")
    assert read_table(path, "y").columns["a"].to_pylist() == [*N, 1.5]
    found = batches(path, "y", file_format=FileFormat(decimal=","))
    assert found["a"].to_pylist() == [*N, 1.5]


# -------------------------------------------------------------------------------------- files
def test_archives_encodings_and_formats(write, tmp_path):
    text = "a,y\n1,é\n2,b\n"
    plain = read_table(write(text), "y")
    (tmp_path / "t.csv.xz").write_bytes(lzma.compress(text.encode()))
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("folder/t.csv", text)
    (tmp_path / "latin.csv").write_bytes(text.encode("latin-1"))
    (tmp_path / "wide.dat").write_bytes(text.encode("utf-16"))
    (tmp_path / "sep.csv").write_text("sep=|\n" + text.replace(",", "|"))
    for name, form in (
        ("t.csv.xz", FileFormat()),
        ("t.zip", FileFormat()),
        ("latin.csv", FileFormat(encoding="latin1")),
        ("wide.dat", FileFormat(format="csv", encoding="utf-16")),
        ("sep.csv", FileFormat()),
    ):
        table = read_table(tmp_path / name, "y", file_format=form)
        assert table.columns.equals(plain.columns)
        assert table.target.tolist() == ["é", "b"]
        (X, y), *rest = open_batches(tmp_path / name, "y", file_format=form)
        assert X["a"].to_pylist() == [1, 2]
        assert (y.tolist(), rest) == (["é", "b"], [])
    with zipfile.ZipFile(tmp_path / "t.zip", "a") as archive:
        archive.writestr("__MACOSX/._t.csv", "what macOS adds")
    assert read_table(tmp_path / "t.zip", "y").n_rows == 2
    with zipfile.ZipFile(tmp_path / "t.zip", "a") as archive:
        archive.writestr("other.csv", text)
    with pytest.raises(ValueError, match=r"must hold one file of text. Got 2 instead"):
        read_table(tmp_path / "t.zip")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"format": "xls"}, "The 'format' of a file must be one of 'csv'"),
        ({"encoding": "rot13"}, "The 'encoding' of a file must be one that Python knows"),
        ({"encoding": "punycode"}, "The 'encoding' of a file must be one that Python knows"),
        ({"encoding": "klingon"}, "The 'encoding' of a file must be one that Python knows"),
        ({"decimal": ";"}, "The 'decimal' of a file must be one of"),
        ({"delimiter": "ab"}, "The 'delimiter' of a file must be one character"),
        ({"thousands": ",", "decimal": ","}, "'decimal' and 'thousands' of a file must differ"),
    ],
)
def test_formats_that_no_file_has(write, form, message):
    with pytest.raises(ValueError, match=message):
        read_table(write("a,y\n1,2\n"), file_format=FileFormat(**form))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,y\n1,2\n1,2,3\n", r"line 3: expected 2 cells, .* got 3: '1,2,3'. A cell that contains"),
        ("a,y\n1,2\n# note\n", "line 3: .*It looks like a comment"),
        ("# note\na,y\n1,2\n", "line 1: '# note' looks like a comment"),
        ("a,y\n1,2\nsum\n", "line 3: .*It looks like a title or a note"),
        ("Report\n\na,y\n1,2\n", "line 3: expected 1 cell, .*the first row, 'Report', is a title"),
        ("a,y\n1,2,\n3,4,\n", "line 2: .*Rows end in ',', and the first does not: add one to it"),
        ("a,y\nr1,1,2\nr2,3,4\n", "line 2: .*The first row lacks a name for the column of row n"),
        ("a,b,y\n1,2\n", "line 2: .*Its last cells are missing"),
        ('a,b,y\n1,"2,n\n' + "1,2,n\n" * 20, "lines 2 to 22: .* a double quote may not be closed"),
        ("a b y\n1 2 n\n", "If blanks separate the cells, .* delimiter=' '"),
        ("a,y\n" + "x" * 5_000_000 + ",n\n", "line 2: a cell of 5,000,000 characters is too long"),
    ],
)
def test_errors_of_the_parser_name_the_line_and_the_cause(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(text), "y")


# ------------------------------------------------------------------------------------- targets
def test_rows_without_a_target_are_dropped(write):
    path = write("a,y\n1,p\n2,NA\n3,\n4,n\n")
    _, (said,) = guessed(read_table, path, "y", missing_target="drop")
    assert "'NA' is a class of the target column 'y', of 1 row" in said
    table = read_table(path, "y", missing=["NA"], missing_target="drop")
    assert table.columns["a"].to_pylist() == [1, 4]
    assert (table.target.tolist(), table.n_dropped) == (["p", "n"], 2)
    files = open_batches(path, "y", missing=["NA"], missing_target="drop")
    ((X, y),) = files
    assert (X["a"].to_pylist(), y.tolist(), files.n_dropped) == ([1, 4], ["p", "n"], 2)
    with pytest.raises(ValueError, match="The 'missing_target' parameter must be 'error' or"):
        read_table(path, "y", missing_target="keep")
    with pytest.raises(ValueError, match="has no value in any row"):
        read_table(write("a,y\n1,\n2,\n"), "y", missing_target="drop")
