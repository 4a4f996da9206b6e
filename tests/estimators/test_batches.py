"""Tables read in batches: the tree is that of the table in memory, field by field."""

import errno
import gc
import io
import os
import pickle
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from table_files import write_table
from tqdm import tqdm

from gputree import C45Classifier, CodedTable, DecisionTreeClassifier
from gputree.base import progress
from gputree.columns import Columns, merging, specification
from gputree.columns.categories import Lookup, as_objects, in_order
from gputree.columns.merging import MergedColumns
from gputree.datasets import ArrayBatches, open_batches, read_table
from gputree.estimators import batches as reading


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Many parts, of some 30 rows."""
    monkeypatch.setattr(reading, "PART_BYTES", 600)
    monkeypatch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
    monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: 40)


def frame(n: int = 400, seed: int = 0) -> tuple[pa.Table, np.ndarray]:
    """Numbers, text, booleans and integers, with missing values, and classes."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.integers(0, 40, n)
    word = rng.choice(["x", "y", "zz", "w"], n).astype(object)
    word[rng.random(n) < 0.1] = None
    flag = rng.random(n) < 0.5
    holes = rng.random(n) < 0.1
    table = pa.table(
        {"a": pa.array(a, mask=holes), "b": b, "word": pa.array(list(word)), "flag": flag}
    )
    y = (a > 0.3) ^ (word == "x") ^ (flag & (b > 30))
    return table, np.where(y, "yes", "no")


def cut(table: pa.Table, y: np.ndarray, sizes: list[int]) -> list[tuple[pa.Table, np.ndarray]]:
    """Batches of these sizes, and the rest."""
    bounds = np.minimum(np.cumsum([0, *sizes, len(y)]), len(y)).tolist()
    pairs = zip(bounds, bounds[1:], strict=False)
    return [(table.slice(p, q - p), y[p:q]) for p, q in pairs]


@examples(12)
@given(sizes=st.lists(st.integers(0, 150), max_size=6), exact=st.booleans(), seed=st.integers(0, 5))
def test_the_tree_does_not_depend_on_the_batches(sizes, exact, seed):
    table, y = frame(seed=seed)
    model = DecisionTreeClassifier(splitter="exact" if exact else "binned", max_depth=6)
    expected = model.fit(table, y).tree_
    read = CodedTable.from_batches(cut(table, y, sizes))
    found = model.fit(read, read.target)
    assert found.tree_.equals(expected)
    assert found.feature_names_in_.tolist() == ["a", "b", "word", "flag"]
    assert (found.predict(read) == found.predict(table)).all()


def test_float64_in_one_batch_makes_it_float64():
    X = np.arange(10.0)[:, None]
    fine = X + 2.0**-40
    y = np.arange(20) % 3 == 0
    both = np.concatenate([X, fine])
    read = CodedTable.from_batches([X.astype(np.float32), fine])
    model = DecisionTreeClassifier()
    assert model.fit(read, y).tree_.equals(model.fit(both, y).tree_)


def test_parts_of_it_and_other_algorithms():
    table, y = frame()
    read = CodedTable.from_batches(cut(table, y, [100, 100]))
    rows = np.random.default_rng(3).permutation(400)[:150]
    part = read.take(rows)
    assert (part.target == y[rows]).all()
    found = DecisionTreeClassifier().fit(part, part.target).tree_
    memory = CodedTable(table).take(rows)
    assert found.equals(DecisionTreeClassifier().fit(memory, y[rows]).tree_)
    c45 = C45Classifier()
    assert c45.fit(read, y).tree_.equals(c45.fit(CodedTable(table), y).tree_)


WORD_LISTS = st.lists(st.lists(st.sampled_from("abcde"), unique=True), min_size=1, max_size=5)
NUMBER_LISTS = st.lists(
    st.lists(st.integers(-3, 3), unique=True).map(np.array), min_size=1, max_size=5
)


@examples(60)
@given(lists=WORD_LISTS | NUMBER_LISTS)
def test_merged_categories_are_those_declared_or_in_order(lists):
    merged = MergedColumns(["'w'"])
    for words in lists:
        array = words if isinstance(words, np.ndarray) else as_objects(words)
        merged.add(Columns(np.array([True]), (array,)), np.array([False]))
    given = [list(words) for words in lists if len(words)]
    alike = all(words == given[0] for words in given)
    expected = (given or [[]])[0] if alike else sorted(set().union(*given))
    assert merged.columns().categories[0].tolist() == expected


def test_work_on_categories_is_linear_in_the_batches(monkeypatch):
    """Count words that something is made of; every batch has other words."""
    made = []

    class Counting(Lookup):
        def __init__(self, categories):
            made.append(categories.size)
            super().__init__(categories)

    def ordered(values):
        made.append(values.size)
        return in_order(values)

    monkeypatch.setattr(specification, "Lookup", Counting)
    monkeypatch.setattr(merging, "in_order", ordered)
    words = [f"w{k}" for k in range(300)]
    batches = [pa.table({"w": words[k : k + 3]}) for k in range(0, 300, 3)]
    table = CodedTable.from_batches(batches)
    assert table._table.columns.categories[0].tolist() == sorted(words)
    assert sum(made) <= 3 * len(words)  # in their batch, merged, looked up


# ------------------------------------------------------------------------------ refusals
X2 = np.zeros((3, 2))
REFUSED = {
    "an iterator": (lambda: iter([X2]), TypeError, "read twice"),
    "nothing": (lambda: [], ValueError, "0 rows in all"),
    "columns": (lambda: [X2, X2[:, :1]], ValueError, "Batch 1: it has 1 columns"),
    "some targets": (lambda: [(X2, [0, 1, 0]), X2], ValueError, "Batch 1: it has a target, and"),
    "a short target": (
        lambda: [(X2, [0, 1])],
        ValueError,
        r"Batch 0: .* shape \(3,\) or \(3, k\), got \(2,\)",
    ),
    "names": (
        lambda: [pa.table({"a": [1.0]}), pa.table({"b": [1.0]})],
        ValueError,
        "Batch 1: its columns have other names",
    ),
    "order": (
        lambda: [pa.table({"a": [1.0], "b": [2.0]}), pa.table({"b": [2.0], "a": [1.0]})],
        ValueError,
        "Batch 1: its columns are in another order",
    ),
    "kinds": (
        lambda: [pa.table({"a": [1.0]}), pa.table({"a": ["x"]})],
        ValueError,
        "Batch 1: Column 'a' of X held numbers in earlier batches and holds categories",
    ),
    "dates": (
        lambda: [pa.table({"a": pa.array([0], pa.date32())})],
        ValueError,
        "Batch 0: Column 'a' of X: it must hold numbers",
    ),
    "labels of other kinds": (
        lambda: [(X2, [0, 1, 0]), (X2, ["a", "b", "a"])],
        ValueError,
        "Batch 1: its target holds labels that are no numbers, and those of earlier batches numb",
    ),
    "infinity": (lambda: [X2, np.full((1, 2), np.inf)], ValueError, "infinity"),
    "one table": (lambda: X2, TypeError, "must be an iterable of tables, got one ndarray"),
    "a number": (lambda: [5], ValueError, "Batch 0: a table of rows and columns is expected"),
    "three": (lambda: [(X2, [0] * 3, None)], ValueError, "Batch 0: a batch is a table, or a pair"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    make, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        CodedTable.from_batches(make())


WORDS = pa.table({"w": ["a", "b", "a"]})
OTHERS = {
    "more": [X2, X2],
    "fewer": [],
    "rows": [X2[:2]],
    "order": [X2 + np.arange(6).reshape(3, 2)[::-1]],
    "kind of numbers": [X2 + 2.0**-40],
    "targets": [(X2, [0, 1, 1])],
    "categories": [pa.table({"w": ["a", "c", "a"]})],
}


@pytest.mark.parametrize("name", OTHERS)
def test_batches_that_change_between_the_passes(name):
    first = {
        "order": [X2 + np.arange(6).reshape(3, 2)],
        "kind of numbers": [X2.astype(np.float32)],
        "targets": [(X2, [0, 1, 0])],
        "categories": [WORDS],
    }.get(name, [X2])
    passes = iter([first, OTHERS[name]])
    with pytest.raises(ValueError, match="changed while they were read: 3 rows at first"):
        CodedTable.from_batches(lambda: next(passes))


def test_record_batches_have_names_and_lists_keep_numbers():
    table, _ = frame()
    found = CodedTable.from_batches(table.to_batches(max_chunksize=90))
    assert found.feature_names_in_.tolist() == table.column_names
    assert found.shape == (400, 4)
    mixed = [[1.5, "a"], [2.5, "b"]]
    columns = DecisionTreeClassifier().fit(CodedTable.from_batches([mixed]), [0, 1]).columns_
    assert columns.nominal.tolist() == [False, True]


def test_targets_are_taken_and_do_not_hold_their_batches():
    rows = np.arange(12.0).reshape(4, 3)
    table = CodedTable.from_batches([(rows[:, :2], rows[:, 2])])
    assert table.target.base is None
    assert table.take((0, 2)).target.tolist() == [2.0, 8.0]
    assert table.take([]).target.size == 0
    assert table[1:].target.tolist() == [5.0, 8.0, 11.0]


@pytest.mark.parametrize("which", ["values", "codes"])
def test_a_folder_without_room(monkeypatch, tmp_path, which):
    calls = []

    def full(*_):
        calls.append(1)
        if which == "values" or len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    before = open_files()
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(OSError, match=r"no space for .* bytes .*'folder'"):
        CodedTable.from_batches([X2], folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


def test_a_disk_that_is_full_while_it_is_written_to(monkeypatch, tmp_path):
    """Fail as where the file system cannot reserve space in advance."""

    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    def none(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", none, raising=False)
    monkeypatch.setattr(reading, "temporary_file", lambda _: Full())
    monkeypatch.setattr(Full, "fileno", lambda _: 0)
    with pytest.raises(OSError, match=r"no space for 48 bytes .*'folder'"):
        CodedTable.from_batches([X2], folder=tmp_path)


def open_files() -> int:
    """Files that this process has open, where the system reports them."""
    gc.collect()
    folder = "/proc/self/fd"
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("after", [2, 4])
def test_an_interrupt_leaves_nothing(tmp_path, error, after):
    """In the first pass, and in the second."""
    read = []

    def batches():
        for _ in range(3):
            read.append(1)
            if len(read) > after:
                raise error
            yield X2

    before = open_files()
    with pytest.raises(error):
        CodedTable.from_batches(batches, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert open_files() == before


def test_progress_tells_rows_and_bytes(monkeypatch):
    told = []

    bar = SimpleNamespace(
        format_sizeof=tqdm.format_sizeof,
        set_postfix_str=lambda text, refresh: told.append(text),
        update=told.append,
        close=lambda: told.append("closed"),
    )

    def new_bar(total, enabled, *, desc, **_):
        told.extend([desc, total])
        return bar

    monkeypatch.setattr(progress, "new_bar", new_bar)
    CodedTable.from_batches([X2, X2[:2]], verbose=1)
    once = ["48.0B", 3, "80.0B", 2, "closed"]
    assert told == ["looking", None, *once, "reading", 5, *once]


def test_rows_of_weight_zero_stay_in_files(monkeypatch, tmp_path):
    """Bins of a binned fit are those of the rows that count: they are copied, to a file."""
    table, y = frame()
    weight = np.random.default_rng(2).choice([0.0, 1.0, 2.0], 400)
    model = DecisionTreeClassifier(splitter="binned", max_depth=5)
    expected = model.fit(table, y, weight).tree_
    read = CodedTable.from_batches(cut(table, y, [100, 100]), folder=tmp_path)
    made = []
    real = reading.temporary_file
    monkeypatch.setattr(reading, "temporary_file", lambda f: made.append(f) or real(f))
    assert model.fit(read, y, weight).tree_.equals(expected)
    assert made == [tmp_path] * 2  # values and codes


@pytest.mark.parametrize("rows", [[], [5], np.random.default_rng(0).permutation(400)[:99]])
def test_answers_for_some_rows_are_found_in_blocks(monkeypatch, rows):
    table, y = frame()
    model = DecisionTreeClassifier(max_depth=4).fit(table, y)
    read = CodedTable.from_batches(cut(table, y, [100]))
    rows = np.asarray(rows, np.int64)
    wholes = [f(read)[rows] for f in (model.predict_proba, model.apply, model.decision_path)]
    monkeypatch.setattr("gputree.inputs.tables.BLOCK_BYTES", 600)
    part = read.take(rows)
    parts = [f(part) for f in (model.predict_proba, model.apply, model.decision_path)]
    for whole, found in zip(wholes[:2], parts[:2], strict=True):
        np.testing.assert_array_equal(found, whole)
        assert found.dtype == whole.dtype
    assert (parts[2] != wholes[2]).nnz == 0
    assert parts[2].shape == wholes[2].shape


def test_files_have_no_names_and_other_processes_none(tmp_path):
    table = CodedTable.from_batches([X2], folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="files of this process"):
        pickle.dumps(table)


# --------------------------------------------------------------------------------- files
@pytest.mark.parametrize("suffix", [".csv", ".arrow", ".parquet"])
def test_files(tmp_path, suffix):
    table, y = frame(160)
    table = table.drop(["flag"]).append_column("y", pa.array(y))
    for k in range(4):
        write_table(table.slice(40 * k, 40), tmp_path / f"part{k}{suffix}", 20)
    (tmp_path / "notes.txt").write_text("no table")
    model = DecisionTreeClassifier()
    expected = model.fit(table.drop(["y"]), y).tree_
    files = sorted(tmp_path.glob(f"*{suffix}"))
    for paths in (tmp_path, str(tmp_path / f"*{suffix}"), files):
        read = CodedTable.from_batches(open_batches(paths, "y"))
        assert model.fit(read, read.target).tree_.equals(expected)
    one = open_batches(files[0], "y", ignore=["b"])
    assert one.names == ["a", "word"]


def test_whole_numbers_of_csv_stay_labels(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1.5,0\n2,1\n")
    read = CodedTable.from_batches(open_batches(tmp_path / "t.csv", "y"))
    assert read.target.dtype.kind == "i"


def test_a_target_of_csv_that_has_fractions_further_down(tmp_path, monkeypatch):
    monkeypatch.setattr("gputree.datasets.delimited.BATCH_BYTES", 64)
    lines = [f"{k},{k}\n" for k in range(50)] + ["50,0.5\n"]
    (tmp_path / "t.csv").write_text("a,y\n" + "".join(lines))
    read = CodedTable.from_batches(open_batches(tmp_path / "t.csv", "y", numeric=["y"]))
    assert read.target[-1] == 0.5


def test_files_that_do_not_fit(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,0\n")
    (tmp_path / "b.csv").write_text("b,y\n1,0\n")
    with pytest.raises(ValueError, match=r"b\.csv has no column 'a'"):
        open_batches(tmp_path, "y")
    with pytest.raises(FileNotFoundError, match="no file"):
        open_batches(str(tmp_path / "*.parquet"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no CSV, Parquet or Arrow file in"):
        open_batches(tmp_path / "empty", "y")
    (tmp_path / "d.csv").write_text("when,y\n2020-01-01,0\n")
    with pytest.raises(ValueError, match="'when' hold dates or times"):
        open_batches(tmp_path / "d.csv", "y")


def test_files_without_rows_are_passed_over(tmp_path):
    (tmp_path / "a.csv").write_text("w,y\n")
    (tmp_path / "b.csv").write_text("")
    (tmp_path / "c.csv").write_text("w,y\n,1\n")
    (tmp_path / "d.csv").write_text("w,y\nx,0\nz,1\n")  # the first to say what w holds
    read = CodedTable.from_batches(open_batches(tmp_path, "y"))
    assert read.target.tolist() == [1, 0, 1]
    assert read._table.columns.categories[0].tolist() == ["x", "z"]
    with pytest.raises(ValueError, match=r"a\.csv has a header but no rows\."):
        CodedTable.from_batches(open_batches(tmp_path / "a.csv", "y"))
    with pytest.raises(ValueError, match=r"b\.csv is empty"):
        open_batches(tmp_path / "b.csv", "y")
    (tmp_path / "more").mkdir()
    table, y = frame(8)
    table = table.append_column("y", pa.array(y))
    for k, part in enumerate((table.slice(0, 0), table, table.slice(0, 0))):
        write_table(part, tmp_path / "more" / f"{k}.parquet")
    assert len(CodedTable.from_batches(open_batches(tmp_path / "more", "y"))) == 8


def test_truth_values_of_csv_are_those_of_memory(tmp_path, monkeypatch):
    table, y = frame(90)
    path = write_table(table.append_column("y", pa.array(y == "yes")), tmp_path / "t.csv")
    whole = read_table(path, "y")
    read = CodedTable.from_batches(open_batches(path, "y"))
    assert read.target.dtype == whole.target.dtype == bool
    model = DecisionTreeClassifier()
    assert model.fit(read, read.target).tree_.equals(model.fit(whole.columns, whole.target).tree_)
    monkeypatch.setattr("gputree.datasets.delimited.BATCH_BYTES", 64)
    path.write_text("a,y\n" + "true,1\n" * 30 + "perhaps,0\n")
    with pytest.raises(ValueError, match=r"t\.csv: column 'a' holds booleans .*'perhaps' .*text="):
        CodedTable.from_batches(open_batches(path, "y"))
    read = CodedTable.from_batches(open_batches(path, "y", text=["a"]))
    assert read._table.columns.categories[0].tolist() == ["perhaps", "true"]


BAD_FILES = {
    "ragged": (
        b"a,y\n1,0\n2,1,5\n",
        r"t\.csv, line 3: expected 2 cells, as the first row has, got 3",
    ),
    "latin-1": ("a,y\ncaf\u00e9,0\n".encode("latin-1"), r"t\.csv is not UTF-8 text"),
    "a latin-1 name": ("a\u00e9,y\n1,0\n".encode("latin-1"), r"t\.csv is not UTF-8 text"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_files_that_cannot_be_read(tmp_path, name):
    text, message = BAD_FILES[name]
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        open_batches(tmp_path / "t.csv", "y")


def test_a_bad_row_further_down(tmp_path, monkeypatch):
    monkeypatch.setattr("gputree.datasets.delimited.BATCH_BYTES", 64)
    folder = tmp_path / "files"
    folder.mkdir()
    path = tmp_path / "t.csv"
    for row, message in (
        ("1,2,3", "line 52: expected 2 cells"),
        ("x,0", "must hold numbers.* 'x'"),
    ):
        path.write_text("a,y\n" + "1,0\n" * 50 + row + "\n")
        with pytest.raises(ValueError, match=message):
            CodedTable.from_batches(open_batches(path, "y"), folder=folder)
    assert list(folder.iterdir()) == []


def test_mapped_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr("gputree.datasets.sources.BATCH_BYTES", 100)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 3, 120)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    read = CodedTable.from_batches(ArrayBatches(mapped, y))
    model = DecisionTreeClassifier()
    assert model.fit(read, read.target).tree_.equals(model.fit(X, y).tree_)
    assert CodedTable.from_batches(ArrayBatches(mapped)).target is None
    with pytest.raises(ValueError, match="rows and columns"):
        ArrayBatches(y)
    with pytest.raises(ValueError, match=r"y must have the shape \(120,\), got \(119,\)"):
        ArrayBatches(X, y[1:])


def test_a_file_that_changes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,1\n")
    batches = open_batches(path, "y")
    path.write_text("a,y\n1,0\n2,1\n3,1\n")
    with pytest.raises(ValueError, match=r"t\.csv changed while it was read"):
        CodedTable.from_batches(batches)
