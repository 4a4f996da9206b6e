"""The `gputree` command as a user types it."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gputree.cli import main
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.estimators.model_file import load_model

IRIS = load_iris()
CARS = load_auto_mpg()


@pytest.fixture
def gputree(capsys):
    """Run the command; give back its status, standard output and standard error."""

    def run(*arguments):
        capsys.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse leaves this way
            status = stop.code
        output, errors = capsys.readouterr()
        return status, output, errors

    return run


@pytest.fixture
def fails(gputree):
    """Run the command, check that it fails as promised, give back its message."""

    def run(*arguments):
        status, output, errors = gputree(*arguments)
        assert status == 2
        assert output == ""
        assert errors.startswith("gputree: error: ")
        assert errors.count("\n") == 1
        return errors

    return run


@pytest.fixture
def iris_model(gputree, tmp_path):
    path = tmp_path / "iris.gputree"
    arguments = ["--target", "species", "--max-depth", 3, "-o", path]
    assert gputree("train", IRIS.filename, *arguments)[0] == 0
    return path


@pytest.fixture
def cars_model(gputree, tmp_path):
    path = tmp_path / "cars.gputree"
    assert gputree("train", CARS.filename, "--target", "mpg", "-o", path)[0] == 0
    return path


def summary_of(output) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in output.splitlines())


def rows_of(text) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


# ------------------------------------------------------------------- train
def test_train_a_classifier(gputree, tmp_path):
    path = tmp_path / "model"
    status, output, errors = gputree("train", IRIS.filename, "--target", "species", "-o", path)
    assert (status, errors) == (0, "")
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
    assert estimator.verbose == 1


def test_train_a_regressor(gputree, tmp_path):
    path = tmp_path / "model"
    status, output, errors = gputree("train", CARS.filename, "--target", "mpg", "-o", path)
    assert (status, errors) == (0, "")
    assert summary_of(output)["task"] == "regression"
    assert "R2 " in summary_of(output)["training"]
    assert load_model(path).tree_.task == "regression"


def test_options_reach_the_estimator(gputree, tmp_path):
    options = {
        "device": "cpu",
        "criterion": "entropy",
        "splitter": "binned",
        "max_depth": 2,
        "min_samples_leaf": 5,
        "ccp_alpha": 0.001,
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
    assert params["verbose"] == 0
    assert estimator.tree_.n_rows[estimator.tree_.is_leaf].min() >= 5
    assert list(estimator.feature_names_in_) == ["petal width", "petal length"]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_task_can_be_told(gputree, tmp_path, task):
    data, path = tmp_path / "data.csv", tmp_path / "model"
    data.write_text("a,y\n" + "1,0\n2,1\n" * 5)
    arguments = ["train", data, "--target", "y", "--task", task, "-o", path]
    assert gputree(*arguments)[0] == 0
    assert load_model(path).tree_.task == task


def test_columns_can_be_left_out(gputree, fails, tmp_path):
    path = tmp_path / "model"
    golf = ["train", load_golf().filename, "--target", "play", "-o", path]
    assert "no feature columns" in fails(*golf, "--ignore", "outlook,temperature,humidity,wind")
    iris = ["train", IRIS.filename, "--target", "species", "-o", path]
    assert "not allowed with" in fails(*iris, "--ignore", "a", "--columns", "b")
    assert gputree(*iris, "--ignore", "sepal width,petal length")[0] == 0
    assert list(load_model(path).feature_names_in_) == ["sepal length", "petal width"]


def test_train_errors(fails, tmp_path):
    out = ["-o", tmp_path / "model"]
    golf = load_golf().filename
    assert "no file" in fails("train", tmp_path / "absent.csv", "--target", "y", *out)
    assert "has no column 'mgp'" in fails("train", CARS.filename, "--target", "mgp", *out)
    assert "'outlook' (string)" in fails("train", golf, "--target", "play", *out)
    regression = ["--target", "species", "--task", "regression"]
    assert "holds text, such as 'setosa'" in fails("train", IRIS.filename, *regression, *out)
    iris = ["train", IRIS.filename, "--target", "species"]
    assert "max_depth" in fails(*iris, "--max-depth", -1, *out)
    assert "criterion" in fails(*iris, "--criterion", "best", *out)
    assert "invalid int value" in fails(*iris, "--max-depth", "deep", *out)
    assert "no directory" in fails(*iris, "-o", tmp_path / "absent" / "model")
    assert "arguments are required: -o" in fails(*iris)
    assert not list(tmp_path.iterdir())


def test_no_command(fails):
    assert "COMMAND" in fails()


# ----------------------------------------------------------------- predict
def test_predict_to_standard_output(gputree, iris_model):
    status, output, errors = gputree("predict", iris_model, IRIS.filename)
    assert (status, errors) == (0, "")
    expected = load_model(iris_model)
    del expected.feature_names_in_
    predictions = expected.predict(IRIS.data)
    assert [row["prediction"] for row in rows_of(output)] == predictions.tolist()
    assert (predictions == IRIS.target).mean() > 0.95


def test_columns_are_matched_by_name(gputree, iris_model, tmp_path):
    rows = [dict(zip(IRIS.feature_names, row, strict=True)) for row in IRIS.data.tolist()]
    with open(tmp_path / "shuffled.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["note", *reversed(IRIS.feature_names)])
        writer.writeheader()
        writer.writerows(row | {"note": "extra"} for row in rows)
    _, expected, _ = gputree("predict", iris_model, IRIS.filename)
    status, output, errors = gputree("predict", iris_model, tmp_path / "shuffled.csv")
    assert (status, output, errors) == (0, expected, "")


def test_probabilities(gputree, iris_model):
    _, output, _ = gputree("predict", iris_model, IRIS.filename, "--proba")
    for row in rows_of(output):
        shares = {name: float(row[f"probability_{name}"]) for name in np.unique(IRIS.target)}
        assert sum(shares.values()) == pytest.approx(1)
        assert max(shares, key=shares.get) == row["prediction"]


def test_output_files(gputree, cars_model, tmp_path):
    _, text, _ = gputree("predict", cars_model, CARS.filename)
    expected = [float(row["prediction"]) for row in rows_of(text)]
    csv_file, parquet_file = tmp_path / "out.csv", tmp_path / "out.parquet"
    assert gputree("predict", cars_model, CARS.filename, "-o", csv_file) == (0, "", "")
    assert gputree("predict", cars_model, CARS.filename, "-o", parquet_file) == (0, "", "")
    assert csv_file.read_text() == text
    assert pq.read_table(parquet_file).to_pydict() == {"prediction": expected}
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".parquet", ".gputree"}


def test_predict_errors(fails, iris_model, cars_model, tmp_path):
    assert "no model file" in fails("predict", tmp_path / "absent", IRIS.filename)
    assert "not a gputree model file" in fails("predict", IRIS.filename, IRIS.filename)
    assert "has no columns 'sepal length'" in fails("predict", iris_model, CARS.filename)
    assert "regression model" in fails("predict", cars_model, CARS.filename, "--proba")
    assert ".csv or .parquet" in fails("predict", iris_model, IRIS.filename, "-o", "out.xls")
    absent = tmp_path / "absent" / "out.csv"
    assert "no directory" in fails("predict", iris_model, IRIS.filename, "-o", absent)


# ----------------------------------------------------------- show and info
def test_show(gputree, iris_model):
    status, output, errors = gputree("show", iris_model)
    assert (status, errors) == (0, "")
    heading, blank, *lines = output.splitlines()
    tree = load_model(iris_model).tree_
    assert heading == (
        f"DecisionTreeClassifier (gini): 4 columns, {tree.n_nodes} nodes, "
        f"{tree.n_leaves} leaves, depth 3"
    )
    assert blank == ""
    assert len(lines) == tree.n_nodes - 1
    assert lines[0].endswith(": setosa (50)")


def test_show_to_a_depth(gputree, iris_model):
    _, output, _ = gputree("show", iris_model, "--max-depth", 1)
    assert len(output.splitlines()) == 4
    assert "more nodes" in output


def test_info(gputree):
    status, output, errors = gputree("info")
    assert (status, errors) == (0, "")
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


def test_python_m_gputree(tmp_path):
    result = command("show", tmp_path / "absent")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("gputree: error: There is no model file")
    assert command("--version").stdout.startswith("gputree ")


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
