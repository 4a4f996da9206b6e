"""Integers beyond 2**53 keep their identity: as categories, labels and ids, in every reader.

The oracles are Python's integers, pandas, polars and pyarrow.
"""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from databases import in_sqlite
from table_files import write_table

from gputree import (
    C45Classifier,
    DecisionTreeClassifier,
    export_json,
    export_text,
    load_model,
    read_json,
    save_model,
)
from gputree.columns import fit_columns
from gputree.columns.merging import MergedColumns
from gputree.datasets import open_batches, read_table
from gputree.estimators.coded_table import CodedTable
from gputree.export import (
    explain,
    export_graphviz,
    export_html,
    export_python,
    export_sql,
    path_rules,
    to_dict,
    to_onnx,
)
from gputree.inputs.labels import BatchTargets, exact_labels

BASE = 2**60
IDS = [BASE + i % 3 for i in range(12)]
LONG = [2**70 + i % 3 for i in range(12)]  # of more than 64 bits


def with_missing(values):
    return [None, *values[1:]]


FRAMES = {
    "pandas, nullable": lambda ids: pd.DataFrame({"id": pd.array(ids, "Int64")}),
    "pandas, pyarrow": lambda ids: pd.DataFrame({"id": pd.array(ids, "int64[pyarrow]")}),
    "pandas, objects": lambda ids: pd.DataFrame({"id": pd.Series(ids, dtype=object)}),
    "pandas, categories": lambda ids: pd.DataFrame({"id": pd.Categorical(ids)}),
    "polars": lambda ids: pl.DataFrame({"id": ids}),
    "polars, unsigned": lambda ids: pl.DataFrame({"id": pl.Series(ids, dtype=pl.UInt64)}),
    "pyarrow": lambda ids: pa.table({"id": pa.array(ids, pa.int64())}),
    "pyarrow, chunks": lambda ids: pa.table(
        {"id": pa.chunked_array([pa.array(ids[:5], pa.uint64()), pa.array(ids[5:], pa.uint64())])}
    ),
    "pyarrow, dictionary": lambda ids: pa.table({"id": pa.array(ids).dictionary_encode()}),
    "pyarrow, decimals": lambda ids: pa.table(
        {"id": pa.array([None if i is None else Decimal(i) for i in ids])}
    ),
    "NumPy, objects": lambda ids: np.array([[i] for i in ids], object),
}


def codes_of(X, **more):
    """Categories, and the category of each cell as a Python integer, None where missing."""
    columns = fit_columns(X, [0], **more)
    words = [int(word) for word in columns.categories[0].tolist()]
    codes = columns.encode(X)[:, 0]
    return sorted(words), [None if np.isnan(code) else words[int(code)] for code in codes]


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("ids", [IDS, with_missing(IDS)], ids=["whole", "one missing"])
def test_categories_of_frames(name, ids):
    assert codes_of(FRAMES[name](ids)) == (sorted(set(IDS)), ids)


@pytest.mark.parametrize("name", ["pandas, objects", "NumPy, objects", "pyarrow, decimals"])
@pytest.mark.parametrize("ids", [LONG, with_missing(LONG)], ids=["whole", "one missing"])
def test_categories_of_more_than_64_bits(name, ids):
    assert codes_of(FRAMES[name](ids)) == (sorted(set(LONG)), ids)


def test_large_integers_among_fractions():
    tree = DecisionTreeClassifier(categorical_features=[0])
    tree.fit([[BASE, 0.5], [BASE + 1, 0.5]] * 4, ["n", "p"] * 4)  # of a list NumPy makes floats
    assert tree.columns_.categories[0].tolist() == [BASE, BASE + 1]
    cells = [0.5, BASE, BASE + 1, None, 0.5]
    columns = fit_columns(pd.DataFrame({"a": pd.Series(cells, dtype=object)}), ["a"])
    assert columns.categories[0].tolist() == [0.5, BASE, BASE + 1]


def test_a_cell_is_found_whatever_its_type():
    known = fit_columns(np.array([[BASE], [BASE + 1], [5]]), [0])
    for values, found in {
        (BASE + 1, 5, BASE + 2, None): [2, 0, -1, np.nan],
        (BASE + 1, 5, BASE + 2): [2, 0, -1],
    }.items():
        for name in ("pandas, nullable", "polars, unsigned", "pyarrow, decimals", "NumPy, objects"):
            got = known.encode(FRAMES[name](list(values)))[:, 0]
            np.testing.assert_array_equal(got, np.array(found, np.float32), name)
    # as floats they are other numbers, unless they are the same number
    assert known.encode(np.array([[float(BASE)], [5.0]]))[:, 0].tolist() == [1, 0]
    floats = fit_columns(np.array([[float(BASE)], [5.0]]), [0])
    got = floats.encode(np.array([[BASE], [BASE + 1], [5]]))[:, 0]
    assert got.tolist() == [1, -1, 0]


def test_numeric_columns_are_floats_as_before():
    ids = pd.DataFrame({"id": pd.array(with_missing(IDS), "Int64")})
    columns = fit_columns(ids)
    assert not columns.nominal[0]
    np.testing.assert_array_equal(
        columns.encode(ids)[:, 0], ids["id"].to_numpy(float, na_value=np.nan)
    )


def test_categories_of_batches():
    """Integers in one batch, floats with missing cells or decimals in others."""
    merged = MergedColumns(["id"])
    for part in (
        pd.DataFrame({"id": pd.array([BASE + 1, None], "Int64")}),
        pd.DataFrame({"id": pd.array([7, None], "Int64")}),
        pd.DataFrame({"id": np.array([BASE, 2**63], np.uint64)}),
    ):
        merged.add(fit_columns(part, [0]), np.array([False]))
    assert merged.columns().categories[0].tolist() == [7, BASE, BASE + 1, 2**63]
    merged.add(fit_columns(np.array([[2**80], [0.5]], object), [0]), np.array([False]))
    assert merged.columns().categories[0].tolist() == [0.5, 7, BASE, BASE + 1, 2**63, 2**80]


# ------------------------------------------------------------------------------ labels
@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(IDS, dtype="Int64"),
        pd.Series(IDS, dtype="int64[pyarrow]"),
        pd.array(IDS, "UInt64"),
        pd.Series(IDS, dtype=object),
        pl.Series(IDS),
        pa.chunked_array([IDS[:5], IDS[5:]]),
        pa.array(IDS),
        IDS,
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_labels(labels):
    found = np.asarray(exact_labels(labels))
    assert found.dtype.kind in "iu"
    assert found.tolist() == IDS


def test_booleans_and_small_numbers_keep_their_type():
    assert exact_labels(pd.Series([True, False], dtype="boolean")).tolist() == [True, False]
    assert exact_labels(pd.Series([True, False], dtype="boolean")).dtype == bool
    assert exact_labels(pd.Series([1, 2], dtype="Int8")).dtype == np.int8
    text = pd.Series(["a", "b"])
    assert exact_labels(text) is text
    for missing in (pd.Series([1, None], dtype="Int64"), pa.array([1, None])):
        with pytest.raises(ValueError, match="Input y contains 1 missing value"):
            exact_labels(missing)


@pytest.fixture(scope="module")
def fitted():
    """A tree of each kind whose categories and labels are large, with a missing cell."""
    X = pd.DataFrame({"id": pd.array(with_missing(IDS), "Int64")})
    y = pd.Series([2**62 + i % 3 for i in range(12)], dtype="Int64")
    kinds = (DecisionTreeClassifier, C45Classifier)
    return [kind(categorical_features=["id"]).fit(X, y) for kind in kinds]


NEW = pd.DataFrame({"id": pd.array([BASE, BASE + 1, BASE + 2], "Int64")})
ANSWERS = [2**62, 2**62 + 1, 2**62 + 2]


def test_estimators(fitted):
    for model in fitted:
        assert model.classes_.tolist() == ANSWERS
        assert model.predict(NEW).tolist() == ANSWERS
        assert model.score(NEW, pd.Series(ANSWERS, dtype="Int64")) == 1.0
        assert model.score(NEW, pl.Series([a + 1 for a in ANSWERS])) == 0.0


def test_files(fitted, tmp_path):
    for model in fitted:
        save_model(model, tmp_path / "m.gputree")
        for again in (load_model(tmp_path / "m.gputree"), read_json(export_json(model))):
            assert again.predict(NEW).tolist() == ANSWERS
        assert str(BASE + 1) in export_json(model)


def test_long_labels_are_refused():
    with pytest.raises(ValueError, match=r"more than 64 bits, such as \d{22}: pass labels as text"):
        DecisionTreeClassifier().fit(np.zeros((12, 1)), LONG)


# ------------------------------------------------------------------------------ exports
def test_texts_show_every_digit(fitted):
    for model in fitted:
        shown = [
            export_text(model),
            "\n".join(map(str, path_rules(model))),
            "".join(str(explain(model, NEW[j : j + 1])[0].steps[-1].condition) for j in range(3)),
            export_graphviz(model),
            str(export_html(model)),
            str(to_dict(model)),
        ]
        for text in shown:
            assert all(str(one) in text for one in set(IDS)), text
            assert "e+18" not in text


def test_programs_answer_as_python_does(fitted):
    for model in fitted:
        module = {}
        exec(export_python(model), module)
        assert [module["predict"]([one]) for one in sorted(set(IDS))] == ANSWERS
        sql = export_sql(model, dialect="sqlite", missing="largest")
        assert in_sqlite(f"SELECT {sql} FROM rows", {"id": sorted(set(IDS))}) == ANSWERS


def test_targets_that_cannot_hold_them_say_so(fitted):
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match=r"'id' has integers beyond 2\*\*53 as categories"):
        to_onnx(fitted[0])
    to_onnx(fitted[0], inputs="matrix")  # codes
    small = DecisionTreeClassifier(categorical_features=["id"]).fit(
        pd.DataFrame({"id": [1, 2] * 4}), np.array([2**63, 2**63 + 1] * 4, np.uint64)
    )
    with pytest.raises(ValueError, match=f"ONNX cannot represent the label {2**63 + 1}"):
        to_onnx(small)
    with pytest.raises(ValueError, match=f"cannot represent the integer {2**63}"):
        export_sql(small, dialect="sqlite")
    assert str(2**63 + 1) in export_sql(small)


# -------------------------------------------------------------------------------- files
ROWS = [(one, "no" if i % 3 else "yes") for i, one in enumerate(with_missing(IDS))]


TABLE = pa.table({"id": [row[0] for row in ROWS], "y": [row[1] for row in ROWS]})


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather", "arff"])
def test_files_of_every_format(tmp_path, suffix):
    path = write_table(TABLE, tmp_path / f"t.{suffix}", 5)
    table = read_table(path, "y", categorical=["id"])
    assert codes_of(table.columns) == (sorted(set(IDS)), [row[0] for row in ROWS])
    if suffix != "arff":
        batches = list(open_batches(path, "y", categorical=["id"]))
        cells = [one for X, _ in batches for one in X["id"].to_pylist()]
        assert cells == [row[0] for row in ROWS]
    coded = CodedTable.from_batches(
        open_batches(path, "y", categorical=["id"]), categorical_features=["id"]
    )
    assert coded._table.columns.categories[0].tolist() == sorted(set(IDS))


TWENTY = [12345678901234567890 + i % 2 for i in range(8)]


def test_twenty_digits_as_categories(tmp_path):
    path = tmp_path / "t.csv"
    cells = ["NA", *map(str, TWENTY[1:])]
    path.write_text("id,y\n" + "".join(f"{c},{'ab'[i % 2]}\n" for i, c in enumerate(cells)))
    for table in (
        read_table(path, "y", categorical=["id"]).columns,
        pa.concat_tables([X for X, _ in open_batches(path, "y", categorical=["id"])]),
    ):
        assert codes_of(table) == (sorted(set(TWENTY)), [None, *TWENTY[1:]])


def test_digits_beyond_decimals_stay_text(write):
    path = write("id,y\n" + "".join(f"{'9' * 40}{i % 2},a\n" for i in range(4)))
    table = read_table(path, "y", categorical=["id"])
    assert table.columns["id"].to_pylist() == [f"{'9' * 40}{i % 2}" for i in range(4)]


def test_fractions_make_floats(write):
    """Numbers, then, as they are without whole ones of so many digits."""
    path = write("id,y\n12345678901234567890,a\n0.5,b\n")
    assert read_table(path, "y", categorical=["id"]).columns["id"].to_pylist() == [
        float(12345678901234567890), 0.5,
    ]  # fmt: skip


def test_longer_numbers_further_down(tmp_path, monkeypatch):
    """Categories of batches are of one kind whatever the first batch held."""
    from gputree.datasets import delimited

    monkeypatch.setattr(delimited, "BATCH_BYTES", 256)
    path = tmp_path / "t.csv"
    for last in (TWENTY, [0.5]):
        cells = map(str, [*[5, 6] * 60, *last])
        path.write_text("id,y\n" + "".join(f"{c},a\n" for c in cells))
        batches = open_batches(path, "y", categorical=["id"])
        coded = CodedTable.from_batches(batches, categorical_features=["id"])
        assert coded._table.columns.categories[0].tolist() == sorted({5, 6, *last})


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_labels_of_files(tmp_path, suffix):
    table = pa.table({"a": range(8), "y": pa.array(TWENTY, pa.uint64())})
    path = write_table(table, tmp_path / f"t.{suffix}")
    assert read_table(path, "y").target.tolist() == TWENTY
    targets = [one for _, y in open_batches(path, "y") for one in y.tolist()]
    assert targets == TWENTY


def test_labels_of_batches_are_joined_exactly():
    targets = BatchTargets()
    targets.add(np.array([BASE + 1, 5], np.int64))
    targets.add(np.array([BASE, 2**63], np.uint64))
    assert np.asarray(targets.join()).tolist() == [BASE + 1, 5, BASE, 2**63]


def test_command(tmp_path, said):
    """Train on 20 digits with a missing cell; predict ids that were not there."""
    model, path, new = tmp_path / "m.gputree", tmp_path / "t.csv", tmp_path / "new.csv"
    cells = ["", *map(str, TWENTY[1:])]
    path.write_text("id,y\n" + "".join(f"{c},{'ab'[i % 2]}\n" for i, c in enumerate(cells)))
    said("train", path, "--target", "y", "--categorical", "id", "-o", model, "--quiet")
    found = json.loads(said("evaluate", model, path, "--format", "json"))
    assert found["accuracy"] == 1.0
    assert all(f"id = {one}" in said("show", model) for one in set(TWENTY))
    new.write_text(f"id\n{TWENTY[1]}\n{TWENTY[0]}\n0{TWENTY[0]}\n7\n")
    answers = said("predict", model, new).splitlines()[1:4]
    assert answers == ["b", "a", "a"]
