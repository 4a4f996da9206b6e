"""The textbook tables have their textbook values; readers take good files and refuse bad ones."""

import gzip
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gputree import datasets
from gputree.columns import fit_encode
from gputree.datasets import ReadingWarning, infer_task, read_table

# -------------------------------------------------------------- textbook


TABLES = {
    "fish": (datasets.load_fish, (5, 2)),
    "loan": (datasets.load_loan, (15, 4)),
    "watermelon": (datasets.load_watermelon, (17, 6)),
    "watermelon 2.0 alpha": (partial(datasets.load_watermelon, version="2.0 alpha"), (17, 6)),
    "watermelon 3.0": (partial(datasets.load_watermelon, version="3.0"), (17, 8)),
    "golf": (datasets.load_golf, (14, 4)),
    "contact_lenses": (datasets.load_contact_lenses, (24, 4)),
    "iris": (datasets.load_iris, (150, 4)),
    "auto_mpg": (datasets.load_auto_mpg, (398, 7)),
}


@pytest.mark.parametrize(("load", "shape"), TABLES.values(), ids=TABLES)
def test_shape_and_fields(load, shape):
    table = load()
    assert table.data.shape == shape
    assert table.target.shape == shape[:1]
    assert len(table.feature_names) == shape[1]
    assert table.target_name not in table.feature_names
    assert str(shape[0]) in table.DESCR
    X, y = load(return_X_y=True)
    np.testing.assert_array_equal(X, table.data)
    np.testing.assert_array_equal(y, table.target)


@pytest.mark.parametrize(("load", "shape"), TABLES.values(), ids=TABLES)
def test_the_reader_reads_the_same_table(load, shape):
    table = load()
    read = read_table(table.filename, table.target_name)
    assert read.names == table.feature_names
    np.testing.assert_array_equal(read.target.astype(table.target.dtype), table.target)
    expected = table.data if table.data.dtype != object else fit_encode(table.data)[1]
    np.testing.assert_array_equal(fit_encode(read.columns)[1], expected)


def test_versions_of_watermelons_differ_as_in_the_book():
    first, holes, numbers = (
        datasets.load_watermelon(version=version) for version in ("2.0", "2.0 alpha", "3.0")
    )
    np.testing.assert_array_equal(numbers.data[:, :6], first.data)
    assert {type(cell) for cell in numbers.data[:, 6:].ravel()} == {float}
    missing = np.equal(holes.data, None)
    assert missing.sum() == 13
    assert (holes.data[~missing] == first.data[~missing]).all()
    for table in (holes, numbers):
        np.testing.assert_array_equal(table.target, first.target)
    message = "'version' parameter of load_watermelon must be .*'3.0'}. Got 3.0 instead"
    with pytest.raises(ValueError, match=message):
        datasets.load_watermelon(version=3.0)


def test_contact_lenses_are_all_combinations():
    lenses = datasets.load_contact_lenses()
    assert len({tuple(row) for row in lenses.data}) == 24
    labels, counts = np.unique(lenses.target, return_counts=True)
    assert dict(zip(labels, counts, strict=True)) == {"hard": 4, "none": 15, "soft": 5}


def test_iris_is_fishers():
    from sklearn.datasets import load_iris

    ours, theirs = datasets.load_iris(), load_iris()
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.target, theirs.target_names[theirs.target])


def test_auto_mpg():
    cars = datasets.load_auto_mpg()
    missing = np.isnan(cars.data).sum(axis=0)
    assert dict(zip(cars.feature_names, missing, strict=True))["horsepower"] == 6
    assert missing.sum() == 6
    assert infer_task(cars.target) == "regression"


# --------------------------------------------------------------- reading
def test_csv(write):
    table = read_table(write("a,b,y\n1,2.5,yes\n,0.25,no\n"), "y")
    assert table.names == ["a", "b"]
    assert table.n_rows == 2
    assert table.target.tolist() == ["yes", "no"]
    assert table.columns.to_pydict() == {"a": [1, None], "b": [2.5, 0.25]}


def test_variants_of_csv(write):
    plain = "a,y\n1,x\n2,z\n"
    paths = [
        write(plain),
        write(plain.replace(",", "\t"), "data.tsv"),
        write(gzip.compress(plain.encode()), "data.csv.gz"),
        write("\ufeff" + plain, "bom.CSV"),
        write(plain.replace("\n", "\r\n"), "dos.csv"),
    ]
    for path in paths:
        table = read_table(path, "y")
        assert table.names == ["a"]
        assert table.target.tolist() == ["x", "z"]


def test_parquet(tmp_path):
    columns = {
        "f32": pa.array([0.1, None], pa.float32()),
        "small": pa.array([1, None], pa.int8()),
        "flag": pa.array([True, None]),
        "money": pa.array([Decimal("1.5"), None]),
        "none": pa.nulls(2),
        "y": pa.array(["b", "a"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet", "y")
    assert table.target.tolist() == ["b", "a"]
    assert table.columns.equals(pa.table(columns).drop_columns("y"))


def test_a_column_may_become_fractional_late(write):
    rows = f"1,{'x' * 60}\n" * 25_000 + "0.5,x\n"  # beyond the first block the parser sees
    assert read_table(write("a,y\n" + rows), "y").columns["a"][-1].as_py() == 0.5


def test_missing_values_of_text_and_numbers(write):
    with pytest.warns(ReadingWarning, match="'NA' is a category like others in 's'"):
        table = read_table(write("n,s,y\nNA,NA,1\n2,,2\n3,x,1\n"), "y")
    assert table.columns["n"].to_pylist() == [None, 2, 3]
    assert table.columns["s"].to_pylist() == ["NA", None, "x"]


def test_columns_are_taken_by_name(write):
    path = write("text,b,a,y\nq,1,2,0\nq,3,4,1\n")
    table = read_table(path, "y", columns=["a", "b"])
    assert table.columns.to_pydict() == {"a": [2, 4], "b": [1, 3]}
    assert read_table(path, "y", ignore=["text"]).names == ["b", "a"]
    assert read_table(path).names == ["text", "b", "a", "y"]
    assert read_table(path).target is None


def test_text_stays_text(write):
    path = write("zip,truth,n,y\n01234,true,1,0\n,false,2,1\n")
    table = read_table(path, "y", text=["zip", "truth", "absent"])
    assert table.columns.to_pydict() == {
        "zip": ["01234", None],
        "truth": ["true", "false"],
        "n": [1, 2],
    }


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "0"], np.array([1, 0])),
        (["1.5", "2"], np.array([1.5, 2])),
        (["true", "false"], np.array([True, False])),
        (["a", "None"], np.array(["a", "None"])),
        (["2024-01-31", "2024-02-01"], np.array(["2024-01-31", "2024-02-01"])),
    ],
)
def test_types_of_the_target(write, cells, expected):
    target = read_table(write("a,y\n" + "".join(f"1,{cell}\n" for cell in cells)), "y").target
    assert target.dtype.kind == expected.dtype.kind
    np.testing.assert_array_equal(target, expected)


# ---------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("", {}, "is empty"),
        ("a,y\n", {}, "has a header but no rows"),
        ("a,a,y\n1,2,3\n", {}, "columns of the same name: 'a'"),
        ("Sales,,\nx,a,y\n1,2,3\n", {}, "same name: ''. If the first row is a title, remove it"),
        ("0.5,a,b\n1,2,3\n", {}, "'a', 'b'. If these are values, add has_header=False"),
        ("a,b\n1,2\n", {}, r"has no column 'y'\. Its columns are: 'a', 'b'"),
        ("a,y\n1,2\n", {"columns": ["b", "c"]}, "has no columns 'b', 'c'"),
        ("a,y\n1,2\n", {"ignore": ["b"]}, "has no column 'b'"),
        ("a,y\n1,2\n", {"ignore": ["a"]}, "no feature columns"),
        ("a,y\n1,2\n", {"columns": []}, "no feature columns"),
        ("a,y\n1,2\n", {"columns": ["a", "a"]}, "'a' is listed twice"),
        ("a,y\n1,2\n", {"columns": ["a", "y"]}, "cannot also be a feature"),
        ("y\n1\n", {}, "no feature columns"),
        ("a,y\n1,2,3\n", {}, "line 2: expected 2 cells, as the first row has, got 3: '1,2,3'"),
        ("a,y\n1,\n2,x\n3,\n", {}, "'y' of .* has no value in 2 rows. Remove them"),
        ("a,y\n1,\n2,1.5\n", {}, "has no value in 1 row. Remove it"),
        ("a,y\n1,inf\n2,1.5\n", {}, "target column 'y' .* holds infinite"),
        ("é,y\n1,1\n".encode("latin-1"), {}, r"t\.csv is not UTF-8 text, as it must be"),
        ("a,y\né,1\n".encode("latin-1"), {}, r"t\.csv is not UTF-8 .* see 'a'"),
        ("a,y\n1,é\n".encode("latin-1"), {}, r"t\.csv is not UTF-8 .* see 'y'"),
        (
            "a;b;y\n1;2\n",
            {},
            "line 2: expected 3 cells, as the first row has, got 2: '1;2'. Its last",
        ),
        ("\n \n", {}, "is empty"),
        ("a,y\n1,2\n".encode("utf-16"), {}, "it is UTF-16 text; pass its encoding"),
        (b"PK\x03\x04....", {}, "a ZIP archive, whose name must end in .zip, or a spreadsheet"),
        (gzip.compress(b"a,y\n1,2\n", mtime=0), {}, "t.csv"),
    ],
)
def test_bad_files(write, content, arguments, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(content), "y", **arguments)


@pytest.mark.parametrize("name", ["data.parquet", "data.csv.gz"])
def test_damaged_files(write, name):
    with pytest.raises(ValueError, match=f"Cannot read .*{name}"):
        read_table(write("not of this format", name), "y")


@pytest.mark.parametrize("path", [None, 3, ["a.csv"]])
def test_what_is_no_path(path):
    with pytest.raises(TypeError, match="The name of a table must be a str or path-like, got"):
        read_table(path, "y")


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_table(tmp_path / "absent.csv", "y")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_table(tmp_path / "absent", "y")


def test_unknown_format(write):
    with pytest.raises(ValueError, match=r"Cannot infer the format of .*data\.xls"):
        read_table(write("a,y\n1,2\n", "data.xls"), "y")


# ------------------------------------------------------------------ task
@pytest.mark.parametrize(
    ("target", "task"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        (np.array(["a", "b"], dtype=object), "classification"),
        ([0, 1, 0, 1], "classification"),
        ([1.0, 2.0, 1.0, 2.0], "classification"),
        ([0, 1, 0], "classification"),
        ([1, 2, 1], "regression"),
        ([0.5, 1.0, 0.5, 1.0], "regression"),
        (np.repeat(np.arange(20), 2), "classification"),
        (np.repeat(np.arange(21), 2), "regression"),
        ([1871, 1930, 2004], "regression"),
    ],
)
def test_infer_task(target, task):
    assert infer_task(np.asarray(target)) == task
