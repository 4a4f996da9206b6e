"""Formats of files: guesses are reported, options override them, models keep them."""

import numpy as np
import pyarrow as pa
import pytest

from gputree import load_model
from gputree.cli.reading import as_options
from gputree.datasets.file_format import Option

ROWS = [f"{n},{n % 5},{'p' if n > 15 else 'n'}" for n in range(30)]


@pytest.fixture
def train(gputree, tmp_path):
    """Train; the status, what was said on standard error, and the model's file."""

    def run(text, *options, name="t.csv", target="y"):
        data, model = tmp_path / name, tmp_path / "model"
        data.write_text(text)
        status, _, errors = gputree("train", data, "--target", target, "-o", model, *options)
        assert status == 0, errors
        return model, errors

    return run


def test_guesses_are_in_words_of_the_command(train):
    text = "5.1,3.5,y\n" + "\n".join([*ROWS, *ROWS]) + "\nx,1,p\n"
    _, errors = train(text)
    header, texts, *_ = errors.splitlines()
    assert header.startswith("gputree: warning: ")
    assert "If it is one, add --no-header, or --names A,B,... with a name" in header
    assert "column '5.1' holds 60 numbers and 1 text ('x')" in texts
    assert "add --missing x; --numeric 5.1 makes an error of it" in texts


def test_batches_say_what_one_file_says(gputree, tmp_path):
    """Cells are counted, not the different ones; and classes and large integers are looked at."""
    lines = [f"{2**60 + n},{n % 9},{'NA' if n % 7 == 3 else 'p'}\n" for n in range(40)]
    whole, (first, second) = tmp_path / "t.csv", (tmp_path / "1.csv", tmp_path / "2.csv")
    lines[3] = lines[5] = f"{2**60},-,p\n"
    for path, rows in ((whole, lines), (first, lines[:20]), (second, lines[20:])):
        path.write_text("key,a,y\n" + "".join(rows))
    said = []
    for files in ([whole], [first, second]):
        status, _, errors = gputree("train", *files, "--target", "y", "-o", tmp_path / "model")
        assert status == 0, errors
        said.append({line.split(": ", 3)[-1] for line in errors.splitlines()})
    assert "'NA' is a class of the target column 'y', of 5 rows. If it" in "".join(said[0])
    assert "column 'a' holds 38 numbers and 2 texts ('-')" in "".join(said[1])
    assert "holds integers beyond 2**53" in "".join(said[1])
    same = [{line for line in lines if "2**53" not in line} for lines in said]
    assert same[0] == same[1]


def test_options_as_they_are_typed():
    options = [
        Option("missing", ["?", "n.d.", "--"]),
        Option("units", ["a b", "c,d"]),
        Option("thousands", "'"),
        Option("missing_target", "drop"),
        Option("ignore", [""]),
    ]
    assert as_options(options) == [
        "--missing '?' --missing n.d. --missing=--",
        "--units 'a b,\"c,d\"'",
        "--thousands ''\"'\"''",
        "--drop-missing-target",
        "--ignore '\"\"'",
    ]


@pytest.mark.parametrize("names", [["--names", "y,a,b"], ["--no-header"]])
def test_tables_without_a_header_are_predicted_alike(train, gputree, tmp_path, names):
    """With the target, without it, and with a header."""
    y = "y" if "--names" in names else "V1"
    turned = [",".join([row.split(",")[2], *row.split(",")[:2]]) for row in ROWS]
    model, _ = train("\n".join(turned) + "\n", *names, target=y)
    other = tmp_path / "other.csv"
    a, b = ("a", "b") if y == "y" else ("V2", "V3")
    bodies = [
        "\n".join(turned),
        "\n".join(row.partition(",")[2] for row in turned),
        f"{b},{a}\n" + "\n".join(",".join(row.split(",")[:0:-1]) for row in turned),
    ]
    expected = "prediction\n" + "".join(row.split(",")[2] + "\n" for row in ROWS)
    for body in bodies:
        other.write_text(body + "\n")
        assert gputree("predict", model, other)[:2] == (0, expected)
    piped = tmp_path / "piped"
    told = gputree(
        "train", "-", "--target", y, "-o", piped, "--quiet", *names, stdin=bodies[0].encode()
    )
    assert told[0] == 0
    for body in bodies[:2]:
        assert gputree("predict", model, "-", stdin=body.encode())[:2] == (0, expected)
        assert gputree("predict", piped, "-", stdin=body.encode())[:2] == (0, expected)
    other.write_text(bodies[0] + "\n")
    status, output, _ = gputree("evaluate", model, other)
    assert status == 0
    assert "accuracy  1.0000" in output


def test_units_and_decimals_are_kept(train, gputree, write):
    text = "a;y\n" + "".join(f"1.{n}50,5 kg;{'np'[n > 5]}\n" for n in range(1, 10))
    options = ["--units", "a", "--thousands", ".", "--decimal", ","]
    model, errors = train(text, *options)
    assert errors == ""
    assert load_model(model).tree_.n_leaves == 2
    other = write("a;b\n1.050,5 kg;1\n1.950,5 kg;2\n", "other.csv")
    assert gputree("predict", model, other)[1] == "prediction\nn\np\n"


def test_weights_of_some_files_of_arff_count_in_pruning(train, gputree, tmp_path):
    model, _ = train("a,y\n" + "".join(f"{n},{'np'[n > 5]}\n" for n in range(1, 10)))
    head = "@relation t\n@attribute a numeric\n@attribute y {n,p}\n@data\n"
    plain, weighted = tmp_path / "plain.arff", tmp_path / "weighted.arff"
    plain.write_text(head + "1,n\n9,p\n")
    weighted.write_text(head + "9,n,{5}\n")
    pruned = tmp_path / "pruned"
    prune = ["prune", model, plain, weighted, "--pruning", "reduced_error", "-o", pruned]
    assert gputree(*prune)[0] == 0
    assert load_model(pruned).tree_.n_leaves == 1
    for files in ([plain, weighted], [weighted, plain]):
        status, text, _ = gputree("evaluate", model, *files)
        assert status == 0
        assert text.splitlines()[:2] == ["rows      3", "weight    7"]


def test_other_units_than_those_of_training(train, gputree, fails, write, tmp_path):
    text = "a,y\n" + "".join(f"{n} kg,{'np'[n > 5]}\n" for n in range(1, 10))
    model, _ = train(text, "--units", "a", name="kg.csv")
    assert load_model(model).reading_["format"] == {"units": {"a": "#kg"}}
    told = "column 'a' must hold numbers with the unit 'kg'; it holds '3 lb'."
    pounds = write("a,y\n3 lb,n\n", "lb.csv")
    for options in ([], ["--units", "a"]):
        assert fails("predict", model, pounds, *options).endswith(f"{told}\n")
    assert told in fails("predict", model, "-", stdin=b"a\n3 lb\n")
    other = ["--target", "y", "--units", "a", "-o", model]
    assert told in fails("train", tmp_path / "kg.csv", pounds, *other)


def test_the_encoding_is_kept(gputree, fails, tmp_path):
    data, model = tmp_path / "t.csv", tmp_path / "model"
    data.write_bytes(("a,y\n" + "é€,n\nx,p\n" * 5).encode("cp1252"))
    train = ["train", data, "--target", "y", "-o", model]
    assert "--encoding cp1252" in fails(*train)
    assert gputree(*train, "--encoding", "cp1252")[0] == 0
    assert load_model(model).reading_["format"] == {"encoding": "cp1252"}
    assert gputree("predict", model, data)[1] == "prediction\n" + "n\np\n" * 5
    utf8 = tmp_path / "utf8.csv"
    utf8.write_text("a,y\né€,n\n", encoding="utf-8-sig")
    assert gputree("predict", model, utf8)[1] == "prediction\nn\n"
    for encoding in ("ascii", "utf-16"):
        found = fails("predict", model, data, "--encoding", encoding)
        assert f"is not text of the encoding {encoding!r}" in found


def test_rows_without_a_target(train, gputree, fails, tmp_path):
    text = "a,b,y\n" + "\n".join([*ROWS, "1,2,NA", "1,2,"])
    data = tmp_path / "t.csv"
    marks = ["--missing", "NA"]
    model, errors = train(text, *marks, "--drop-missing-target")
    assert "2 rows without a target dropped" in errors
    assert load_model(model).tree_.n_rows[0] == 30
    assert "or add --drop-missing-target" in fails("evaluate", model, data)
    status, output, errors = gputree("evaluate", model, data, "--drop-missing-target")
    assert status == 0
    assert "2 rows without a target dropped" in errors
    assert "rows      30" in output


def test_weights_of_arff(train, gputree, tmp_path):
    rows = "".join(f"{{0 {n}, 1 {'np'[n > 5]}}}, {{{n}}}\n" for n in range(1, 10))
    text = f"@relation r\n@attribute a numeric\n@attribute y {{n,p}}\n@data\n{rows}{{}}\n"
    model, _ = train(text, name="t.arff")
    assert load_model(model).tree_.n_rows[0] == 10
    output = gputree("evaluate", model, tmp_path / "t.arff")[1]
    assert "weight    46" in output
    assert "accuracy  1.0000" in output


def test_the_other_task_is_said(train):
    text = "a,y\n" + "".join(f"{n},{n % 9}\n" for n in range(40))
    _, errors = train(text)
    assert "holds 9 different integers, and is taken for classes" in errors
    assert "quantities: --task regression" in errors
    text = "a,y\n" + "".join(f"{n},{n % 25}\n" for n in range(40))
    assert "taken for quantities. They may be classes: --task class" in train(text)[1]
    assert train(text, "--task", "regression")[1] == ""
    assert train("a,y\n" + "".join(f"{n},{n % 3}\n" for n in range(40)))[1] == ""


def test_the_columns_of_a_table(gputree, write):
    data = write(",n,s,f,y\n" + "".join(f"r{k},{k},{'uvw'[k % 3]},,p\n" for k in range(9)))
    status, output, errors = gputree("info", data, "--target", "y", "--categorical", "n")
    assert status == 0
    assert output.splitlines() == [
        "table     9 rows, 3 columns",
        "left out  ''",
        "target    y: classification, 1 class, such as p",
        "",
        "column  kind                    missing  values        examples",
        "n       integers as categories  0        9 categories  0, 1, 2",
        "s       text                    0        3 categories  u, v, w",
        "f       no values               9        0 categories",
    ]
    assert "column '' holds row names, unnamed, and is left out" in errors
    lines = [f"Mr {n},{n % 9}\n" for n in range(40)]
    data.write_text("who,y\n" + "".join(lines))
    _, _, errors = gputree("info", data, "--target", "y")
    assert "column 'who' has a unique value in every row, and is taken for categ" in errors
    assert "To leave it out add --ignore who" in errors
    assert "holds 9 different integers, and is taken for classes" in errors
    data.write_text("who,y\n" + "".join(lines * 2))
    assert "who" not in gputree("info", data, "--target", "y")[2]
    data.write_text("n,y\n1.5,p\n,p\n-2,q\n")
    _, output, _ = gputree("info", data)
    assert "n       numbers  1        -2 to 1.5     1.5, -2" in output
    data.write_text('s,y\n"a\nb",p\nc,q\n')
    _, output, _ = gputree("info", data, "--ordered", 's="a\nb"<c')
    assert r"s       ordered categories  0        2 categories  a\nb, c" in output


def test_the_columns_of_an_arrow_file(gputree, tmp_path):
    levels = pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.uint8()), pa.array(["lo", "hi"], pa.string_view()), ordered=True
    )
    halves = pa.array([0.0, np.nan], pa.float16())
    text = pa.array(["", "a"], pa.string_view())
    columns = {"level": levels, "half": halves, "text": text, "list": [[1], None]}
    table = pa.table(columns | {"y": ["p", "q"]})
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write(table)
    status, output, _ = gputree("info", tmp_path / "t.arrow", "--target", "y")
    assert status == 0
    assert output.splitlines()[4:] == [
        "level   ordered categories  0        2 categories  lo, hi",
        "half    numbers             1        0 to 0        0",
        "text    text                1        1 category    a",
        "list    list<item: int64>   1",
    ]
    model = tmp_path / "model"
    kept = ["train", tmp_path / "t.arrow", "--target", "y", "--columns", "level,half,text"]
    assert gputree(*kept, "-o", model)[0] == 0
    assert gputree("predict", model, tmp_path / "t.arrow")[1] == "prediction\np\nq\n"
