"""Random forests by the `gputree` command."""

import io

import numpy as np
import pandas as pd
import pytest

from gputree.cli.export import FORMATS
from gputree.datasets import load_auto_mpg, load_iris
from gputree.persistence import export_json, load_model

IRIS, CARS = load_iris().filename, load_auto_mpg().filename
SMALL = ("--max-depth", 2, "--max-samples", 0.2)


@pytest.fixture
def trained(gputree, tmp_path):
    def train(table, target, *options):
        path = tmp_path / "forest.gputree"
        arguments = ["--algorithm", "random-forest", "--n-estimators", 4, "-o", path]
        return path, gputree("train", table, "--target", target, *arguments, *options)

    return train


def test_train_show_and_evaluate(trained, gputree):
    path, (status, output, _) = trained(IRIS, "species", "--max-samples", 0.9, "--max-depth", 3)
    assert status == 0
    forest = load_model(path)
    leaves = [tree.get_n_leaves() for tree in forest.estimators_]
    told = f"4 trees of {min(leaves)} to {max(leaves)} leaves, {sum(leaves)} in all"
    assert told in output
    status, output, _ = gputree("show", path)
    assert status == 0
    assert told in output
    assert "\nTree 4: " in output
    status, output, _ = gputree("evaluate", path, IRIS)
    assert status == 0
    table = pd.read_csv(IRIS)
    accuracy = forest.score(table.drop(columns="species"), table["species"])
    assert f"{accuracy:.4f}" in output


def test_regression_and_out_of_bag_score(trained):
    path, (status, output, _) = trained(CARS, "mpg", "--oob-score", *SMALL, "--n-estimators", 8)
    assert status == 0
    assert "out of bag  R2 0." in output
    assert load_model(path).oob_score


def test_quantiles(trained, gputree):
    path, _ = trained(CARS, "mpg", "--quantreg", *SMALL)
    status, output, _ = gputree("predict", path, CARS, "--quantiles", "0.1, .9")
    assert status == 0
    assert output.startswith("prediction,quantile_0.1,quantile_.9\n")
    table = pd.read_csv(io.StringIO(output))
    expected = load_model(path).predict_quantiles(pd.read_csv(CARS).drop(columns="mpg"), [0.1, 0.9])
    assert (table.to_numpy()[:, 1:] == expected).all()
    for levels, message in [("0.1,2", "range [0, 1]"), ("x", "must be numbers from 0 to 1")]:
        status, _, errors = gputree("predict", path, CARS, "--quantiles", levels)
        assert status
        assert message in errors
    path, _ = trained(CARS, "mpg", *SMALL)
    status, _, errors = gputree("predict", path, CARS, "--quantiles", "0.5")
    assert status == 2
    assert "needs a forest that was trained with --quantreg" in errors


@pytest.mark.filterwarnings("ignore:.* have no standard error")
def test_standard_errors(trained, gputree):
    path, _ = trained(CARS, "mpg", *SMALL)
    status, output, _ = gputree("predict", path, CARS, "--standard-error")
    assert status == 0
    found = pd.read_csv(io.StringIO(output))
    assert found.columns.tolist() == ["prediction", "standard_error"]
    expected = load_model(path).predict_standard_error(pd.read_csv(CARS).drop(columns="mpg"))
    np.testing.assert_array_equal(found["standard_error"], expected)
    path, _ = trained(IRIS, "species", *SMALL)
    _, output, _ = gputree("predict", path, IRIS, "--standard-error")
    assert output.startswith("prediction,standard_error_setosa,standard_error_versicolor,")
    gputree("train", CARS, "--target", "mpg", "--max-depth", 1, "-o", path)
    status, _, errors = gputree("predict", path, CARS, "--standard-error")
    assert status == 2
    assert "--standard-error needs a random forest" in errors


def test_one_tree_is_explained_and_exported(trained, gputree, tmp_path):
    path, _ = trained(IRIS, "species")
    status, _, errors = gputree("export", path, "--format", "graphviz")
    assert status == 2
    assert "takes one tree, and this model has 4: add --tree 1" in errors
    status, output, _ = gputree("export", path, "--format", "graphviz", "--tree", 2)
    assert status == 0
    assert "digraph" in output
    for name, form in FORMATS.items():
        out = tmp_path / "out"
        for options in ([], ["--tree", 3]):
            status, _, errors = gputree("export", path, "--format", name, "-o", out, *options)
            assert status == (0 if options or form.of_forests else 2), (name, errors)
        assert out.stat().st_size > 0
    assert gputree("export", path, "--format", "json")[1] == export_json(load_model(path))
    status, _, errors = gputree("prune", path, IRIS, "--pruning", "reduced_error", "-o", "x")
    assert status == 2
    assert "takes a model of one tree, and this one has 4 trees" in errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--algorithm", "rf"], "Write --algorithm random-forest"),
        (["--n-estimators", 3], "is no option of cart: add --algorithm random-forest"),
        (["--algorithm", "extra-trees", "--quantreg"], "is for regression; the task is class"),
        (["--ntree", 50, "--mtry", 2], "Write --n-estimators 50 --max-features 2"),
        (["--algorithm", "random-forest", "--trials", 3], "add --algorithm c45"),
        (["--algorithm", "random-forest", "--rules"], "add --algorithm c45"),
        (["--algorithm", "random-forest", "--classes", "a"], "add --algorithm cart or c45 or id3"),
        (
            ["--algorithm", "extra-trees", "--criterion", "squared_error"],
            "For numbers add --task regression",
        ),
    ],
)
def test_options_of_others_are_refused(gputree, options, message):
    status, _, errors = gputree("train", IRIS, "--target", "species", "-o", "x", *options)
    assert status == 2
    assert message in errors
