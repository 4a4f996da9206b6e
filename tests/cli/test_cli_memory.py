"""`--memory` of commands that read rows once, sums by batch, and what a killed command leaves."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gputree import (
    BoostedC45Classifier,
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    save_model,
    to_rules,
)
from gputree.base.memory import resident_bytes
from gputree.cli import evaluate
from gputree.cli.memory import watched_memory
from gputree.datasets import delimited, formats, load_auto_mpg, load_iris, readers
from gputree.evaluation import Answers, Moments, answers_by_target, in_blocks

IRIS, CARS = load_iris(), load_auto_mpg()
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables with weights, as CSV and Parquet, and models of iris and cars."""
    folder = tmp_path_factory.mktemp("memory")
    for name, data in (("iris", IRIS), ("cars", CARS)):
        frame = pandas.read_csv(data.filename)
        frame["w"] = RNG.integers(0, 3, len(frame)) / 4
        frame.loc[:30, "w"] = 0.0
        frame.to_csv(folder / f"{name}.csv", index=False)
        pq.write_table(
            pa.Table.from_pandas(frame, preserve_index=False), folder / f"{name}.parquet"
        )
    frame = pandas.read_csv(IRIS.filename)
    X, y = frame.drop(columns="species"), frame["species"]
    costs = {("setosa", "virginica"): 3.0, ("virginica", "versicolor"): 2.0}
    cars = pandas.read_csv(CARS.filename)
    models = {
        "tree": DecisionTreeClassifier(max_depth=2).fit(X, y),
        "costs": DecisionTreeClassifier(max_depth=2, misclassification_costs=costs).fit(X, y),
        "rules": to_rules(C45Classifier(pruning=None).fit(X, y), X, y),
        "boosted": BoostedC45Classifier(n_trials=3).fit(X, y),
        "cars": DecisionTreeRegressor(max_depth=3).fit(cars.drop(columns="mpg"), cars["mpg"]),
    }
    for name, model in models.items():
        save_model(model, folder / name)
    return folder


@pytest.fixture
def small_batches(monkeypatch):
    """Rows are read and added up a few at a time."""
    monkeypatch.setattr(delimited, "BATCH_BYTES", 700)
    monkeypatch.setattr(formats, "_BATCH_ROWS", 20)


def close(one, other):
    """The same numbers and words, but for the last digits of sums."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            close(mine, theirs)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)
    else:
        assert one == other


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        ("costs", True), ("rules", True), ("boosted", False), ("cars", True),
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in (("tree", False), ("rules", False), ("boosted", True), ("cars", False))
        ),
    ],
)  # fmt: skip
def test_figures_do_not_depend_on_batches(gputree, folder, model, weights, small_batches):
    name, target = ("cars", "mpg") if model == "cars" else ("iris", "species")
    given = ["evaluate", folder / model, folder / f"{name}.csv", "--target", target]
    given += ["--weights", "w"] if weights else []
    text, document = gputree(*given), gputree(*given, "--format", "json")
    assert text[0] == document[0] == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BATCH_BYTES", 1 << 24)
        whole = gputree(*given, "--format", "json")
        assert gputree(*given) == text
    close(json.loads(document[1]), json.loads(whole[1]))
    if not weights:
        assert document == whole
    given[2] = folder / f"{name}.parquet"
    close(json.loads(gputree(*given, "--format", "json")[1]), json.loads(whole[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluate, "BLOCK_CELLS", 17)  # sums of many blocks
        assert gputree(*given) == text
        close(json.loads(gputree(*given, "--format", "json")[1]), json.loads(whole[1]))


def test_labels_of_a_later_batch(gputree, fails, folder, tmp_path, small_batches):
    data = tmp_path / "iris.csv"
    lines = (folder / "iris.csv").read_text().splitlines()
    lines += [line.replace("virginica", "lily") for line in lines[-4:]]
    data.write_text("\n".join([*lines, ""]))
    given = ["evaluate", folder / "tree", data, "--target", "species"]
    status, output, errors = gputree(*given, "--format", "json")
    assert status == 0
    assert "4 rows of classes that the model does not know, such as lily" in errors
    found = json.loads(output)
    assert found["classes"][0]["class"] == "lily"
    assert np.sum(found["confusion_matrix"]) == found["rows"] == 154
    data.write_text("\n".join([*lines, lines[-1].replace("lily", ""), ""]))
    assert "has no value in some rows. Remove them" in fails(*given)  # later ones are not read
    cars = pandas.read_csv(folder / "cars.csv").astype({"mpg": object})
    cars.loc[390, "mpg"] = "many"
    cars.to_csv(data, index=False)
    error = fails("evaluate", folder / "cars", data, "--target", "mpg")
    assert "was trained on a numeric target" in error


def test_weights_that_are_all_zero(fails, folder, tmp_path, small_batches):
    frame = pandas.read_csv(folder / "iris.csv").assign(w=0.0)
    frame.to_csv(tmp_path / "iris.csv", index=False)
    given = ["evaluate", folder / "tree", tmp_path / "iris.csv", "--target", "species"]
    error = fails(*given, "--weights", "w")
    assert "Sample weights must contain at least one non-zero number" in error
    frame.loc[0, "w"] = -1.0
    frame.to_csv(tmp_path / "iris.csv", index=False)
    assert "Negative values" in fails(*given, "--weights", "w")


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_parts_are_those_of_all(weighted):
    values = 1e3 + RNG.normal(size=200)
    weight = RNG.integers(1, 4, 200) / 2 if weighted else None
    whole = Moments.of(values, weight)
    found = None
    for rows in np.split(np.arange(200), [3, 4, 150]):
        part = Moments.of(values[rows], weight[rows] if weighted else None)
        found = part if found is None else found.joined(part)
    np.testing.assert_allclose(found, whole, rtol=1e-11)
    share = (np.ones(200) if weight is None else weight) / whole.weight
    off = values - share @ values
    assert whole.error == pytest.approx(np.sqrt((share * off) @ (share * off) * 200 / 199))
    assert np.isnan(Moments.of(values[:1], None).error)


def test_blocks_are_of_so_many_rows():
    model = DecisionTreeClassifier(max_depth=2).fit(*load_iris(return_X_y=True))
    X, y = load_iris(return_X_y=True)
    parts = [
        answers_by_target(model, X[a:b], y[a:b])[0]
        for a, b in ((0, 10), (10, 90), (90, 91), (91, 150))
    ]
    blocks = list(in_blocks(parts, 40))
    assert [block.y.size for block in blocks] == [40, 40, 40, 30]
    assert (np.concatenate([block.y for block in blocks]) == y).all()
    found = np.concatenate([block.shares for block in blocks])
    assert (found == model.predict_proba(X)).all()
    numbers = [Answers(np.ones(3), np.zeros(3), None, None)]
    assert [block.y.size for block in in_blocks(numbers, 2)] == [2, 1]


# ----------------------------------------------------------------------------- limits
def test_a_limit_that_is_exceeded_is_said_once_with_its_bytes(monkeypatch, capsys):
    taken = iter([100, 250, 320, 280])
    monkeypatch.setattr("gputree.cli.memory.LOOK_SECONDS", 0.0)
    monkeypatch.setattr(
        "gputree.cli.memory.resident_bytes", lambda *given: next(taken, 280) * 1_000_000
    )
    with watched_memory(200_000_000):
        while next(taken, None) is not None:
            pass
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("gputree: warning: --memory 200 MB is exceeded: the process takes ")
    assert last.startswith("gputree: warning: the process took ")
    with watched_memory(10**9):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not say it")
def test_mapped_tables_are_not_counted(tmp_path):
    path = tmp_path / "table"
    before = resident_bytes(str(tmp_path))
    path.write_bytes(bytes(1 << 26))
    table = np.memmap(path, np.uint8, "r")
    assert table.sum() == 0
    assert resident_bytes(str(tmp_path)) < before + (1 << 25) < resident_bytes("/no folder")
    assert resident_bytes(str(tmp_path), 1 << 60) > before + (1 << 25)


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_commands_with_a_limit(gputree, folder, command):
    given = [command, folder / "tree", folder / "iris.csv"]
    given += ["--target", "species"] if command == "evaluate" else []
    plain = gputree(*given)
    assert gputree(*given, "--memory", "100GB") == plain
    status, output, errors = gputree(*given, "--memory", "1MB")
    assert (status, output) == plain[:2]
    assert "warning: --memory 1 MB is exceeded: the process takes" in errors


def test_batches_of_a_limit_are_small(gputree, folder, monkeypatch):
    asked = []
    original = readers.rows_of

    def rows_of(path, columns, kinds, verbose=False, batch_bytes=None):
        asked.append(batch_bytes)
        return original(path, columns, kinds, verbose, batch_bytes)

    monkeypatch.setattr(readers, "rows_of", rows_of)
    for limit in ([], ["--memory", "1TB"], ["--memory", "1GB"]):
        gputree("predict", folder / "tree", folder / "iris.csv", *limit)
    assert asked == [delimited.SCAN_BYTES, delimited.BATCH_BYTES, 10**9 // 256]


CHILD = """
import os, signal, sys
from gputree.cli import main, predict
def columns(*given):
    yield {"prediction": __import__("numpy").zeros(9)}
    print(len([name for name in os.listdir(".") if name.startswith(".out.csv.")]), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
predict.columns_of_output = columns
main(["predict", sys.argv[1], sys.argv[2], "-o", "out.csv"])
"""


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="processes are killed by signals")
def test_the_next_run_removes_what_a_killed_one_left(gputree, folder, tmp_path, monkeypatch):
    model, data = folder / "tree", folder / "iris.csv"
    for _ in range(2):  # the second removes what the first one left
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(model), str(data)],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == -signal.SIGKILL
        assert done.stdout == "1\n"
    monkeypatch.chdir(tmp_path)
    assert gputree("predict", model, data, "-o", "out.csv")[0] == 0
    assert os.listdir(tmp_path) == ["out.csv"]
