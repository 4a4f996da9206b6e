"""Models of several targets on the command line: a column for each; what takes one says so."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score

from gputree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    load_model,
    save_model,
)
from gputree.pruning import ReducedError

ROWS = pd.DataFrame({"x": [0.0, 0, 1, 1, 2, 2], "y": [0.0, 1, 0, 1, 0, 1]})
LABELS = np.column_stack([np.where(ROWS.x > 0, "yes", "no"), np.array(["a", "b"])[[0, 1] * 3]])


@pytest.fixture
def table(tmp_path):
    ROWS.assign(first=LABELS[:, 0], second=LABELS[:, 1]).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


@pytest.fixture
def model(tmp_path):
    save_model(DecisionTreeClassifier().fit(ROWS, LABELS), tmp_path / "model")
    return tmp_path / "model"


def read(text):
    """Columns of CSV, by their names."""
    head, *rows = csv.reader(text.splitlines())
    return dict(zip(head, zip(*rows, strict=True), strict=True))


def test_predictions_of_each_target(said, model, table):
    found = read(said("predict", model, table, "--proba"))
    assert list(found) == [
        "prediction_0", "prediction_1", "probability_0_no", "probability_0_yes", "probability_1_a",
        "probability_1_b",
    ]  # fmt: skip
    assert [found["prediction_0"], found["prediction_1"]] == list(map(tuple, LABELS.T))
    assert found["probability_1_b"] == tuple(map(str, [0.0, 1.0] * 3))


@pytest.mark.filterwarnings("ignore:.*have no standard error")
def test_standard_errors_of_each_target(gputree, table, tmp_path):
    names = {}
    for kind, y in ((RandomForestRegressor, ROWS.to_numpy()), (RandomForestClassifier, LABELS)):
        save_model(kind(n_estimators=3, random_state=0).fit(ROWS, y), tmp_path / "forest")
        status, output, _ = gputree("predict", tmp_path / "forest", table, "--standard-error")
        assert status == 0
        names[kind] = list(read(output))[2:]
    assert names[RandomForestRegressor] == ["standard_error_0", "standard_error_1"]
    assert names[RandomForestClassifier] == [
        "standard_error_0_no", "standard_error_0_yes", "standard_error_1_a", "standard_error_1_b",
    ]  # fmt: skip


def test_lists_are_shown(said, model, table):
    assert "[yes, b] (2, gini 0)" in said("show", model)
    assert said("explain", model, table).startswith("row 1: [no, a]\n")


def test_edit_takes_one_target(fails, model, table, tmp_path):
    words = "edit", model, "--data", table, "--target", "first", "--prune", "1"
    assert "takes one target, and this model has 2" in fails(*words, "-o", tmp_path / "out")


def test_rows_of_all_targets_prune_and_validate(said, fails, misused, model, table, tmp_path):
    out, page = tmp_path / "out", tmp_path / "out.html"
    words = "prune", model, table, "--pruning", "reduced_error", "-o", out
    ROWS.assign(first=LABELS[:, 0], second="a").to_csv(table, index=False)
    said(*words, *TWO)
    tree, labels = load_model(model), np.stack([LABELS[:, 0], ["a"] * 6], axis=1)
    expected, found = ReducedError().prune(tree, ROWS, labels).tree_, load_model(out).tree_
    np.testing.assert_array_equal(found.first_child, expected.first_child)
    assert found.n_leaves < tree.tree_.n_leaves
    assert "must name the 2 target columns" in misused(*words, "--target", "first")
    said("export", model, "-o", page, "--validation", table, *TWO)
    assert '"validation":{"measure":"error"' in page.read_text("utf-8")
    assert "Formats of several are text, json" in fails("export", model, "--format", "sql")


TWO = ["--target", "first", "--target", "second"]


def test_each_target_is_evaluated(gputree, misused, model, table, tmp_path):
    """Scores are scikit-learn's, of rows with weights, in files one after another."""
    rows = pd.read_csv(table).assign(w=[1, 2, 0, 3, 1, 1])
    rows.loc[0, "first"], rows.loc[1, "second"] = "yes", "c"
    rows.to_csv(table, index=False)
    given = ["evaluate", model, table, table, *TWO, "--weights", "w"]
    status, text, errors = gputree(*given, "--format", "json")
    assert (status, "2 rows of classes that the model does not know" in errors) == (0, True)
    found = json.loads(text)
    assert found["column_usage"][0] == {"column": "x", "usage": 1.0}
    truth, predicted = rows[["first", "second"]].to_numpy(), load_model(model).predict(ROWS)
    for j, of_target in enumerate(found["targets"]):
        right = (truth == predicted)[:, j]
        assert of_target["target"] == TWO[2 * j + 1]
        assert (of_target["rows"], of_target["weight"]) == (10, 16.0)
        assert of_target["accuracy"] == pytest.approx(np.average(right, weights=rows.w))
    lines = read(gputree(*given, "--format", "csv")[1])
    assert lines["target"].count("second") > lines["target"].count("first") > 6
    assert "target    second\nrows      10" in gputree(*given)[1]
    assert "--target must name the 2 target columns: repeat it. Got 0." in misused(*given[:4])


def test_names_of_targets_in_training_are_those_of_evaluation(said, misused, table, tmp_path):
    rows = pd.read_csv(table).assign(first=[1.5, 2, 2, 3, 4, 1], second=[0.5, 1, 5, 1, 2, 2])
    rows.to_csv(table, index=False)
    said("train", table, *TWO, "--max-depth", 1, "-o", tmp_path / "out")
    text = said("evaluate", tmp_path / "out", table, "--format", "json")
    swapped = "--target", "second", "--target", "first"
    assert said("evaluate", tmp_path / "out", table, *swapped, "--format", "json") == text
    found = json.loads(text)
    predicted = load_model(tmp_path / "out").predict(ROWS)
    scores = r2_score(rows[["first", "second"]], predicted, multioutput="raw_values")
    np.testing.assert_allclose([of_target["r2"] for of_target in found["targets"]], scores)
    said("train", table, "--target", "first", "--ignore", "second", "-o", tmp_path / "one")
    assert "one target; got 2 times" in misused("evaluate", tmp_path / "one", table, *TWO)


@pytest.mark.parametrize("option", ["--cv=3", "--holdout=0.5"])
def test_each_target_is_scored_on_rows_held_out(said, table, option):
    """The first label is that of x, the second that of y: shallow trees predict the one or both."""
    rows = pd.concat([pd.read_csv(table)] * 10)
    rows.to_csv(table, index=False)
    text = said("train", table, *TWO, option, "--quiet")
    assert "stratified" not in text
    for name in ("first", "second"):
        assert f"{name} accuracy" in text
        assert f"all held-out rows, {name}\nerrors                   0 (0.00%)" in text
    rows.assign(first=rows.x, second=rows.y - 1e-3 * rows.x).to_csv(table, index=False)
    text = said("train", table, *TWO, option, "--task", "regression", "--quiet")
    assert "first MAE" in text
    assert "second R2" in text


def test_a_model_of_several_targets_is_trained(said, table, tmp_path):
    words = ["train", table, "--target", "first", "--target", "second", "-o", tmp_path / "out"]
    output = said(*words)
    assert "classification of first (2 classes), second (2 classes)" in output
    assert "accuracy of all targets together 1.0000 on the training rows" in output
    trained = load_model(tmp_path / "out")
    assert trained.tree_.equals(DecisionTreeClassifier().fit(ROWS, LABELS).tree_)
    assert trained.feature_names_in_.tolist() == ["x", "y"]
    assert "[first yes, second b] (2, gini 0)" in said("show", tmp_path / "out")
    found = read(said("predict", tmp_path / "out", table, "--proba"))
    assert [found["prediction_first"], found["prediction_second"]] == list(map(tuple, LABELS.T))
    assert found["probability_second_b"] == tuple(map(str, [0.0, 1.0] * 3))


@pytest.mark.parametrize("task", ["auto", "regression"])
def test_targets_of_numbers_next_to_missing_ones(gputree, fails, task, tmp_path):
    y = np.array([0.5, 1.5, 2.5, 3.5, 4.5, np.nan])
    rows = ROWS.assign(first=y[::-1], second=y, code=[f"00{k}" for k in range(6)])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    targets = ["--target", "first", "--target", "second", "--ignore", "code", "--task", task]
    words = ["train", tmp_path / "rows.csv", *targets, "-o", tmp_path / "out"]
    assert "The target column 'first' of" in fails(*words)
    status, output, errors = gputree(*words, "--drop-missing-target")
    assert status == 0
    assert "4 rows, 2 columns" in output
    assert "2 rows without a target dropped" in errors
    expected = DecisionTreeRegressor().fit(ROWS[1:5], np.column_stack([y[4:0:-1], y[1:5]]))
    assert load_model(tmp_path / "out").tree_.equals(expected.tree_)


def test_labels_next_to_integers_and_a_column_of_weights(said, table, tmp_path):
    rows = pd.read_csv(table).assign(third=[3, 1, 3, 1, 3, 1], w=[1, 1, 2, 1, 0, 1])
    rows.to_csv(table, index=False)
    targets = ["--target", "first", "--target", "third", "--ignore", "second", "--weights", "w"]
    said("train", table, *targets, "--algorithm", "random-forest", "-o", tmp_path / "out")
    assert [c.tolist() for c in load_model(tmp_path / "out").classes_] == [["no", "yes"], [1, 3]]


@pytest.mark.parametrize("files", [1, 2])
def test_booleans_next_to_other_labels(said, table, files, tmp_path):
    rows = pd.read_csv(table).assign(third=[3, 1, 3, 1, 3, 1], is_low=ROWS.x < 1)
    rows.to_csv(table, index=False)
    names = ["first", "is_low", "third"]
    for some in (names, names[1:]):
        words = [f"--target={name}" for name in some] + ["--columns", "x,y"]
        said("train", *[table] * files, *words, "-o", tmp_path / "out")
        found = [c.tolist() for c in load_model(tmp_path / "out").classes_]
        assert found == [["no", "yes"], [False, True], [1, 3]][-len(some) :]
        found = read(said("predict", tmp_path / "out", table))
        assert found["prediction_is_low"] == tuple(map(str, rows.is_low))


def test_info_of_several_targets(said, gputree, table):
    found = said("info", table, "--target", "first", "--target", "y")
    assert "target 0  first: classification, 2 classes" in found
    assert "target 1  y: classification, 2 classes" in found
    assert "6 rows, 2 columns" in found


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--target", "first"], "names 'first' twice"),
        (["--target", "second", "--algorithm", "c45"], "--algorithm c45 takes one --target"),
        (["--target", "second", "--weights", "second"], "--weights and --target both name"),
    ],
)
def test_options_of_one_target(misused, table, words, error, tmp_path):
    assert error in misused("train", table, "--target", "first", *words, "-o", tmp_path / "out")


@pytest.mark.parametrize("columns", [["first", "second"], ["u", "v"]])
def test_several_files_are_read_in_batches(said, gputree, table, columns, tmp_path):
    rows = pd.read_csv(table).assign(
        u=np.arange(6) + 0.5, v=[1.5, 1, 1, 3, 3, 3], w=[1, 2, 1, 3, 1, 1]
    )
    rows.loc[4, columns[1]] = None
    for name, some in (("a", rows[:2]), ("b", rows[2:])):
        some[["x", "y", "w", *columns]].to_csv(tmp_path / f"{name}.csv", index=False)
    rows.drop(index=4)[["x", "y", "w", *columns]].to_csv(tmp_path / "whole.csv", index=False)
    words = ["--target", columns[0], "--target", columns[1], "--weights", "w"]
    score = said("train", tmp_path / "whole.csv", *words, "-o", tmp_path / "whole")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    out = ["-o", tmp_path / "parts", "--drop-missing-target"]
    status, output, errors = gputree("train", *files, *words, *out)
    assert (status, "1 row without a target dropped" in errors) == (0, True)
    assert output.partition("s, ")[2].splitlines()[0] == score.partition("s, ")[2].splitlines()[0]
    whole, parts = load_model(tmp_path / "whole"), load_model(tmp_path / "parts")
    assert whole.tree_.equals(parts.tree_)
    assert parts.predict(ROWS).tolist() == whole.predict(ROWS).tolist()


def test_targets_that_do_not_go_together(fails, table, tmp_path):
    rows = pd.read_csv(table).assign(third=np.arange(6) + 0.5, many=range(6))
    rows.to_csv(table, index=False)
    words = ["train", table, "-o", tmp_path / "out", "--target", "first", "--target"]
    assert "hold classes and quantities, and a model has targets of one kind. Train a" in fails(
        *words, "third"
    )
    numbers = ["--target", "y", "--target", "third"]
    assert "kind. Write --task regression, or" in fails(*words[:4], *numbers)
    assert "kind. Write --task classification, or" in fails(*words, "many")
    assert "holds text, such as 'no'" in fails(*words, "third", "--task", "regression")
    assert "has no column 'secnd' (--target)" in fails(*words, "secnd")
    features = ["--ignore", "x,y,third,many"]
    assert "no feature column other than" in fails(*words, "second", *features)
    more = ["train", table, table, "-o", tmp_path / "out", "--target", "first", "--target"]
    assert "has no column 'secnd' (--target)" in fails(*more, "secnd")
    assert "no feature column other than" in fails(*more, "second", *features)
    rows.assign(second=None).to_csv(table, index=False)
    drop = ["second", "--drop-missing-target"]
    assert "has a value in every column of --target" in fails(*words, *drop)
