"""`--weights` and `--classes`: the models and measures are those of the estimators given them."""

import json

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gputree import (
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    load_model,
)
from gputree.datasets import load_auto_mpg, load_iris, read_table
from gputree.pruning import ReducedError

FRAME = pandas.read_csv(load_iris().filename)
WEIGHT = np.random.default_rng(0).integers(0, 4, len(FRAME)) / 2
X, Y = FRAME.drop(columns="species"), FRAME["species"]

pytestmark = pytest.mark.usefixtures("unknown_memory")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "iris.csv"
    FRAME.assign(count=WEIGHT).to_csv(path, index=False)
    return path


@pytest.fixture
def options(data, tmp_path):
    return [data, "--target", "species", "--weights", "count", "-o", tmp_path / "model"]


def columns(model):
    return X[list(model.feature_names_in_)]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([], DecisionTreeClassifier()),
        (["--algorithm", "c45"], C45Classifier()),
        (["--algorithm", "c45", "--rules"], C45Rules()),
        (["--columns", "petal length,petal width"], DecisionTreeClassifier()),
        (["--ignore", "count"], DecisionTreeClassifier()),
        (["--memory", "1B"], DecisionTreeClassifier()),
        (["--memory", "1B", "--algorithm", "c45"], C45Classifier()),
    ],
)
def test_models_are_those_of_weighted_rows(said, options, tmp_path, asked, expected):
    said("train", *options, *asked, "--quiet")
    model = load_model(tmp_path / "model")
    assert "count" not in model.feature_names_in_
    expected.fit(columns(model), Y, WEIGHT)
    trees = [getattr(one, "estimator_", one).tree_ for one in (model, expected)]
    assert trees[0].equals(trees[1])
    assert str(getattr(model, "rules_", "")) == str(getattr(expected, "rules_", ""))


def test_summary_and_scores(said, gputree, options, tmp_path):
    output = said("train", *options, "--max-depth", 2, "--holdout", 0.3)
    model = load_model(tmp_path / "model")
    assert f"weights   count, {WEIGHT.sum():,.0f} in all" in output
    assert f"accuracy {model.score(X, Y, WEIGHT):.4f} on the training rows" in output
    rows = np.count_nonzero(WEIGHT)
    assert f"of {rows} held out" in output
    again = gputree("train", *options, "--max-depth", 2, "--cv", 3)[1]
    assert "3-fold cross-validation" in again


def test_evaluate_counts_weights(gputree, options, data, tmp_path):
    gputree("train", *options, "--quiet", "--max-depth", 1)
    model = load_model(tmp_path / "model")
    asked = ["evaluate", tmp_path / "model", data, "--weights", "count"]
    found = json.loads(gputree(*asked, "--format", "json")[1])
    report = model.report(X, Y, WEIGHT)
    assert found["accuracy"] == report.measures["accuracy"] == model.score(X, Y, WEIGHT)
    assert found["weight"] == WEIGHT.sum()
    assert found["rows"] == np.count_nonzero(WEIGHT)
    assert found["confusion_matrix"] == report.classes.matrix.tolist()
    text = gputree(*asked)[1]
    assert text.splitlines()[1].split() == ["weight", f"{WEIGHT.sum():,.0f}"]
    assert f"weight,,,{WEIGHT.sum()}" in gputree(*asked, "--format", "csv")[1]
    plain = json.loads(gputree("evaluate", tmp_path / "model", data, "--target", "species",
                               "--format", "json")[1])  # fmt: skip
    assert plain["accuracy"] == model.score(X, Y)


def test_prune_counts_weights(gputree, data, options, tmp_path):
    gputree("train", *options, "--quiet")
    out = tmp_path / "pruned"
    asked = ["prune", tmp_path / "model", data, "--pruning", "reduced_error", "-o", out]
    assert gputree(*asked, "--weights", "count")[0] == 0
    expected = ReducedError().prune(DecisionTreeClassifier().fit(X, Y, WEIGHT), X, Y, WEIGHT)
    assert load_model(out).tree_.equals(expected.tree_)


def test_regression(gputree, tmp_path):
    cars = pandas.read_csv(load_auto_mpg().filename)
    weighted = cars.assign(w=np.linspace(0.5, 2.0, len(cars)))
    weighted.to_csv(tmp_path / "cars.csv", index=False)
    asked = ["train", tmp_path / "cars.csv", "--target", "mpg", "--weights", "w", "--max-depth", 3]
    assert gputree(*asked, "-o", tmp_path / "model")[0] == 0
    table = read_table(load_auto_mpg().filename, "mpg")
    expected = DecisionTreeRegressor(max_depth=3).fit(table.columns, table.target, weighted["w"])
    assert load_model(tmp_path / "model").tree_.equals(expected.tree_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("-1", "Negative values in data passed to `sample_weight`"),
        ("", "Input sample_weight contains NaN"),
        ("inf", "Input sample_weight contains infinity"),
        ("some", "count"),
    ],
)
@pytest.mark.parametrize("memory", [[], ["--memory", "1B"]])
def test_columns_that_hold_no_weights(fails, write, tmp_path, weights, message, memory):
    data = write(f"a,count,y\n1,1,p\n2,{weights},q\n3,2,q\n")
    error = fails("train", data, "--target", "y", "--weights", "count", *memory, "-o",
                  tmp_path / "model")  # fmt: skip
    assert message in error
    assert "'count'" in error
    assert not (tmp_path / "model").exists()


def test_weights_that_are_all_zero_and_columns_that_are_not_there(fails, misused, write, tmp_path):
    data = write("a,w,y\n1,0,p\n2,0,q\n")
    end = ["-o", tmp_path / "model"]
    for memory in ([], ["--memory", "1B"]):
        error = fails("train", data, "--target", "y", "--weights", "w", *memory, *end)
        assert "Column 'w' of" in error
        assert "Sample weights must contain at least one non-zero number" in error
        error = fails("train", data, "--target", "y", "--weights", "v", *memory, *end)
        assert "has no column 'v'" in error
    error = misused("train", data, "--target", "y", "--weights", "y", *end)
    assert "--weights and --target both name 'y'" in error
    data.write_text("w,y\n1,p\n2,q\n")
    error = fails("train", data, "--target", "y", "--weights", "w", *end)
    assert "no feature column other than that of --weights" in error


# --------------------------------------------------------------------------- classes
def test_classes_that_the_target_lacks(gputree, fails, misused, data, tmp_path):
    end = ["--target", "species", "--quiet", "-o", tmp_path / "model"]
    names = "versicolor,setosa,virginica,lily"
    assert gputree("train", data, *end, "--algorithm", "c45", "--classes", names)[0] == 0
    model = load_model(tmp_path / "model")
    assert model.classes_.tolist() == sorted(names.split(","))
    frame = FRAME.assign(count=WEIGHT).drop(columns="species")
    expected = C45Classifier(classes=names.split(",")).fit(frame, Y)
    assert model.tree_.equals(expected.tree_)
    error = fails("train", data, *end, "--classes", "setosa,virginica")
    assert "labels that --classes does not list: ['versicolor']" in error
    error = fails("train", data, *end, "--classes", "setosa,setosa")
    assert "--classes must list different labels" in error
    assert "declares no classes" in misused("train", data, *end, "--classes", "declared")


def test_classes_of_numbers_and_booleans(gputree, misused, tmp_path):
    data, end = tmp_path / "t.csv", ["--target", "y", "--quiet", "-o", tmp_path / "model"]
    for cells, names, expected in (
        ("01", "0,1,2", [0, 1, 2]),
        (["true", "false"], "true,False", [False, True]),
    ):
        data.write_text("a,y\n" + "".join(f"{i},{cells[i % 2]}\n" for i in range(8)))
        assert gputree("train", data, *end, "--classes", names)[0] == 0
        assert load_model(tmp_path / "model").classes_.tolist() == expected
        error = misused("train", data, *end, "--classes", "perhaps")
        assert "--classes must be" in error
        assert "Got 'perhaps'" in error
    data.write_text("a,y\n" + "".join(f"{i},{i / 7}\n" for i in range(40)))
    asked = ["train", data, *end, "--task", "regression", "--classes", "1,2"]
    assert "--classes is for classification" in misused(*asked)


def test_declared_classes(gputree, tmp_path):
    declared = ["c", "b", "a"]
    arff, parquet = tmp_path / "t.arff", tmp_path / "t.parquet"
    arff.write_text("@relation t\n@attribute x numeric\n@attribute y {c, b, a}\n@data\n"
                    + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(6)))  # fmt: skip
    words = pa.DictionaryArray.from_arrays([2, 1] * 3, declared)
    pq.write_table(pa.table({"x": range(6), "y": words}), parquet)
    for data in (arff, parquet):
        asked = ["train", data, "--target", "y", "--quiet", "-o", tmp_path / "model"]
        assert gputree(*asked)[0] == 0
        assert load_model(tmp_path / "model").classes_.tolist() == ["a", "b"]
        assert gputree(*asked, "--classes", "declared")[0] == 0
        assert load_model(tmp_path / "model").classes_.tolist() == ["a", "b", "c"]
