"""Targets of batches, and the folder that their tables lie in."""

import contextlib
import errno
import io
import shutil
import tempfile
from collections import namedtuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from gputree import CodedTable, DecisionTreeRegressor
from gputree.cli import main
from gputree.datasets import files, open_batches
from gputree.inputs import labels
from gputree.inputs.labels import BatchTargets

CASES = {
    "text": [np.array(["b", "a"]), np.array(["long label", "a", "b"])],
    "objects": [np.array(["b", "a"], object), np.array(["c"], object)],
    "mixed objects": [np.array(["b", 1], object), np.array(["c", None], object)],
    "numbers": [np.array([1, 2]), np.array([0.5])],
    "integers": [np.array([7, -1], np.int8), np.array([300, 7])],
    "unsigned": [np.array([1, 2], np.uint64), np.array([2**60 + 1], np.uint64)],
    "unlike integers": [np.arange(2), np.arange(1000)],
    "integers, then fractions": [np.array([2**60 + 1, 3]), np.array([0.5])],
    "booleans": [np.array([True]), np.array([False, True])],
    "columns": [np.array([[1, 2], [3, 4]]), np.array([[0.5, 7]])],
    "columns of text": [np.array([["b", "a"], ["c", "d"]]), np.array([["long", "a"]])],
    "many": [np.array([f"w{i}" for i in range(300)]), np.array(["w299", "w0"])],
}


@pytest.mark.parametrize("name", CASES)
def test_joined_as_numpy_joins_them(name):
    parts, targets = CASES[name], BatchTargets()
    for part in parts:
        targets.add(part)
    assert [targets.are(k, part) for k, part in enumerate(parts)] == [True] * len(parts)
    assert not targets.are(0, np.roll(parts[0], 1)) or parts[0].size == 1
    expected = np.concatenate(parts)
    found = targets.join()
    assert found.dtype == expected.dtype
    assert np.asarray(found).tolist() == expected.tolist()


def test_names_of_several_targets_stay():
    frames = [pd.DataFrame({"x": [1.0, 2.0], "u": [0, 1], "v": [1, 1]}) for _ in range(3)]
    table = CodedTable.from_batches([(part[["x"]], part[["u", "v"]]) for part in frames])
    tree = DecisionTreeRegressor()
    assert tree.fit(table, table.target).target_names_in_.tolist() == ["u", "v"]
    half = table.take(np.arange(3))
    assert tree.fit(half, half.target).target_names_in_.tolist() == ["u", "v"]
    tree.fit(table, table.target.copy())  # of which nothing is known
    assert not hasattr(tree, "target_names_in_")


def test_long_labels_take_a_byte_a_row():
    targets = BatchTargets()
    targets.add(np.array(["x" * 1000, "y" * 1000] * 50))
    assert targets._parts[0].nbytes == 100


def test_other_kinds_are_refused():
    targets = BatchTargets()
    targets.add(np.array(["a"]))
    with pytest.raises(ValueError, match="its target holds numbers, and those of earlier batches"):
        targets.add(np.array([1.0]))
    with pytest.raises(ValueError, match=r"its target has the shape \(1, 2\), and"):
        targets.add(np.array([["a", "b"]]))


# --------------------------------------------------------------------------------- the folder
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def full(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(100, 90, 10))


def batches():
    yield np.zeros((100, 3), np.float32), np.zeros(100)


@pytest.mark.usefixtures("full")
def test_room_is_looked_at_before_the_work(tmp_path):
    with pytest.raises(OSError, match="no space for 1,500 bytes of the table") as told:
        CodedTable.from_batches(batches, folder=tmp_path)
    assert told.value.errno == errno.ENOSPC
    assert told.value.filename == str(tmp_path)
    assert "Name another one in 'folder'" in str(told.value)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_room_for_files_is_looked_at_before_they_are_read(tmp_path, monkeypatch, suffix):
    """Files of 40 rows x 2 columns x 5 bytes; CSV counts half of what the first rows indicate."""
    path = tmp_path / f"t.{suffix}"
    table = pa.table({"a": np.arange(40.0), "b": np.arange(40.0), "y": ["n", "p"] * 20})
    (parquet.write_table if suffix == "parquet" else csv.write_csv)(table, path)
    batches = open_batches(path, target="y")
    monkeypatch.setattr(files, "rows_of", None)  # what reads them
    size = 400 if suffix == "parquet" else 200
    with pytest.raises(OSError, match=f"no space for {size} bytes of the table"):
        CodedTable.from_batches(batches, folder=tmp_path)


@pytest.mark.usefixtures("full", "unknown_memory")
def test_the_command_says_what_helps(tmp_path):
    table = pa.table({"a": np.arange(40.0), "y": ["n", "p"] * 20})
    parquet.write_table(table, tmp_path / "t.parquet")
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        data, model = str(tmp_path / "t.parquet"), str(tmp_path / "m.gputree")
        status = main(["train", data, "--target", "y", "-o", model, "--memory", "1B"])
    assert status == 1
    assert said.getvalue().startswith(f"gputree: error: {tempfile.gettempdir()}: this folder")
    assert "Set TMPDIR to another one, or raise --memory" in said.getvalue()
    assert "Errno" not in said.getvalue()


def test_a_folder_that_is_not_there_is_no_place_for_files(tmp_path, monkeypatch):
    """Python's own choice of another place would fill another disk."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    batches = [(np.zeros((4, 2)), np.arange(4) % 2)]
    with pytest.raises(OSError, match="TMPDIR names no folder that can be written"):
        CodedTable.from_batches(lambda: batches)
    table = CodedTable.from_batches(lambda: batches, folder=tmp_path)
    assert table.shape == (4, 2)


def test_help_names_the_folder(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert "TMPDIR" in capsys.readouterr().out


def test_any_number_of_words_is_coded(monkeypatch):
    """And integers as far as their codes are a byte each."""
    for words, coded in ((True, True), (False, False)):
        monkeypatch.setattr(labels, "MOST_INTEGERS", 4)
        targets = BatchTargets()
        batches = [np.arange(k, k + 3) for k in (0, 2, 4)]
        if words:
            batches = [batch.astype(str) for batch in batches]
        for batch in batches:
            targets.add(batch)
        assert targets._are_coded is coded
        np.testing.assert_array_equal(np.asarray(targets.join()), np.concatenate(batches))
