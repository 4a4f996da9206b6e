"""Options of `gputree train` that constrain splits, and quantiles: the estimators' trees."""

import json

import pytest
from sklearn.metrics import mean_pinball_loss

from gputree import (
    C45Classifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
    load_model,
)
from gputree.datasets import load_auto_mpg, load_golf, read_table

GOLF = load_golf().filename
CARS = load_auto_mpg().filename
CARS_COLUMNS = read_table(CARS, "mpg")


@pytest.fixture
def train(said, tmp_path):
    """``train(...)``: the tree of depth 3 of mpg that the command grows with more options."""

    def run(*words):
        path = tmp_path / "model"
        said("train", CARS, "--target", "mpg", "--max-depth", 3, "--quiet", *words, "-o", path)
        return load_model(path)

    return run


@pytest.fixture
def refused(fails, tmp_path):
    """``refused(...)``: the message for options of training on the cars; no model is written."""

    def run(*words, status=1):
        model = tmp_path / "model"
        error = fails("train", CARS, "--target", "mpg", *words, "-o", model, status=status)
        assert not model.exists()
        return error

    return run


def grown(**params):
    """The regressor of depth 3 of mpg, fitted by the library."""
    model = DecisionTreeRegressor(max_depth=3, random_state=0, **params)
    return model.fit(CARS_COLUMNS.columns, CARS_COLUMNS.target)


# ------------------------------------------------------------------------ interactions
GROUPS = [["weight", "model year"], ["weight", "horsepower"]]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("weight,model year; weight , horsepower", GROUPS),
        ('[["weight", 5], [3, "horsepower"]]', [["weight", 5], [3, "horsepower"]]),
        ("pairwise", "pairwise"),
        ("no_interactions", "no_interactions"),
    ],
)
def test_groups_are_those_of_the_estimator(train, text, groups):
    model, expected = train("--interactions", text), grown(interaction_cst=groups)
    assert model.interaction_cst == groups
    assert model.tree_.equals(expected.tree_)
    assert not model.tree_.equals(grown().tree_)


def test_a_column_with_a_comma_in_its_name_is_named_by_json(said, tmp_path):
    data, path = tmp_path / "table.csv", tmp_path / "model"
    data.write_text('"a,b",c,y\n' + "".join(f"{i % 2},{i // 2},{i % 3}.5\n" for i in range(12)))
    words = ["train", data, "--target", "y", "--quiet", "-o", path]
    said(*words, "--interactions", '[["a,b"]]')
    model = load_model(path)
    assert model.interaction_cst == [["a,b"]]
    expected = DecisionTreeRegressor(interaction_cst=[[0], [1]], random_state=0)
    table = read_table(data, "y")
    assert model.tree_.equals(expected.fit(table.columns, table.target).tree_)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("weight,wheels", "'wheels'"),
        ('[["weight", 7]]', "7"),
        ("", "''"),
        ("weight;;horsepower", "''"),
        ("weight,", "''"),
    ],
)
def test_groups_of_columns_that_there_are_not(refused, text, fault):
    error = refused("--interactions", text)
    assert f"Interaction constraints have {fault}, which is no column: groups are of" in error
    assert "names or of indices from 0 to 6" in error


def test_groups_that_are_no_groups(refused):
    error = refused("--interactions", "[[", status=2)
    assert "argument --interactions: is no JSON: Expecting value" in error
    error = refused("--interactions", "[1, 2]")
    assert "must be a sequence of tuples or lists, got: [1, 2]" in error


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [("random-forest", RandomForestRegressor), ("extra-trees", ExtraTreesRegressor)],
)
def test_groups_of_forests(train, algorithm, kind):
    words = ["--algorithm", algorithm, "--n-estimators", 2, "--interactions", "weight;model year"]
    groups = [["weight"], ["model year"]]
    expected = kind(n_estimators=2, max_depth=3, random_state=0, interaction_cst=groups)
    expected.fit(CARS_COLUMNS.columns, CARS_COLUMNS.target)
    for one, other in zip(train(*words).estimators_, expected.estimators_, strict=True):
        assert one.tree_.equals(other.tree_)


def test_groups_of_c45(said, tmp_path):
    path = tmp_path / "model"
    words = ["--algorithm", "c45", "--interactions", "no_interactions", "--quiet"]
    said("train", GOLF, "--target", "play", *words, "-o", path)
    table = read_table(GOLF, "play")
    model = C45Classifier(interaction_cst="no_interactions", random_state=0)
    assert load_model(path).tree_.equals(model.fit(table.columns, table.target).tree_)


# ----------------------------------------------------------------------- forced splits
FORCED = {
    "feature": "model year",
    "threshold": 76.5,
    "right": {"feature": "cylinders", "threshold": 5},
}


def test_the_model_keeps_the_splits_that_its_tree_begins_with(train, write):
    path = write(json.dumps(FORCED), "splits.json")
    model = train("--forced-splits", path)
    path.unlink()
    assert model.forced_splits == FORCED
    assert model.tree_.equals(grown(forced_splits=FORCED).tree_)
    tree, names = model.tree_, model.feature_names_in_
    right = tree.first_child[0] + 1
    assert [names[tree.feature[node]] for node in (0, right)] == ["model year", "cylinders"]
    assert [tree.threshold[node] for node in (0, right)] == [76.5, 5.0]
    again = model.fit(CARS_COLUMNS.columns, CARS_COLUMNS.target)  # without the file
    assert again.tree_.equals(tree)


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (None, 2, "splits.json is no JSON file of splits: [Errno 2] No such file"),
        ("{", 2, "splits.json is no JSON file of splits: Expecting property name"),
        ("\xff", 2, "splits.json is no JSON file of splits: 'utf-8' codec can't decode"),
        ("[1]", 2, "splits.json has no object, but list"),
        ('{"threshold": 5}', 1, "forced-splits must be a dict with 'feature', got {'threshold': 5"),
        ('{"feature": "wheels", "threshold": 5}', 1, "wheels"),
    ],
)
def test_files_that_force_nothing(refused, tmp_path, text, status, message):
    path = tmp_path / "splits.json"
    if text is not None:
        path.write_text(text, "latin-1")
    assert message in refused("--forced-splits", path, status=status)


def test_splits_are_forced_in_trees_of_cart_without_constraints(refused, write):
    path = write(json.dumps(FORCED), "splits.json")
    error = refused("--algorithm", "random-forest", "--forced-splits", path, status=2)
    assert "--forced-splits is no option of random-forest: add --algorithm cart." in error
    error = refused("--interactions", "pairwise", "--forced-splits", path)
    assert "A tree takes --forced-splits or --interactions, not both." in error


# ---------------------------------------------------------------------------- quantiles
def test_leaves_predict_the_quantile(train, said, tmp_path):
    model = train("--criterion", "quantile", "--quantile", 0.9)
    assert model.quantile == 0.9
    assert model.tree_.equals(grown(criterion="quantile", quantile=0.9).tree_)
    assert "|   |   model year <= 73.5: 14 (41, pinball 0.2244)" in said("show", tmp_path / "model")


def test_quantiles_are_judged_by_their_loss(train, said, tmp_path, monkeypatch):
    """In parts of rows that are evaluated one after another, in cross-validation and in reports."""
    model = train("--criterion", "quantile", "--quantile", 0.9)
    X, y = CARS_COLUMNS.columns, CARS_COLUMNS.target
    expected = mean_pinball_loss(y, model.predict(X), alpha=0.9)
    monkeypatch.setattr("gputree.cli.evaluate.BLOCK_CELLS", 100)
    found = json.loads(said("evaluate", tmp_path / "model", CARS, "--format", "json"))
    assert found["pinball_loss"] == pytest.approx(expected, rel=1e-12)
    assert found["pinball_loss_std_error"] > 0
    assert model.report(X, y).as_dict()["mean_pinball_loss"] == pytest.approx(expected, rel=1e-12)
    text = said("train", CARS, "--target", "mpg", "--criterion", "quantile", "--cv", 2)
    assert "\npinball loss " in text
    train()
    assert "pinball" not in said("evaluate", tmp_path / "model", CARS)


def test_quantiles_that_cannot_be(refused, misused, tmp_path):
    error = refused("--criterion", "quantile", "--quantile", 1.5, status=2)
    assert "--quantile must be a float in the range [0.001, 0.999]. Got 1.5" in error
    assert "invalid float value: 'most'" in refused("--quantile", "most", status=2)
    words = ["--target", "play", "--quantile", 0.5, "-o", tmp_path / "model"]
    assert "--quantile is no option of cart." in misused("train", GOLF, *words)
