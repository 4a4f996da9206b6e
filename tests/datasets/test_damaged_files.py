"""Files that are damaged end in a ValueError that names them, and never with the process."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from processes import run_python
from pyarrow import csv, feather, ipc, parquet

from gputree.datasets import open_batches, read_table
from gputree.datasets.sources import least_bytes

TABLE = pa.table(
    {
        "a": np.arange(20) / 4,
        "k": pa.array([2**60, None, *range(18)], pa.int64()),
        "c": ["xx", "y", None, "zzz"] * 5,
        "d": pa.array(["u", "v"] * 10).dictionary_encode(),
        "t": ["qqq", "ppp"] * 10,
    }
)
PLAIN = {"compression": "none", "write_statistics": False, "store_schema": False}


def arrow(path, kind=ipc.new_stream):
    with pa.OSFile(str(path), "wb") as file, kind(file, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=7)


def arff(path):
    rows = ["?" if cell is None else str(cell) for cell in TABLE["k"].to_pylist()]
    lines = [f"{i / 4},{k},{'xy'[i % 2]},{'qp'[i % 2]}" for i, k in enumerate(rows)]
    head = "@relation r\n@attribute a real\n@attribute k numeric\n@attribute c {x,y}\n"
    path.write_text(head + "@attribute t {q,p}\n@data\n" + "\n".join(lines) + "\n", "utf-8")


def compressed(path, codec):
    with pa.CompressedOutputStream(str(path), codec) as file:
        csv.write_csv(TABLE, file)


WRITERS = {
    "t.csv": lambda path: csv.write_csv(TABLE, path),
    "t.csv.gz": lambda path: compressed(path, "gzip"),
    "t.csv.zst": lambda path: compressed(path, "zstd"),
    "plain.parquet": lambda path: parquet.write_table(TABLE, path, use_dictionary=False, **PLAIN),
    "snappy.parquet": lambda path: parquet.write_table(TABLE, path, row_group_size=7),
    "pages.parquet": lambda path: parquet.write_table(
        TABLE, path, compression="zstd", data_page_version="2.0"
    ),
    "plain.feather": lambda path: feather.write_feather(TABLE, path, compression="uncompressed"),
    "lz4.feather": lambda path: feather.write_feather(TABLE, path, compression="lz4"),
    "stream.arrow": arrow,
    "file.arrow": lambda path: arrow(path, ipc.new_file),
    "t.arff": arff,
}


def refused(path, *, whole=True):
    """The errors of all ways to read a table, each a ValueError that names the file."""
    if whole:
        with pytest.raises(ValueError, match=path.name) as refusal:
            read_table(path, "t")
        assert str(path) in str(refusal.value)
    with pytest.raises(ValueError, match=path.name) as refusal:
        list(open_batches(path, "t"))
    assert str(path) in str(refusal.value)
    return str(refusal.value)


READ_BOTH_WAYS = """
import sys
from gputree.datasets import open_batches, read_table
for path in sys.argv[1:]:
    for read in (lambda: read_table(path, 't'), lambda: list(open_batches(path, 't'))):
        try: read()
        except ValueError as error: print(path in str(error), "'t'" in str(error))
"""


def test_places_of_text_behind_the_file(tmp_path):
    """Read unchecked, they end the process: a child reads them."""
    table = TABLE.select(["a", "t"])
    feather.write_feather(table, tmp_path / "plain.feather", compression="uncompressed")
    for name, kind in (("stream.arrow", ipc.new_stream), ("file.arrow", ipc.new_file)):
        with pa.OSFile(str(tmp_path / name), "wb") as file, kind(file, table.schema) as writer:
            writer.write_table(table)
    for path in tmp_path.iterdir():
        content = bytearray(path.read_bytes())
        at = content.rfind(np.arange(0, 63, 3, dtype=np.int32).tobytes())
        assert at > 0
        for i in range(1, 21):
            content[at + 4 * i + 3] = 0x40  # a gigabyte behind
        path.write_bytes(content)
    assert run_python("-c", READ_BOTH_WAYS, *map(str, tmp_path.iterdir())) == 6 * "True True\n"


@pytest.mark.parametrize("name", ["plain.feather", "plain.parquet", "stream.arrow", "t.arff"])
def test_text_that_is_not_utf8(tmp_path, name):
    path = tmp_path / name
    WRITERS[name](path)
    content = path.read_bytes()
    word = b"q\n" if name == "t.arff" else b"qqq"
    assert word in content
    path.write_bytes(content.replace(word, b"\xe9" + word[1:]))
    assert "not UTF-8" in refused(path)


def test_text_that_is_not_utf8_in_a_column_left_out(tmp_path):
    path = tmp_path / "t.parquet"
    WRITERS["plain.parquet"](path)
    path.write_bytes(path.read_bytes().replace(b"zzz", b"\xe9zz"))
    assert "'c'" in refused(path)
    assert read_table(path, "t", ignore=["c"], numeric=["k"]).n_rows == 20


def test_more_rows_than_groups_of_rows_have(tmp_path):
    """Exabytes are no matter of memory."""
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": [1.0] * 20, "t": ["q"] * 20}), path, **PLAIN)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    rows = content.index(b"\x16\x28", footer)  # 20 as Thrift has it: of the whole file, first
    huge = b"\x16" + b"\xfe" + b"\xff" * 7 + b"\x7f"
    longer = content[:rows] + huge + content[rows + 2 : -8]
    path.write_bytes(longer + (len(longer) - footer).to_bytes(4, "little") + b"PAR1")
    assert parquet.ParquetFile(path).metadata.num_rows > 2**50
    for read in (lambda: read_table(path, "t"), lambda: least_bytes(path)):
        with pytest.raises(ValueError, match=r"t.parquet is damaged: it declares .* rows"):
            read()


def test_sizes_of_exabytes(tmp_path):
    path = tmp_path / "t.feather"
    WRITERS["lz4.feather"](path)
    content = bytearray(path.read_bytes())
    frame = content.index(b"\x04\x22\x4d\x18")  # of LZ4; before it, how long it unpacks
    content[frame - 8 : frame] = (2**62).to_bytes(8, "little")
    path.write_bytes(content)
    refused(path)


# ------------------------------------------------------------------------------ fuzz
CHILD = Path(__file__).parents[1] / "helpers" / "fuzz_files.py"
SEEDS = 1200


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    from gputree import C45Classifier, export_json, save_model

    folder = tmp_path_factory.mktemp("models")
    X = pa.table({"a": np.arange(40) / 4, "c": ["x", "y", None, "z"] * 10})
    model = C45Classifier(pruning=None).fit(X, ["n", "p", "n", "q"] * 10)
    save_model(model, folder / "m.gputree")
    (folder / "m.json").write_text(export_json(model), "utf-8")
    return folder


@pytest.mark.full
@pytest.mark.process
@pytest.mark.parametrize("name", [*WRITERS, "m.gputree", "m.json"])
def test_damage_of_any_kind(name, tmp_path, request):
    """Refused with its name, or read: nothing else, and nothing that a signal ends."""
    path = tmp_path / name
    if name in WRITERS:
        WRITERS[name](path)
    else:
        path.write_bytes((request.getfixturevalue("models") / name).read_bytes())
    done = subprocess.run(
        [sys.executable, str(CHILD), str(path), "0", str(SEEDS)],
        capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"seed {lines[-1:]} ended by {done.returncode}: {done.stderr}"
    others = [line for line in lines if not line.endswith((" refused", " read"))]
    assert not others, "\n".join(others[:40])
    assert len(lines) == SEEDS
