"""C4.5's .names and .data, as its own reader takes them."""

import gzip
from pathlib import Path

import pytest

from gputree import C45Classifier
from gputree.datasets import load_golf, open_batches, read_table

NAMES = """| Quinlan's table
Play, Don't Play.      | the classes

outlook: sunny,
    overcast, rain.
temperature   : continuous.
humidity: continuous
day: ignore.
note: discrete 9.
"""
DATA = """sunny, 85, 8.5, 1, a  b, Don't Play.
overcast,83,?,2,?,Play
| a comment

 rain ,70, 96, 3, c\\,d, Play  | and one more
"""


@pytest.fixture
def write(tmp_path):
    def run(names, data=DATA):
        (tmp_path / "t.names").write_text(names, "utf-8")
        (tmp_path / "t.data").write_text(data, "utf-8", newline="")
        return tmp_path / "t.data"

    return run


def test_cells_are_those_of_the_two_files(write):
    table = read_table(write(NAMES), "class")
    assert table.columns.to_pydict() == {
        "outlook": ["sunny", "overcast", "rain"],
        "temperature": [85.0, 83.0, 70.0],
        "humidity": [8.5, None, 96.0],
        "note": ["a b", None, "c,d"],
    }
    assert table.columns["outlook"].chunk(0).dictionary.to_pylist() == ["sunny", "overcast", "rain"]
    assert table.target.tolist() == ["Don't Play", "Play", "Play"]
    assert table.declared.tolist() == ["Play", "Don't Play"]


def test_a_declared_column_is_the_target_as_in_c5(write):
    table = read_table(write("b.\na: continuous.\nb: x, y.\n", "1,x\n2,y\n"), "b")
    assert (table.names, table.target.tolist()) == (["a"], ["x", "y"])


def test_names_keep_periods_within_and_what_a_backslash_keeps(write):
    table = read_table(
        write("p, q.\na.b: 1.5, 2.5.\nc\\:d: continuous.", "1.5,2,p\n2.5,3,q."), "class"
    )
    assert table.columns.to_pydict() == {"a.b": ["1.5", "2.5"], "c:d": [2.0, 3.0]}


def test_the_tree_is_that_of_the_same_table(write):
    """Read the 14 days of the CSV file; the classes are the target's, in alphabetical order."""
    days = Path(load_golf().filename)
    header, *rows = [line.split(",") for line in days.read_text().split()]
    whole = read_table(days, header[-1])
    kinds = [
        "continuous" if all(cell.isdigit() for cell in cells) else ", ".join(sorted(set(cells)))
        for cells in zip(*rows, strict=True)
    ]
    pairs = list(zip(header, kinds, strict=True))
    names = "".join([f"{kinds[-1]}.\n", *(f"{name}: {kind}.\n" for name, kind in pairs[:-1])])
    data = "".join(", ".join(row) + "\n" for row in rows)
    path = write(names, data)
    table = read_table(path, "class")
    tree = C45Classifier().fit(table.columns, table.target).tree_
    assert tree.equals(C45Classifier().fit(whole.columns, whole.target).tree_)
    batches = list(open_batches(path, "class"))
    assert [y.tolist() for _, y in batches] == [table.target.tolist()]


@pytest.mark.parametrize(
    ("names", "data", "message"),
    [
        (NAMES, "sunny, 85\n", "line 1: expected 6 cells, as the .names file declares, got 2"),
        (NAMES, DATA.replace("85", "hot"), "line 1: 'hot' of 'temperature' is no number"),
        (
            NAMES,
            DATA.replace("overcast", "snow"),
            "line 2: 'snow' of 'outlook' is not declared: it has 'sunny', 'overcast', 'rain'",
        ),
        ("a: continuous.\n", DATA, "must begin with the names of the classes"),
        ("p, q.\n1. Title\n", DATA, "is not in C4.5's format"),
        ("p, q.\nclass: continuous.\n", DATA, "declares a column 'class'"),
        ("p, q.\na := b + 1.\n", DATA, "columns that are computed"),
    ],
)
def test_errors_name_the_file_and_the_line(write, names, data, message):
    with pytest.raises(ValueError, match=message) as error:
        read_table(write(names, data), "class")
    assert "t.data" in str(error.value) or "t.names" in str(error.value)


def test_a_compressed_table_has_the_same_names_file(write):
    path = write(NAMES)
    packed = Path(f"{path}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_table(packed, "class").columns.equals(read_table(path, "class").columns)


def test_without_names_the_message_says_what_to_do(tmp_path):
    (tmp_path / "t.data").write_text(DATA)
    with pytest.raises(ValueError, match=r"needs t\.names next to it, in C4\.5's format"):
        read_table(tmp_path / "t.data", "class")


def test_text_is_a_table_with_a_header(tmp_path):
    (tmp_path / "t.txt").write_text("a\ty\n1\tp\n2\tq\n")
    table = read_table(tmp_path / "t.txt", "y")
    assert (table.columns.to_pydict(), table.target.tolist()) == ({"a": [1, 2]}, ["p", "q"])


def test_lines_end_at_line_breaks_alone(write):
    """`str.splitlines` has more, which text in other encodings is read as."""
    cells = "1.5,2,p\r\n2.5,3\x0c,q\r1.5,4,\u2028p\n"
    table = read_table(write("p, q.\na: 1.5, 2.5.\nb: continuous.", cells), "class")
    assert table.columns.to_pydict() == {"a": ["1.5", "2.5", "1.5"], "b": [2.0, 3.0, 4.0]}
