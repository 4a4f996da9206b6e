"""Standard input and output of the command, tables in batches, and files that are no tables."""

import csv
import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import write_table

from gputree import load_model, save_model
from gputree.cli import main
from gputree.datasets import delimited, load_auto_mpg, load_golf, read_batches, read_table
from gputree.datasets.readers import read_names

GOLF = load_golf().filename
CARS = load_auto_mpg().filename


@pytest.fixture(scope="module")
def golf(tmp_path_factory):
    """A model of text columns alone."""
    path = tmp_path_factory.mktemp("golf") / "golf.gputree"
    arguments = ["--target", "play", "--algorithm", "c45", "--quiet", "-o", str(path)]
    assert main(["train", GOLF, *arguments]) == 0
    return path


@pytest.fixture(scope="module")
def cars(tmp_path_factory):
    """A model of numbers."""
    path = tmp_path_factory.mktemp("cars") / "cars.gputree"
    arguments = ["--target", "mpg", "--max-depth", "4", "--quiet", "-o", str(path)]
    assert main(["train", CARS, *arguments]) == 0
    return path


def predictions(text):
    return [row["prediction"] for row in csv.DictReader(text.splitlines())]


# --------------------------------------------------------------------------------- pipes
@pytest.mark.process
def test_a_pipe_from_table_to_answers(tmp_path, golf, gputree):
    """Bytes of a model on standard output, and nothing else there."""
    command = [sys.executable, "-m", "gputree"]
    text = Path(GOLF).read_bytes()
    train = [*command, "train", "-", "--target", "play", "--algorithm", "c45", "-o", "-"]
    model = subprocess.run(train, input=text, capture_output=True, timeout=300, check=True)
    assert model.stdout == golf.read_bytes()
    assert b"training rows" in model.stderr
    predict = [*command, "predict", "-", GOLF]
    answers = subprocess.run(
        predict, input=model.stdout, capture_output=True, timeout=300, check=True
    )
    assert answers.stderr == b""
    assert answers.stdout.decode() == gputree("predict", golf, GOLF)[1]


def test_standard_input_is_a_table(gputree, golf):
    text = Path(GOLF).read_bytes()
    expected = gputree("predict", golf, GOLF, "--proba")
    assert gputree("predict", golf, "-", "--proba", stdin=text) == expected
    assert gputree("explain", golf, "-", stdin=text) == gputree("explain", golf, GOLF)
    target = ["--target", "play"]
    evaluated = gputree("evaluate", golf, "-", *target, stdin=text)
    assert evaluated == gputree("evaluate", golf, GOLF)


@pytest.mark.process
def test_standard_input_is_a_model(gputree, golf, tmp_path):
    path = tmp_path / "piped"
    model = golf.read_bytes()
    code = "import sys; from gputree.cli import main; sys.exit(main(['show', '-']))"
    shown = subprocess.run([sys.executable, "-c", code], input=model, capture_output=True)
    assert shown.stdout.decode() == gputree("show", golf)[1]
    assert not path.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")
def test_a_pipe_that_has_a_name(gputree, golf, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cp", GOLF, str(pipe)]):
        found = gputree("predict", golf, pipe)
    assert found == gputree("predict", golf, GOLF)


def test_one_thing_at_a_time(misused, golf):
    assert "Only one of MODEL and DATA" in misused("predict", "-", "-")
    assert "Only one of MODEL and DATA" in misused("explain", "-", "-")


def test_the_target_of_standard_input_is_that_of_training(misused, gputree, golf, tmp_path):
    told = gputree("evaluate", golf, "-", stdin=Path(GOLF).read_bytes())
    assert told == gputree("evaluate", golf, GOLF)
    model = load_model(golf)
    del model.reading_  # as of models of Python
    save_model(model, tmp_path / "model")
    assert "--target must name" in misused("evaluate", tmp_path / "model", "-")


def test_streams_that_are_no_tables(fails, golf, tmp_path):
    train = ["train", "-", "--target", "y", "-o", tmp_path / "model"]
    assert fails(*train).endswith("standard input is empty.\n")
    assert "standard input has a header but no rows" in fails(*train, stdin=b"a,y\n")
    assert "standard input has no column 'y'" in fails(*train, stdin=b"a,b\n1,2\n")
    assert "compressed" in fails(*train, stdin=gzip.compress(b"a,y\n1,2\n"))
    assert "bytes that are no text" in fails(*train, stdin=b"a,y\n\0\1,2\n")
    assert "standard input is not a gputree model file" in fails("show", "-", stdin=b"a")
    assert "standard input is empty" in fails("predict", golf, "-")
    header = Path(GOLF).read_bytes().split(b"\n")[0] + b"\n"
    assert "a header but no rows" in fails("predict", golf, "-", stdin=header)
    assert not (tmp_path / "model").exists()


# ------------------------------------------------------------------------------- batches
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather"])
def test_batches_are_the_table(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(delimited, "BATCH_BYTES", 200)
    rng = np.random.default_rng(0)
    words = np.array(["a", "b\nb", 'c"c', ""])[rng.integers(0, 4, 500)].tolist()
    columns = {
        "n": pa.array([*rng.normal(size=499).round(3), None]),
        "skipped": pa.array(["x"] * 499 + ["1"]),
        "s": pa.array([word or None for word in words]),
        "i": pa.array(rng.integers(0, 9, 500)),
    }
    path = write_table(pa.table(columns), tmp_path / f"table{suffix}")
    options = {"text": ["s"], "numeric": ["n", "i"]}
    batches = list(read_batches(path, ["s", "n", "i"], **options))
    assert (len(batches) > 3) == (suffix != ".feather")  # which has the batches it was written in
    whole = pa.concat_tables(batch.cast(batches[0].schema) for batch in batches)
    expected = read_table(path, columns=["s", "n", "i"], **options).columns
    assert whole.to_pydict() == expected.to_pydict()
    assert whole["s"].to_pylist() == columns["s"].to_pylist()
    assert read_names(path) == list(columns)


def test_predictions_do_not_depend_on_batches(gputree, cars, tmp_path, monkeypatch):
    table = tmp_path / "out.parquet"
    expected = gputree("predict", cars, CARS)
    monkeypatch.setattr(delimited, "BATCH_BYTES", 500)
    assert gputree("predict", cars, CARS) == expected
    assert gputree("predict", cars, CARS, "-o", table) == (0, "", "")
    assert pq.ParquetFile(table).num_row_groups > 3
    assert pq.read_table(table)["prediction"].to_pylist() == list(
        map(float, predictions(expected[1]))
    )


def test_what_is_wrong_further_down_leaves_no_file(fails, cars, tmp_path, monkeypatch):
    data, out = tmp_path / "data.csv", tmp_path / "out.csv"
    text = Path(CARS).read_text()
    data.write_text(text + text.splitlines()[-1].replace(".", "?", 1) + "\n")
    monkeypatch.setattr(delimited, "BATCH_BYTES", 500)
    error = fails("predict", cars, data, "-o", out)
    assert "must hold numbers; it holds" in error
    assert sorted(tmp_path.iterdir()) == [data]


def test_numbers_that_are_categories_are_read_whole(said, gputree, tmp_path, monkeypatch):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    data.write_text("m,flag,y\n" + "1,true,a\n10,false,b\n" * 20 + "2.5,true,a\n")
    arguments = ["--target", "y", "--categorical", "m", "-o", model]
    assert gputree("train", data, *arguments)[0] == 0
    monkeypatch.setattr(delimited, "BATCH_BYTES", 50)
    output = said("predict", model, data)
    assert predictions(output) == ["a", "b"] * 20 + ["a"]


def test_marks_of_missing_cells(gputree, fails, golf, cars, write, tmp_path):
    data, marked = tmp_path / "golf.csv", tmp_path / "cars.csv"
    text = Path(GOLF).read_text()
    data.write_text(text.replace("sunny", " ?").replace("rain", "n/k"))
    holes = write(text.replace("sunny", "").replace("rain", ""), "holes.csv")
    marks = ["--missing", "?", "--missing", "n/k"]
    found = gputree("predict", golf, data, *marks, "--proba")
    assert found == gputree("predict", golf, holes, "--proba")
    warned = gputree("predict", golf, data)[2]
    assert warned.count("\n") == 1
    assert "training had no '?' in 'outlook'. If it stands for a missing value, add" in warned
    data.write_text(
        text.replace("sunny", "fair").replace("rain", "wet").replace("overcast", "dull")
    )
    warned = gputree("predict", golf, data)[2]
    assert (
        "no cell of 'outlook', such as 'fair', is a category that training had, such as" in warned
    )
    marked.write_text(Path(CARS).read_text().replace(",,", ",-,"))
    assert "If that stands for a missing value, add --missing -" in fails("predict", cars, marked)
    assert gputree("predict", cars, marked, "--missing", "-") == gputree("predict", cars, CARS)


def test_no_bar_runs_through_rows_on_a_terminal(golf, tmp_path, monkeypatch):
    asked = []

    def watched(*arguments, verbose, **options):
        asked.append(verbose)
        return read_batches(*arguments, **options)

    monkeypatch.setattr("gputree.datasets.read_batches", watched)
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda answer=is_terminal: answer)
        assert main(["predict", str(golf), GOLF]) == 0
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["predict", str(golf), GOLF, "-o", str(tmp_path / "out.csv")]) == 0
    assert asked == [False, True, True]


# ------------------------------------------------------------------------- strange files


def test_text_in_another_encoding_further_down(fails, gputree, golf, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(Path(GOLF).read_bytes().replace(b"sunny", "ensoleillé".encode("latin-1"), 1))
    assert "pass that: --encoding cp1252 (Western European, Excel" in fails("predict", golf, data)
    found = gputree("predict", golf, data, "--encoding", "latin1")
    assert found[0] == 0
    assert found[1].splitlines()[2:] == gputree("predict", golf, GOLF)[1].splitlines()[2:]


@pytest.mark.parametrize("mark", ["\ufeff", "\n\n"])
def test_what_may_stand_before_a_header(gputree, golf, tmp_path, mark):
    data = tmp_path / "data.csv"
    data.write_text(mark + Path(GOLF).read_text(), encoding="utf-8")
    assert gputree("predict", golf, data) == gputree("predict", golf, GOLF)


@pytest.mark.full
def test_line_breaks_within_quotes(gputree, tmp_path):
    """Test line breaks also between the reader's blocks of a megabyte."""
    data, model = tmp_path / "data.csv", tmp_path / "model"
    rows = "".join(f'{i},"two\nlines, {i % 2}",{"ab"[i % 2]}\n' for i in range(60_000))
    data.write_text('"first\ncolumn",text,y\n' + rows)
    assert gputree("train", data, "--target", "y", "--max-depth", 1, "-o", model)[0] == 0
    assert load_model(model).tree_.n_rows[0] == 60_000
    assert load_model(model).feature_names_in_[0] == "first\ncolumn"
    assert predictions(gputree("predict", model, data)[1]) == ["a", "b"] * 30_000


def test_read_batches_errors(write, tmp_path):
    data = write("a,b,b\n1,2,3\n")
    with pytest.raises(ValueError, match="same name: 'b'"):
        next(read_batches(data, ["a"], numeric=["a"]))
    data.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"has no column 'c'\. Its columns are: 'a', 'b'"):
        next(read_batches(data, ["c"], numeric=["c"]))
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["b", "b"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(ValueError, match="same name: 'b'"):
        read_table(tmp_path / "twice.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "data.parquet")
    with pytest.raises(ValueError, match="column 'a' must hold numbers; it holds 'x'"):
        next(read_batches(tmp_path / "data.parquet", ["a"], numeric=["a"]))


def test_errors_of_the_system_name_the_output(fails, tmp_path):
    """Test that the temporary file next to it, and the errors' number, are not named."""
    long = tmp_path / ("m" * 250)
    error = fails("train", GOLF, "--target", "play", "-o", long)
    assert error == f"gputree: error: {long}: File name too long\n"
    assert list(tmp_path.iterdir()) == []
