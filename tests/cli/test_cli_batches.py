"""Training on files that are read in batches: the model is that of the table in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cuda_emulator import launches

from gputree import load_model
from gputree.backends.cpu import tuning as host
from gputree.backends.sharded import tuning as shards
from gputree.cli.memory import growth_within, parse_size, row_bytes, warn_if_exceeded
from gputree.datasets import load_auto_mpg, load_golf, load_iris, read_table
from gputree.estimators.coded_table import CodedTable

GOLF, IRIS, CARS = (load().filename for load in (load_golf, load_iris, load_auto_mpg))


pytestmark = pytest.mark.usefixtures("unknown_memory")


@pytest.fixture
def in_batches(monkeypatch):
    """Record whether tables were read in batches."""
    made = []
    real = CodedTable.from_batches.__func__

    def from_batches(cls, *arguments, **options):
        made.append(True)
        return real(cls, *arguments, **options)

    monkeypatch.setattr(CodedTable, "from_batches", classmethod(from_batches))
    return made


COMMANDS = {
    "numbers": (IRIS, ["--target", "species"]),
    "text": (GOLF, ["--target", "play", "--algorithm", "c45"]),
    "regression": (CARS, ["--target", "mpg", "--max-depth", "4"]),
    "scores": (IRIS, ["--target", "species", "--cv", "3", "--pruning", "reduced_error"]),
    "binned": (IRIS, ["--target", "species", "--splitter", "binned", "--holdout", "0.3"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_model_is_that_of_the_table_in_memory(said, tmp_path, in_batches, name):
    data, options = COMMANDS[name]
    found = []
    for k, memory in enumerate((["--memory", "1GB"], ["--memory", "100B"])):
        model = tmp_path / f"{k}.gputree"
        output = said("train", data, *options, *memory, "-o", model)
        timed = ("compiling", "training", "model")
        lines = [line.split() for line in output.splitlines() if not line.startswith(timed)]
        found.append((model.read_bytes(), lines))
        assert len(in_batches) == k
    assert found[0] == found[1]


@pytest.fixture
def parts(tmp_path):
    """Irises in three Parquet files, and the table."""
    table = read_table(IRIS).columns
    folder = tmp_path / "data"
    folder.mkdir()
    for k, rows in enumerate(np.array_split(np.arange(len(table)), 3)):
        pq.write_table(table.take(rows), folder / f"part{k}.parquet")
    pq.write_table(table, tmp_path / "whole.parquet")
    return folder


def test_patterns_folders_and_several_files(gputree, parts, tmp_path, in_batches):
    options = ["--target", "species", "--units", "petal_width", "--quiet", "-o"]  # text's alone
    whole, model = tmp_path / "whole.gputree", tmp_path / "parts.gputree"
    assert gputree("train", tmp_path / "whole.parquet", *options, whole) == (0, "", "")
    assert not in_batches
    for data in ([parts / "*.parquet"], [parts], sorted(parts.iterdir())):
        assert gputree("train", *data, *options, model) == (0, "", "")
        assert model.read_bytes() == whole.read_bytes()
    assert len(in_batches) == 3


def test_codes_and_times_are_those_of_memory(gputree, tmp_path, in_batches):
    data, model = tmp_path / "t.csv", tmp_path / "model"
    data.write_text("zip,at,y\n" + "007,10:30,01\n7,09:30,1\n07,10:30,2\n" * 5)
    for extra in ([], ["--task", "regression"]):
        options = ["--target", "y", "--categorical", "zip,at", "--quiet", "-o", model, *extra]
        assert gputree("train", data, *options)[0] == 0
        whole = load_model(model)
        assert gputree("train", data, *options, "--memory", "1B")[0] == 0
        found = load_model(model)
        assert found.tree_.equals(whole.tree_)
        pairs = zip(found.columns_.categories, whole.columns_.categories, strict=True)
        assert all(a.tolist() == b.tolist() for a, b in pairs)
        assert extra or found.classes_.tolist() == ["01", "1", "2"]
    assert len(in_batches) == 2


def test_what_does_not_fit_into_memory_is_read_in_batches(
    gputree, tmp_path, monkeypatch, in_batches
):
    def full(*_, **__):
        raise MemoryError("Reading it takes at least 9 GB of memory, and 1 GB are available.")

    monkeypatch.setattr("gputree.cli.training.training_table", full)
    model = tmp_path / "model"
    status, _, errors = gputree("train", IRIS, "--target", "species", "-o", model)
    assert status == 0
    assert errors == (
        "gputree: Reading it takes at least 9 GB of memory, and 1 GB are available. It is read in "
        "batches instead.\n"
    )
    assert in_batches


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4e9), ("1.5 gb", 1.5e9), ("512MiB", 512 * 2**20), ("7B", 7), ("2k", 2000)],
)
def test_sizes(text, size):
    assert parse_size(text) == size


def test_errors(fails, gputree, parts, tmp_path):
    model = ["--target", "species", "-o", tmp_path / "model"]
    files = sorted(parts.iterdir())
    for text in ("4XB", "GB", "0B", "-1GB", "3", "4.5"):
        assert "a size with its unit, such as 4GB or 512MiB" in fails(
            "train", IRIS, *model, f"--memory={text}", status=2
        )
    assert "cannot be one of several" in fails("train", "-", IRIS, *model, status=2)
    assert "There is no file" in fails("train", tmp_path / "*.csv", *model)
    assert "--algorithm id3 takes one table" in fails(
        "train", *files, *model, "--algorithm", "id3", status=2
    )
    assert "no feature column 'x'" in fails("train", *files, *model, "--numeric", "x")
    assert "would overwrite" in fails(
        "train", parts, "--target", "species", "-o", files[1], status=2
    )
    pq.write_table(pa.table({"x": [1.0], "species": ["a"]}), parts / "z.parquet")
    assert "z.parquet has no column" in fails("train", parts, *model)
    assert not (tmp_path / "model").exists()


def test_dates_and_marks_are_told(fails, gputree, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    model = ["--target", "y", "-o", tmp_path / "model"]
    for k, cells in enumerate((["1", "x", "?"], ["2", "?", "3"])):
        table = pa.table({"a": cells, "y": [0, 1, 0]})
        pq.write_table(table, folder / f"{k}.parquet")
    status, _, errors = gputree("train", folder, *model)
    assert status == 0
    assert "'?' is a category like others in 'a'" in errors
    for cells in (["2020-01-01", "2021-05-05", "2021-05-06"], [pa.scalar(0, pa.date32())] * 3):
        for k in range(2):
            table = pa.table({"a": pa.array(cells), "y": [0, 1, 0]})
            pq.write_table(table, folder / f"{k}.parquet")
        assert "has dates or times in column 'a'" in fails("train", folder, *model)
    for k in range(2):
        pyarrow.csv.write_csv(table, folder / f"{k}.csv")
    errors = fails("train", folder / "*.csv", *model)
    assert "'a' hold dates or times" in errors
    assert "leave them out with --ignore" in errors


@pytest.mark.parametrize("algorithm", ["cart", "c45"])
def test_batches_are_grown_on_a_device(gputree, tmp_path, in_batches, cuda_device, algorithm):
    found, counted = [], launches.total()
    for device in ("cpu", "cuda"):
        model, options = tmp_path / device, ["--target", "species", "--algorithm", algorithm]
        options += ["--memory", "100B", "--device", device]
        assert gputree("train", IRIS, *options, "-o", model)[0] == 0
        found.append(load_model(model).tree_)
        assert (launches.total() > counted) is (device == "cuda")
    assert len(in_batches) == 2
    assert found[0].equals(found[1])


def test_a_limit_that_cannot_be_kept_is_told(gputree, tmp_path, monkeypatch, capsys):
    """6 bytes a row, 16 a value more for lists, 40 MB + 16 MiB of kernels and buffers."""
    for memory in (163_000_000, 162_000_000):
        warn_if_exceeded(memory, 100_000_000, 1_000_000, row_bytes(1, False, False, False), 2)
        told = "" if memory == 163_000_000 else (
            "gputree: warning: --memory is exceeded: Python and its libraries take 100 MB, and "
            "about 150 MB of files that processes share; reading takes 11 MB, then growth 63 MB; "
            "compiling kernels, once on a machine (see gputree warmup), 150 to 300 MB more\n"
        )  # fmt: skip
        assert capsys.readouterr().err == told
    monkeypatch.setattr("gputree.cli.training.private_bytes", lambda: 100_000_000)
    monkeypatch.setattr("gputree.cli.memory.resident_bytes", lambda *given: 100_000_000)
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": ["p", "q"]}), tmp_path / "t.parquet")
    begin = ["train", tmp_path / "t.parquet", "--target", "y", "--memory", "1B", "-o"]
    said = gputree(*begin, tmp_path / "m")[2]
    assert "then growth 57 MB" in said
    assert "warning: --memory 0 MB is exceeded: the process takes" in said


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], (2, False, False, False)),
        (["--task", "regression"], (2, True, False, False)),
        (["--weights", "w"], (1, False, True, False)),
        (["--algorithm", "c45"], (2, False, False, True)),
    ],
)
def test_memory_of_rows_by_task_and_weights(gputree, tmp_path, monkeypatch, options, expected):
    found = []
    monkeypatch.setattr("gputree.cli.training.row_bytes", lambda *given: found.append(given) or 1)
    table = pa.table({"a": [1.0, 2.0, 3.0], "w": [1.0, 2.0, 1.0], "y": [0, 1, 0]})
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    begin = ["train", tmp_path / "t.csv", "--target", "y", "--memory", "1B", "-o"]
    assert gputree(*begin, tmp_path / "m", *options)[0] == 0
    assert found[0] == expected


def test_bytes_of_a_row():
    """In fixed point and as read: targets of numbers 40, weights 16, lists 16 a column."""
    assert row_bytes(3, False, False, False) == 6
    assert row_bytes(3, True, False, False) == 46
    assert row_bytes(3, False, True, False) == 22
    assert row_bytes(3, False, False, True) == 54


def test_growth_fits_and_its_sizes_are_put_back(monkeypatch):
    before = host.TUNING, shards.TUNING
    monkeypatch.setattr("gputree.cli.memory.private_bytes", lambda: 100_000_000)
    for limit, buffer in ((200_000_000, 12_500_000), (1, 1 << 22), (10**12, 1 << 27)):
        with growth_within(limit, 10_000_000):
            assert shards.TUNING.most_histogram_bytes == buffer
            assert shards.TUNING.gathered_bytes == min(2 * buffer, before[1].gathered_bytes)
            assert host.TUNING.partial_bytes == min(buffer, before[0].partial_bytes)
    assert before == (host.TUNING, shards.TUNING)
