"""ARFF files: what Weka's header declares, and rows that do not fit it."""

import gzip

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputree import C45Classifier
from gputree.columns import fit_columns
from gputree.datasets import load_golf, open_batches, read_batches, read_table
from gputree.datasets.arff import read_arff

WEATHER = """% of Weka's kind
@RELATION 'the weather'

@attribute outlook {sunny, 'over cast', rainy, snow}
@attribute "temp'rature" NUMERIC
@ATTRIBUTE wind   real
@attribute note string
@attribute 'day of it' date "yyyy-MM-dd"
@attribute play {yes,no}
@data
sunny, 85, 0.5, 'it\\'s, hot', "2024-01-31", no
% a row that is not there
'over cast',?,1,?,?,yes
?\t64\t?\tcold\t?\tno
"""


@pytest.fixture
def weather(tmp_path):
    path = tmp_path / "weather.arff"
    path.write_text(WEATHER)
    return path


def test_columns_as_declared(weather):
    table = read_table(weather, "play", ignore=["day of it"])
    assert table.target.tolist() == ["no", "yes", "no"]
    assert table.columns.to_pydict() == {
        "outlook": ["sunny", "over cast", None],
        "temp'rature": [85, None, 64],
        "wind": [0.5, 1.0, None],
        "note": ["it's, hot", None, "cold"],
    }
    columns = fit_columns(table.columns)
    assert columns.categories[0].tolist() == ["sunny", "over cast", "rainy", "snow"]
    assert columns.nominal.tolist() == [True, False, False, True]
    assert pa.types.is_timestamp(read_table(weather, "play").columns["day of it"].type)


def test_it_is_read_as_other_files_are(weather, tmp_path):
    packed = tmp_path / "weather.arff.gz"
    packed.write_bytes(gzip.compress(WEATHER.replace("\n", "\r\n").encode()))
    names = ["wind", "outlook"]
    expected = read_table(weather, columns=names).columns
    assert read_table(packed, columns=names).columns.equals(expected)
    [batch] = read_batches(weather, names, text=["outlook"], numeric=["wind"])
    assert batch.to_pydict() == expected.to_pydict()


def test_trees_of_golf(gputree, tmp_path):
    """Declared categories have branches, rows of theirs or not, as in J48."""
    golf = load_golf()
    rows = [[*row, label] for row, label in zip(golf.data, golf.target, strict=True)]
    header = "".join(
        f"@attribute {name} {{{','.join(sorted(set(column)))},other}}\n"
        for name, column in zip([*golf.feature_names, "play"], zip(*rows, strict=True), strict=True)
    )
    path, model = tmp_path / "golf.arff", tmp_path / "model"
    path.write_text(f"@relation golf\n{header}@data\n" + "".join(f"{','.join(r)}\n" for r in rows))
    arguments = ["train", path, "--target", "play", "--algorithm", "c45", "-o", model]
    assert gputree(*arguments)[0] == 0
    shown = gputree("show", model)[1]
    assert "outlook = other: yes (0)" in shown
    expected = C45Classifier().fit(golf.data, golf.target).predict(golf.data).tolist()
    assert gputree("predict", model, path)[1].split() == ["prediction", *expected]
    assert "accuracy  1.0000" in gputree("evaluate", model, path)[1]


words = st.text(st.characters(codec="utf-8", exclude_characters="\n\r", exclude_categories=["C"]))


@given(st.lists(st.one_of(st.none(), words), min_size=1))
def test_quoted_words_round(cells):
    def quoted(cell):
        escaped = cell.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"

    rows = "".join(f"{'?' if cell is None else quoted(cell)}, 1\n" for cell in cells)
    text = f"@attribute a string\n@attribute b numeric\n@data\n{rows}"
    assert read_arff("table", text)["a"].to_pylist() == cells


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("85", "hot", "line 11: column \"temp'rature\" holds 'hot', which is not a number"),
        ("sunny, 85", "fog, 85", r"line 11: column 'outlook' holds 'fog', .* one of \['sunny'"),
        ("sunny, 85", "{0 sunny, 9 x}\nsunny, 85", "line 11: places of a sparse row must ascend"),
        (", no\n", "\n", "line 11: expected 6 cells, got 5"),
        ("@data", "", "line 11: this declares no column: sunny"),
        ("string", "relational", "line 7: this declares no column: @attribute note"),
    ],
)
def test_files_that_do_not_fit(weather, old, new, message):
    weather.write_text(WEATHER.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        read_table(weather, "play")


def test_other_encodings_and_headers_alone(weather):
    with pytest.raises(ValueError, match="has no line @data"):
        read_arff("table", "@attribute a numeric\n")
    weather.write_text("@attribute a numeric\n@attribute play {x}\n@data\n")
    with pytest.raises(ValueError, match="a header but no rows"):
        read_table(weather, "play")
    weather.write_bytes("@attribute é numeric\n@data\n1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        read_table(weather)


# ------------------------------------------------ tokens as java.io.StreamTokenizer reads them
HEAD = "@relation r\n@attribute a numeric\n@attribute c {x,y}\n@data\n"
PLAIN = {"a": [1, 2], "c": ["x", "y"]}

WHOLE = {
    "comment behind braces": (
        "@relation r\n@attribute a numeric\n@attribute label {-1,1} %{<=50K, >50K}\n@data\n"
        "1,-1\n2,1\n",
        {"a": [1, 2], "label": ["-1", "1"]},
    ),
    "comment behind a type": (HEAD.replace("numeric", "numeric % years") + "1,x\n2,y\n", PLAIN),
    "comment within a row": (HEAD + "1,x% first\n2%,x\n,y\n", None),
    "comment behind a row": (HEAD + "1,x % first\n2,y%, or so\n", PLAIN),
    "no comment in quotes": (
        HEAD.replace("{x,y}", "{'5%','x%y'}") + "1,'5%'\n2,\"x%y\"\n",
        {"a": [1, 2], "c": ["5%", "x%y"]},
    ),
    "a brace ends a word": (HEAD.replace("c {", "c{") + "1,x\n2,y\n", PLAIN),
    "a quote ends a word": (
        HEAD.replace("{x,y}", "{x'y z'}") + "1,x\n2,'y z'\n",
        {"a": [1, 2], "c": ["x", "y z"]},
    ),
    "no-break space": (
        HEAD.replace("{x,y}", "{new\u00a0york,y}") + "1,new\u00a0york\n2,y\n",
        {"a": [1, 2], "c": ["new\u00a0york", "y"]},
    ),
    "ideographic space, beside quotes": (
        HEAD.replace("{x,y}", "{a\u3000b,'y'}") + "1,a\u3000b\n'2',y\n",
        {"a": [1, 2], "c": ["a\u3000b", "y"]},
    ),
    "control characters part words": (HEAD + "1\x0b\x01x\n\x1f2\t,,\ty\x00\n", PLAIN),
    "escapes": (
        HEAD.replace("{x,y}", r"{'a\tb',atb,'\101\47','\8'}") + "1,'a\\tb'\n2,'A\\''\n",
        {"a": [1, 2], "c": ["a\tb", "A'"]},
    ),
    "a quote that does not end": (HEAD + "1,'x\n2,y\n", PLAIN),
    "lines that end in CR": ((HEAD + "1,x\n2,y\n").replace("\n", "\r"), PLAIN),
    "lines that end in CR LF": ((HEAD + "1,x\n2,y\n").replace("\n", "\r\n"), PLAIN),
    "a question mark in quotes": (
        HEAD.replace("{x,y}", "{'?',y}") + "1,'?'\n?,?\n",
        {"a": [1, None], "c": ["?", None]},
    ),
    "what is behind a numeric type": (
        HEAD.replace("numeric", "real [0.0, 10.0]") + "1,x\n2,y\n",
        PLAIN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_words(tmp_path, name):
    text, expected = WHOLE[name]
    path = tmp_path / "t.arff"
    path.write_bytes(text.encode())
    if expected is None:  # a row that ends where a comment begins has too few cells
        with pytest.raises(ValueError, match=r"line 6: expected 2 cells, got 1"):
            read_table(path)
        return
    assert read_table(path).columns.to_pydict() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "1,x,{-5}\n", r"line 5: the weight of a row must be a number from 0. Got '-5'"),
        (HEAD + "1,{x\n", "line 5: a brace in a word must be in quotes"),
        (HEAD + "{0 1, 1}\n", r"line 5: a sparse row must be \{PLACE CELL, ...\}"),
        (HEAD + "{1 x, 0 1}\n", "line 5: places of a sparse row must ascend, from 0 to 1. Got '0'"),
        (HEAD + "{2 1}\n", "line 5: places of a sparse row must ascend, from 0 to 1. Got '2'"),
        (HEAD.replace("@data", "@inputs a\n@data") + "1,x\n", "line 4: .*It is of KEEL's files"),
        (HEAD.replace("{x,y}", "{x,y} z") + "1,x\n", "line 3: this declares no column"),
        (HEAD.replace("{x,y}", "{x,y") + "1,x\n", "line 3: this declares no column"),
        (HEAD + "1_000,x\n", "line 5: column 'a' holds '1_000', which is not a number"),
        (HEAD + "\uff11,x\n", "line 5: column 'a' holds '\uff11', which is not a number"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    path = tmp_path / "t.arff"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        read_table(path)


# ---------------------------------------------------------------------------- sparse rows, weights
def test_sparse_rows_are_dense_rows(tmp_path):
    head = HEAD.replace("@data", "@attribute s string\n@attribute t {'a b',c}\n@data")
    sparse, dense = tmp_path / "sparse.arff", tmp_path / "dense.arff"
    sparse.write_text(head + "{}\n{0 2.5, 3 c}\n{1 y, 2 'w w', 3 ?}\n{0 ?}\n1,x,q,c\n")
    dense.write_text(head + "0,x,?,'a b'\n2.5,x,?,c\n0,y,'w w',?\n?,x,?,'a b'\n1,x,q,c\n")
    found = read_table(sparse)
    assert found.columns.equals(read_table(dense).columns)
    assert found.weight is None


def test_weights_of_rows(write):
    path = write(HEAD + "1,x,{2}\n{0 3}, {0.5}\n?,?\n", "t.arff")
    table = read_table(path, "c", missing_target="drop")
    assert table.names == ["a"]
    assert table.weight.tolist() == [2.0, 0.5]
    assert read_table(path).weight.tolist() == [2.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="has weights of rows, which are read of one file in mem"):
        open_batches(path)
    plain = write(HEAD + "1,x\n", "plain.arff")
    with pytest.raises(ValueError, match=r"t\.arff has weights of rows"):
        open_batches([plain, path])
    path.write_text(HEAD + "1,x,{1}\n2,y\n")
    assert read_table(path).weight is None
