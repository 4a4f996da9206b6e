"""Models of several targets on the command line: a column for each; what takes one says so."""

import csv

import numpy as np
import pandas as pd
import pytest

from gputree import (
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    save_model,
)

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


@pytest.mark.parametrize("command", ["evaluate", "edit", "prune"])
def test_commands_of_one_target_say_so(fails, model, table, command, tmp_path):
    words = {
        "evaluate": ["evaluate", model, table, "--target", "first"],
        "edit": ["edit", model, "--data", table, "--target", "first", "--prune", "1"],
        "prune": ["prune", model, table, "--target", "first", "--pruning", "reduced_error"],
    }[command]
    output = [] if command == "evaluate" else ["-o", tmp_path / "out"]
    assert "takes one target, and this model has 2" in fails(*words, *output)


def test_training_takes_one_target(misused, table, tmp_path):
    words = ["train", table, "--target", "first", "--target", "second", "-o", tmp_path / "out"]
    assert "--target: names one column" in misused(*words)
