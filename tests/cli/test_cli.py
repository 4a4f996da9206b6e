"""The `gputree` command as a user types it."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gputree.cli import main
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.persistence import load_model

IRIS = load_iris()
CARS = load_auto_mpg()


@pytest.fixture(scope="module")
def iris_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "iris.gputree"
    arguments = ["--target", "species", "--max-depth", "3", "--quiet", "-o", str(path)]
    assert main(["train", IRIS.filename, *arguments]) == 0
    return path


@pytest.fixture(scope="module")
def cars_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "cars.gputree"
    assert main(["train", CARS.filename, "--target", "mpg", "--quiet", "-o", str(path)]) == 0
    return path


def summary_of(output) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in output.splitlines())


def rows_of(text) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


# ------------------------------------------------------------------- train
def test_train_a_classifier(said, tmp_path):
    path = tmp_path / "model"
    output = said("train", IRIS.filename, "--target", "species", "-o", path)
    summary = summary_of(output)
    estimator = load_model(path)
    tree = estimator.tree_
    assert summary["table"] == "150 rows, 4 columns"
    assert summary["task"] == "classification, 3 classes"
    assert (
        summary["tree"] == f"{tree.n_nodes} nodes, {tree.n_leaves} leaves, depth {tree.max_depth}"
    )
    assert "accuracy 1.0000 on the training rows" in summary["training"]
    assert summary["model"] == str(path)
    assert list(estimator.feature_names_in_) == IRIS.feature_names


def test_options_reach_the_estimator(gputree, tmp_path):
    options = {
        "device": "cpu",
        "criterion": "entropy",
        "splitter": "binned",
        "max_depth": 2,
        "max_leaf_nodes": 3,
        "min_samples_split": 0.25,
        "min_samples_leaf": 5,
        "min_impurity_decrease": 0.001,
        "max_features": "sqrt",
        "class_weight": "balanced",
        "pruning": "penalized_loss",
        "random_state": 3,
        "n_jobs": 1,
    }
    flags = [
        word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    path = tmp_path / "model"
    columns = ["--columns", "petal width,petal length"]
    arguments = [IRIS.filename, "--target", "species", *columns, *flags, "--quiet", "-o", path]
    assert gputree("train", *arguments) == (0, "", "")
    estimator = load_model(path)
    params = estimator.get_params()
    assert {name: params[name] for name in options} == options
    assert isinstance(params["min_samples_leaf"], int)  # 1 row is not the share 1.0
    assert params["verbose"] == 0
    assert estimator.tree_.n_rows[estimator.tree_.is_leaf].min() >= 5
    assert list(estimator.feature_names_in_) == ["petal width", "petal length"]


HOLES = """zip,size,flag,weight,bought
01234,small,true,1.5,yes
02345,,false,,no
01234,large,true,0.5,yes
,small,,2.5,no
02345,large,false,2,no
01234,,true,1,yes
"""


@pytest.fixture
def holes(tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text(HOLES.replace("01234", "A1"))
    return path


def test_text_stays_text_in_tables_that_look_like_numbers(said, gputree, holes, tmp_path):
    """A file whose zip codes all look like numbers, with one that was never seen."""
    path, other = tmp_path / "model", tmp_path / "other.csv"
    arguments = ["--target", "bought", "--algorithm", "c45", "--columns", "zip"]
    assert gputree("train", holes, *arguments, "-o", path)[0] == 0
    other.write_text("zip\n02345\n99999\n")
    output = said("predict", path, other, "--proba")
    seen, unseen = rows_of(output)
    assert (seen["prediction"], float(seen["probability_no"])) == ("no", 1.0)
    assert 0.0 < float(unseen["probability_no"]) < 1.0


def test_options_of_other_algorithms(gputree, holes, tmp_path):
    path = tmp_path / "model"
    flags = [
        *("--no-collapse", "--no-average-gain-rule", "--no-mdl-correction"),
        *("--threshold-placement", "data", "--min-gain", "0.25", "--min-samples-leaf", "1"),
        *("--criterion", "gain", "--categorical", "weight,size"),
    ]
    arguments = ["--target", "bought", "--algorithm", "c45", *flags, "-o", path]
    assert gputree("train", holes, *arguments)[0] == 0
    params = load_model(path).get_params()
    expected = {
        "collapse": False,
        "average_gain_rule": False,
        "mdl_correction": False,
        "threshold_placement": "data",
        "min_gain": 0.25,
        "criterion": "gain",
        "min_samples_leaf": 1,
        "categorical_features": ["size", "flag", "weight"],  # flag by its type
        "pruning": "pessimistic",
    }
    assert expected.items() <= params.items()
    assert load_model(path).columns_.nominal.tolist() == [True, True, True, True]


@pytest.mark.parametrize(
    ("algorithm", "rule"),
    [
        ("c45", "Missing and unseen values go to all children, with fractional weights."),
        ("id3", "Values without a branch, also missing ones, get the node's majority class."),
    ],
)
def test_show_says_where_missing_values_go(gputree, tmp_path, algorithm, rule):
    path = tmp_path / "model"
    golf = ["train", load_golf().filename, "--target", "play", "--algorithm", algorithm]
    assert gputree(*golf, "-o", path)[0] == 0
    lines = gputree("show", path)[1].splitlines()
    assert lines[1] == rule
    assert lines[3] == "outlook = overcast: yes (4)"


def test_columns_can_be_left_out(gputree, fails, misused, tmp_path):
    path = tmp_path / "model"
    golf = ["train", load_golf().filename, "--target", "play", "-o", path]
    assert "no feature columns" in fails(*golf, "--ignore", "outlook,temperature,humidity,wind")
    iris = ["train", IRIS.filename, "--target", "species", "-o", path]
    assert "not allowed with" in misused(*iris, "--ignore", "a", "--columns", "b")
    assert gputree(*iris, "--ignore", "sepal width,petal length")[0] == 0
    assert list(load_model(path).feature_names_in_) == ["sepal length", "petal width"]


def test_train_errors(fails, misused, tmp_path):
    out = ["-o", tmp_path / "model"]
    golf = load_golf().filename
    assert "no file" in fails("train", tmp_path / "absent.csv", "--target", "y", *out)
    assert "no CSV, Parquet or Arrow file in" in fails("train", tmp_path, "--target", "y", *out)
    assert "has no column 'mgp'" in fails("train", CARS.filename, "--target", "mgp", *out)
    c45 = ["train", golf, "--target", "play", "--algorithm", "c45"]
    assert "--splitter is no option of c45" in misused(*c45, "--splitter", "exact", *out)
    left = misused(*c45, "--threshold-placement", "left", *out)
    assert "error: --threshold-placement must be a str among {" in left
    quantities = ["train", CARS.filename, "--target", "mpg", "--algorithm", "id3"]
    assert "id3 is for classification, and the target column 'mpg'" in fails(*quantities, *out)
    regression = ["--target", "species", "--task", "regression"]
    assert "holds text, such as 'setosa'" in fails("train", IRIS.filename, *regression, *out)
    iris = ["train", IRIS.filename, "--target", "species"]
    deep = misused(*iris, "--max-depth", -1, *out)
    assert deep.endswith("--max-depth must be an int in the range [1, inf). Got -1 instead.\n")
    assert "--criterion must be" in misused(*iris, "--criterion", "best", *out)
    assert "invalid int value" in misused(*iris, "--max-depth", "deep", *out)
    assert "must be a number, got 'few'" in misused(*iris, "--min-samples-leaf", "few", *out)
    assert "--max-features" in misused(*iris, "--max-features", "cube", *out)
    assert "unrecognized arguments: --max-leaf" in misused(*iris, "--max-leaf", 3, *out)
    weighted = ["--target", "mpg", "--class-weight", "balanced"]
    assert "--class-weight is for" in misused("train", CARS.filename, *weighted, *out)
    assert "no directory" in fails(*iris, "-o", tmp_path / "absent" / "model")
    assert "arguments are required: -o" in misused(*iris)
    assert not list(tmp_path.iterdir())


def test_an_output_that_cannot_be_is_told_before_the_work(fails, tmp_path, monkeypatch):
    work = ["train", tmp_path / "absent.csv", "--target", "y"]  # reading it would fail
    assert f"{tmp_path} is a directory" in fails(*work, "-o", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert ". is a directory" in fails(*work, "-o", ".")
    assert "is not a regular file" in fails(*work, "-o", os.devnull)
    assert "no directory" in fails(*work, "-o", tmp_path / "absent" / "model")


def test_inputs_are_not_overwritten(misused, iris_model, tmp_path):
    data, link = tmp_path / "data.csv", tmp_path / "link.csv"
    data.write_bytes(Path(IRIS.filename).read_bytes())
    link.hardlink_to(data)
    model = tmp_path / "model.csv"
    model.write_bytes(iris_model.read_bytes())
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for output in (data, link):
        train = ["train", data, "--target", "species", "-o", output]
        assert f"would overwrite the input {data}" in misused(*train)
        assert f"would overwrite the input {data}" in misused("predict", model, data, "-o", output)
    assert f"would overwrite the input {model}" in misused("predict", model, data, "-o", model)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_one_column_one_node(gputree, tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "model"
    data.write_text("prix €,y\n1,a\n")
    status, output, _ = gputree("train", data, "--target", "y", "-o", path)
    assert status == 0
    summary = summary_of(output)
    assert summary["table"] == "1 row, 1 column"
    assert summary["task"] == "classification, 1 class"
    assert summary["tree"] == "1 node, 1 leaf, depth 0"
    heading = gputree("show", path)[1].splitlines()[0]
    assert heading.endswith(": 1 column, 1 node, 1 leaf, depth 0")


# ----------------------------------------------------------------- predict


def test_output_files(gputree, cars_model, tmp_path):
    _, text, _ = gputree("predict", cars_model, CARS.filename)
    expected = [float(row["prediction"]) for row in rows_of(text)]
    csv_file, parquet_file = tmp_path / "out.csv", tmp_path / "out.parquet"
    assert gputree("predict", cars_model, CARS.filename, "-o", csv_file) == (0, "", "")
    assert gputree("predict", cars_model, CARS.filename, "-o", parquet_file) == (0, "", "")
    assert csv_file.read_text() == text
    assert pq.read_table(parquet_file).to_pydict() == {"prediction": expected}
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".parquet"}


@pytest.fixture
def kept(tmp_path):
    """The cars with identifiers that look like numbers, and notes with a comma."""
    lines = Path(CARS.filename).read_text().splitlines()
    path = tmp_path / "kept.csv"
    with open(path, "w") as file:
        file.write(f"id,{lines[0]},note\n")
        file.writelines(f'{n:03},{line},"{n}, ?"\n' for n, line in enumerate(lines[1:]))
    return path


def test_columns_are_carried_along(said, cars_model, kept):
    expected = rows_of(said("predict", cars_model, CARS.filename))
    text = said("predict", cars_model, kept, "--keep", "id,note", "--keep", "weight,id,horsepower")
    assert text.splitlines()[0] == "id,note,weight,horsepower,prediction"
    rows = rows_of(text)
    assert [row["prediction"] for row in rows] == [row["prediction"] for row in expected]
    assert [row["id"] for row in rows[:2]] == ["000", "001"]
    assert rows[1]["note"] == "1, ?"
    assert [row["weight"] for row in rows[:2]] == ["3504", "3693"]
    assert [rows[n]["horsepower"] for n in (31, 32)] == ["95", ""]


def test_carried_columns_of_parquet_keep_their_types(said, cars_model, kept, tmp_path):
    import pyarrow.csv

    table, out = tmp_path / "kept.parquet", tmp_path / "out.parquet"
    pq.write_table(pyarrow.csv.read_csv(kept), table)
    narrow = tmp_path / "narrow.parquet"
    pq.write_table(pq.read_table(table).cast(narrowed(pq.read_schema(table))), narrow)
    said("predict", cars_model, table, narrow, "--keep", "id,weight,note", "-o", out)
    found = pq.read_table(out)
    assert found.num_rows == 2 * 398
    assert [str(kind) for kind in found.schema.types] == ["int64", "int64", "string", "double"]


def narrowed(schema):
    """A schema with integers of 32 bits."""
    types = [pa.int32() if kind == pa.int64() else kind for kind in schema.types]
    return pa.schema(zip(schema.names, types, strict=True))


def test_carried_columns_that_cannot_be(fails, misused, cars_model, kept):
    assert "no column 'idd'. Did you mean 'id'?" in fails(
        "predict", cars_model, kept, "--keep", "idd"
    )
    kept.write_text(kept.read_text().replace("note", "prediction", 1))
    error = misused("predict", cars_model, kept, "--keep", "prediction")
    assert "--keep prediction: the output has a column of this name" in error


def test_predict_errors(fails, misused, iris_model, cars_model, write, tmp_path):
    assert "no model file" in fails("predict", tmp_path / "absent", IRIS.filename)
    assert "not a gputree model file" in fails("predict", IRIS.filename, IRIS.filename)
    assert "has no columns 'sepal length'" in fails("predict", iris_model, CARS.filename)
    assert "regression model" in misused("predict", cars_model, CARS.filename, "--proba")
    text = write(Path(IRIS.filename).read_text().replace("5.1", "tall"), "text.csv")
    error = fails("predict", iris_model, text)
    assert f"{text}: column 'sepal length' must hold numbers; it holds 'tall'." in error
    assert ".csv or .parquet" in misused("predict", iris_model, IRIS.filename, "-o", "out.xls")
    absent = tmp_path / "absent" / "out.csv"
    assert "no directory" in fails("predict", iris_model, IRIS.filename, "-o", absent)


# ----------------------------------------------------------- show and info
def test_show(said, iris_model):
    output = said("show", iris_model)
    heading, missing, blank, *lines = output.splitlines()
    tree = load_model(iris_model).tree_
    assert heading == (
        f"DecisionTreeClassifier (gini): 4 columns, {tree.n_nodes} nodes, "
        f"{tree.n_leaves} leaves, depth 3"
    )
    assert missing == "Missing values go to the child with more rows unless marked."
    assert blank == ""
    assert len(lines) == tree.n_nodes - 1
    assert lines[0].endswith(": setosa (50)")


def test_show_to_a_depth(gputree, iris_model):
    _, output, _ = gputree("show", iris_model, "--max-depth", 1)
    assert len(output.splitlines()) == 5
    assert "more nodes" in output


def test_info(said):
    output = said("info")
    information = dict(line.split("  ", maxsplit=1) for line in output.splitlines())
    assert information["numpy"].strip() == np.__version__
    assert int(information["threads"]) >= 1
    for key in ("gputree", "python", "numba", "cupy", "CUDA devices", "cache"):
        assert information[key].strip()


# -------------------------------------------------------------- the process
def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "gputree", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.mark.process
def test_python_m_gputree(tmp_path):
    result = command("show", tmp_path / "absent")
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("gputree: error: There is no model file")
    assert command("--version").stdout.startswith("gputree ")


@pytest.mark.process
def test_names_that_the_terminal_cannot_show(gputree, tmp_path):
    data, path = tmp_path / "data.csv", tmp_path / "model"
    data.write_text("prix €,y\n1,a\n2,b\n", encoding="utf-8")
    assert gputree("train", data, "--target", "y", "-o", path)[0] == 0
    ascii_only = os.environ | {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    result = command("show", path, env=ascii_only)
    assert (result.returncode, result.stderr) == (0, "")
    assert "prix \\u20ac <= 1.5: a (1)" in result.stdout


@pytest.mark.process
def test_a_reader_that_leaves_early(iris_model, tmp_path):
    long = tmp_path / "long.csv"
    header, *rows = Path(IRIS.filename).read_text().splitlines(keepends=True)
    long.write_text(header + "".join(rows * 200))
    words = [sys.executable, "-m", "gputree", "predict", iris_model, long]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
