"""Rules, boosting, winnowing and costs on the command line: the models are the estimators'."""

import csv
import json
import sqlite3

import numpy as np
import pandas
import pytest

from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    C45Rules,
    DecisionTreeClassifier,
    ID3Classifier,
    export_text,
    load_model,
)
from gputree.cli import main
from gputree.cli.export import FORMATS
from gputree.cli.targets import read_costs
from gputree.datasets import load_auto_mpg, load_golf, load_iris, read_table

GOLF = load_golf().filename
IRIS = load_iris().filename
CARS = load_auto_mpg().filename
C45 = ("--algorithm", "c45")
ON_IRIS = (IRIS, "--target", "species")
TABLE = read_table(IRIS, "species")
COSTS = "virginica, versicolor: 5 | a comment\n\n| another\nversicolor, setosa: 2.\n"
PAIRS = {("versicolor", "virginica"): 5.0, ("setosa", "versicolor"): 2.0}


@pytest.fixture
def costs(tmp_path):
    path = tmp_path / "iris.costs"
    path.write_text(COSTS)
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of iris of each kind, by its name; none of them is changed."""
    folder = tmp_path_factory.mktemp("models")
    kinds = {
        "tree": [],
        "rules": [*C45, "--rules"],
        "boosted": [*C45, "--trials", "3"],
        "boosted rules": [*C45, "--rules", "--trials", "3"],
    }
    for name, options in kinds.items():
        assert main(["train", *ON_IRIS, *options, "--quiet", "-o", str(folder / name)]) == 0
    return {name: folder / name for name in kinds}


@pytest.fixture
def rules(models):
    return models["rules"]


@pytest.fixture
def boosted(models):
    return models["boosted"]


def same(model, expected):
    expected = expected.fit(TABLE.columns, TABLE.target)
    assert type(model) is type(expected)
    for name in ("tree_", "estimator_"):
        if hasattr(expected, name):
            mine, other = (getattr(one, name) for one in (model, expected))
            assert getattr(mine, "tree_", mine).equals(getattr(other, "tree_", other))
    for mine, other in zip(
        getattr(model, "estimators_", []), getattr(expected, "estimators_", []), strict=True
    ):
        own_tree, other_tree = (getattr(one, "estimator_", one).tree_ for one in (mine, other))
        assert own_tree.equals(other_tree)
        assert str(getattr(mine, "rules_", "")) == str(getattr(other, "rules_", ""))
    assert str(getattr(model, "rules_", "")) == str(getattr(expected, "rules_", ""))
    np.testing.assert_array_equal(
        model.predict_proba(TABLE.columns), expected.predict_proba(TABLE.columns)
    )


# ---------------------------------------------------------------------------- train
def test_models_are_the_estimators(train, costs):
    seed = {"random_state": 0}
    boosted = train(*ON_IRIS, *C45, "--trials", 4, "--soft-thresholds", "--pruning", "none")
    same(boosted, BoostedC45Classifier(n_trials=4, soft_thresholds=True, pruning=None, **seed))
    assert boosted.verbose == 0
    same(
        train(*ON_IRIS, *C45, "--trials", 2, "--binary-splits", "--winnow", "--costs", costs),
        BoostedC45Classifier(
            n_trials=2, binary_splits=True, winnow=True, misclassification_costs=PAIRS, **seed
        ),
    )
    same(
        train(*ON_IRIS, *C45, "--rules", "--trials", 3, "--rule-confidence", 0.1, "--costs", costs),
        BoostedC45Rules(n_trials=3, confidence=0.1, misclassification_costs=PAIRS, **seed),
    )
    same(
        train(*ON_IRIS, *C45, "--laplace", "--winnow", "--costs", costs),
        C45Classifier(laplace=True, winnow=True, misclassification_costs=PAIRS, **seed),
    )
    same(
        train(*ON_IRIS, "--costs", costs),
        DecisionTreeClassifier(misclassification_costs=PAIRS, **seed),
    )


def test_the_rules_of_c50_can_be_turned_on_and_off(train):
    boosted = {"n_trials": 3, "random_state": 0}
    off = ["--no-exclude-high-cardinality", "--no-mdl-gain-threshold", "--max-leaf-ratio", "none"]
    same(
        train(*ON_IRIS, *C45, "--trials", 3, *off),
        BoostedC45Classifier(
            exclude_high_cardinality=False, mdl_gain_threshold=False, max_leaf_ratio=None, **boosted
        ),
    )
    model = train(*ON_IRIS, *C45, "--trials", 3, "--max-leaf-ratio", 0.5)
    same(model, BoostedC45Classifier(max_leaf_ratio=0.5, **boosted))
    on = ["--exclude-high-cardinality", "--mdl-gain-threshold"]
    model = train(*ON_IRIS, *C45, *on)
    assert model.exclude_high_cardinality
    assert model.mdl_gain_threshold
    model = train(*ON_IRIS, *C45, "--rules", "--trials", 2, "--no-exclude-high-cardinality")
    assert not model.exclude_high_cardinality


@pytest.mark.filterwarnings("always")
def test_the_warning_of_excluded_columns_names_the_option(gputree, tmp_path):
    table = tmp_path / "table.csv"
    rows = "".join(f"word {i % 10},{i % 3},{i % 2}\n" for i in range(20))
    table.write_text(f"a,b,y\n{rows}")
    words = ["train", table, "--target", "y", *C45, "--trials", 2, "-o", tmp_path / "model"]
    _, _, errors = gputree(*words)
    assert "BoostedC45Classifier excludes column 'a' (10 categories) of X: so many" in errors
    assert errors.splitlines()[0].endswith("add --no-exclude-high-cardinality.")
    assert "excludes" not in gputree(*words, "--no-exclude-high-cardinality")[2]


def test_rules_are_of_the_tree_that_is_asked_for(train):
    seed = {"random_state": 0}
    rules = train(*ON_IRIS, *C45, "--rules")
    same(rules, C45Rules(C45Classifier(pruning=None, **seed)))
    assert rules.estimator.verbose == 0
    options = ["--rule-confidence", 0.1, "--rule-weight", 0, "--redundancy", 3, "--n-jobs", 1]
    same(
        train(*ON_IRIS, *C45, "--rules", *options, "--pruning", "pessimistic"),
        C45Rules(
            C45Classifier(pruning="pessimistic", n_jobs=1, **seed),
            confidence=0.1,
            rule_weight=0,
            redundancy=3,
            n_jobs=1,
        ),
    )
    same(
        train(*ON_IRIS, "--rules", "--max-depth", 3),
        C45Rules(DecisionTreeClassifier(max_depth=3, **seed)),
    )
    golf = train(GOLF, "--target", "play", "--algorithm", "id3", "--rules")
    assert isinstance(golf.estimator_, ID3Classifier)


def test_summaries(said, tmp_path):
    def summary_of(*arguments):
        output = said("train", *ON_IRIS, *arguments, "-o", tmp_path / "model")
        return dict(
            line.split(maxsplit=1) for line in output.partition("\n\n")[0].splitlines()
        ), output

    summary, output = summary_of(*C45, "--rules", "--cv", 3)
    model = load_model(tmp_path / "model")
    conditions = model.rules_.n_conditions
    assert summary["rules"] == f"{len(model.rules_)} rules, {conditions} conditions"
    assert summary["tree"].endswith("leaves, depth 4")
    assert summary["task"] == "classification, 3 classes"
    assert output.split("\n\n")[1].splitlines()[-1].split()[0] == "rules"
    summary, output = summary_of(*C45, "--trials", 3, "--winnow", "--holdout", 0.3)
    model = load_model(tmp_path / "model")
    leaves = [tree.get_n_leaves() for tree in model.estimators_]
    told = f"{min(leaves)} to {max(leaves)} leaves, {sum(leaves)} in all"
    assert summary["trials"] == f"{len(leaves)} trees of {told}"
    left = model.feature_names_in_[model.winnowed_]
    assert left.size
    assert summary["winnowed"] == ", ".join(left)
    assert any(line.startswith("leaves ") for line in output.splitlines())
    golf = (GOLF, "--target", "play", *C45, "--pruning", "none", "--trials", 5)
    output = said("train", *golf, "-o", tmp_path / "model")
    told = "ended     before 5 trials, since last classifier is very accurate"
    assert told in output.splitlines()


def test_options_that_do_not_go_together(misused, fails, costs, tmp_path):
    def error(*arguments, on=ON_IRIS):
        return misused("train", *on, *arguments, "-o", tmp_path / "model")

    assert "--trials is no option of cart: add --algorithm c45.\n" in error("--trials", 3)
    assert "--winnow is no option of id3: add --algorithm c45." in error(
        "--algorithm", "id3", "--winnow"
    )
    assert "--rules cannot be combined with --soft-thresholds" in error(
        *C45, "--rules", "--soft-thresholds"
    )
    assert "--redundancy is for rules: add --rules." in error("--redundancy", 2)
    assert "--rule-weight is for rules: add --rules." in error("--rule-weight", 0)
    assert "--laplace cannot be combined with --trials" in error(*C45, "--trials", 3, "--laplace")
    assert "--max-leaf-ratio is for boosted trees: add --trials, without --rules.\n" in error(
        *C45, "--max-leaf-ratio", 2
    )
    assert "--mdl-gain-threshold is no option of boosted rules: leave out --rules.\n" in error(
        *C45, "--rules", "--trials", 2, "--mdl-gain-threshold"
    )
    assert "--exclude-high-cardinality is no option of cart: add --algorithm c45." in error(
        "--exclude-high-cardinality"
    )
    assert "must be a number, got 'few'" in error(*C45, "--trials", 2, "--max-leaf-ratio", "few")
    assert "--max-leaf-ratio must be a float in the range" in error(
        *C45, "--trials", 2, "--max-leaf-ratio", 0
    )
    assert "--trials must be an int in the range" in error(*C45, "--trials", 0)
    assert "--rule-confidence must be a float in" in error("--rules", "--rule-confidence", 2)
    assert "cannot be combined with --costs of more than two" in error("--rules", "--costs", costs)
    cars = (CARS, "--target", "mpg")
    assert "--rules is for classification" in error("--rules", on=cars)
    assert "--costs is for classification" in error("--costs", costs, on=cars)
    gone = tmp_path / "gone"
    assert f"{gone}: No such file" in fails(
        "train", *ON_IRIS, "--costs", gone, "-o", tmp_path / "model"
    )
    assert not (tmp_path / "model").exists()


# ---------------------------------------------------------------------------- costs
def write(path, text):
    path.write_text(text)
    return str(path)


def test_costs_are_read_as_c50_writes_them(tmp_path):
    y = np.array(["a, b", "c:d", "e|f", 'g"h', "plain name"])
    text = (
        '"a, b", c\\:d: 2\n  e\\|f ,plain name :0.5.\n"g""h", a\\, b: 1e1\nplain name, "e|f": 0\n'
    )
    assert read_costs(write(tmp_path / "costs", text), y) == {
        ("c:d", "a, b"): 2.0,
        ("plain name", "e|f"): 0.5,
        ("a, b", 'g"h'): 10.0,
        ("e|f", "plain name"): 0.0,
    }
    numbers = read_costs(write(tmp_path / "costs", "0, 1: 3"), np.array([0, 1]))
    assert numbers == {(1, 0): 3.0}
    assert {type(label) for pair in numbers for label in pair} == {int}
    truth = read_costs(write(tmp_path / "costs", "True, False: 3"), np.array([True, False]))
    assert truth == {(False, True): 3.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no costs: a line is PREDICTED, TRUE: COST"),
        ("a b: 3", "line 1: must be PREDICTED, TRUE: COST, got 'a b: 3'"),
        ("a, b: 3\na, b", "line 2: must be PREDICTED, TRUE: COST, got 'a, b'"),
        ("a, b: dear", "line 1: must be"),
        ("a, c: 3", "line 1: the target has no class 'c'; it has a, b"),
        ("a, b: 3\na, b: 4", "line 2: the cost of 'a' for 'b' stands above"),
    ],
)
def test_costs_that_are_none(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_costs(write(tmp_path / "costs", text), np.array(["a", "b"]))


def test_costs_are_checked_by_the_estimator(misused, tmp_path):
    path = write(tmp_path / "costs", "virginica, setosa: -2")
    error = misused("train", *ON_IRIS, "--costs", path, "-o", tmp_path / "model")
    assert "--costs must hold finite, non-negative costs" in error


# ---------------------------------------------------------------------- predictions
@pytest.mark.parametrize("kind", ["tree", "rules", "boosted"])
def test_answers(said, kind, models):
    path = models[kind]
    model = load_model(path)
    output = said("predict", path, IRIS, "--proba")
    rows = list(csv.DictReader(output.splitlines()))
    assert [row["prediction"] for row in rows] == model.predict(TABLE.columns).tolist()
    share = [float(row["probability_virginica"]) for row in rows]
    assert share == model.predict_proba(TABLE.columns)[:, 2].tolist()
    output = said("evaluate", path, IRIS, "--format", "json")
    assert json.loads(output)["accuracy"] == model.score(TABLE.columns, TABLE.target)


def test_show(said, rules, misused):
    output = said("show", rules)
    model = load_model(rules)
    head, _, body = output.partition("\n\n")
    assert head.startswith("C45Rules (entropy): 4 columns, ")
    assert head.splitlines()[0].endswith(f"{model.rules_.n_conditions} conditions")
    assert body == f"{model.rules_}\n"
    assert "this model has rules" in misused("show", rules, "--max-depth", 3)
    assert "--tree (--trial) is for boosted trees and rules" in misused("show", rules, "--tree", 1)


def test_show_of_boosted_trees(said, gputree, boosted, misused, models):
    output = said("show", boosted)
    model = load_model(boosted)
    head, _, body = output.partition("\n\n")
    assert f"4 columns, {len(model.estimators_)} trees of " in head
    parts = body.split("\n\n")
    assert [part.partition(":")[0] for part in parts] == [
        f"Trial {place}" for place in range(1, len(parts) + 1)
    ]
    assert len(parts) == len(model.estimators_)
    second = gputree("show", boosted, "--tree", 2)[1]
    assert second.partition("\n\n")[2].rstrip() == parts[1].partition("\n")[2].rstrip()
    assert "--tree (--trial) must be from 1 to 3. Got 4" in misused("show", boosted, "--tree", 4)
    error = misused("show", models["tree"], "--tree", 1)
    assert "--tree (--trial) is for boosted trees and rules, and for forests" in error


def test_show_where_costs_decide(said, gputree, train, costs, tmp_path):
    train(*ON_IRIS, "--costs", costs, "--max-depth", 2)
    output = said("show", tmp_path / "model")
    assert (
        "Rows are weighted by the misclassification costs of their class. Leaves name the class of"
        in output
    )
    assert "petal" in output
    model = load_model(tmp_path / "model")
    assert export_text(model) in output
    output = said("explain", tmp_path / "model", IRIS, "--rows", "1-150")
    told = [line.split()[2] for line in output.splitlines() if line.startswith("row ")]
    assert told == model.predict(TABLE.columns).tolist()
    output = said("evaluate", tmp_path / "model", IRIS, "--format", "json")
    cost = model.report(TABLE.columns, TABLE.target).measures["cost"]
    assert json.loads(output)["cost"] == cost


def test_explain(said, rules, misused):
    output = said("explain", rules, IRIS, "--rows", "1,150")
    model = load_model(rules)
    lines = str(model.rules_).splitlines()
    places = model.apply(TABLE.columns)[[0, 149]]
    expected = [f"row {row}: {lines[place]}" for row, place in zip((1, 150), places, strict=True)]
    assert output.split("\n\n") == [expected[0], expected[1] + "\n"]
    assert "--tree (--trial) is for boosted trees" in misused("explain", rules, IRIS, "--tree", 1)


def test_boosted_rules_are_shown_explained_and_exported_one_by_one(said, gputree, models, misused):
    boosted_rules = models["boosted rules"]
    model = load_model(boosted_rules)
    first = model.estimators_[0]
    output = said("show", boosted_rules)
    assert f"4 columns, {len(model.estimators_)} rule sets of " in output
    assert "Trial 2: " in output
    assert "Missing values fail every test except" in output
    assert str(first.rules_) in gputree("show", boosted_rules, "--trial", 1)[1]
    assert "takes one rule set, and this model has 3: add --tree 1." in misused(
        "explain", boosted_rules, IRIS
    )
    output = said("explain", boosted_rules, IRIS, "--tree", 1, "--rows", 1)
    place = first.apply(TABLE.columns)[0]
    assert output == f"row 1: {str(first.rules_).splitlines()[place]}\n"
    text = gputree("export", boosted_rules, "--format", "text", "--tree", 1)
    assert text == (0, f"{first.rules_}\n", "")
    assert "add --tree 1" in misused("export", boosted_rules, "--format", "sql")
    output = said("evaluate", boosted_rules, IRIS)
    head = output.splitlines().index("trial  rules  errors  error rate")
    assert output.splitlines()[head + 1].split()[:2] == ["1", str(len(first.rules_))]


def test_evaluate_tells_what_each_rule_does(gputree, rules):
    model = load_model(rules)
    expected = model.report(TABLE.columns, TABLE.target)
    found = json.loads(gputree("evaluate", rules, IRIS, "--format", "json")[1])
    assert found["each_rule"] == expected.tables["each_rule"]
    assert found["column_usage"] == expected.tables["column_usage"]
    output = gputree("evaluate", rules, IRIS)[1]
    assert output.split("\n\n")[-2:] == f"{expected}\n".split("\n\n")[-2:]
    assert "each_rule" not in gputree("evaluate", rules, IRIS, "--format", "csv")[1]


# --------------------------------------------------------------------------- export
def test_export_of_rules(gputree, rules, misused, tmp_path):
    model = load_model(rules).rules_
    for name, expected in (("text", str(model)), ("rules", str(model)), ("json", model.to_json())):
        assert gputree("export", rules, "--format", name) == (0, f"{expected}\n", "")
    assert gputree("export", rules, "-o", tmp_path / "rules.sql", "--dialect", "sqlite")[0] == 0
    with sqlite3.connect(":memory:") as connection:
        frame = pandas.read_csv(IRIS)
        frame.to_sql("t", connection)
        query = f"SELECT {(tmp_path / 'rules.sql').read_text()} FROM t"
        answers = [row[0] for row in connection.execute(query)]
    assert answers == load_model(rules).predict(TABLE.columns).tolist()
    for name in FORMATS.keys() - {"text", "rules", "json", "sql"}:
        error = misused("export", rules, "--format", name, "-o", tmp_path / "out")
        assert "this model has rules, which can be text, rules, json, sql." in error
    error = misused("export", rules, "--format", "sql", "--probability-of", "setosa")
    assert "--probability-of is no option of --format sql for rules" in error
    assert "--tree (--trial) is for boosted trees" in misused(
        "export", rules, "--format", "text", "--tree", 1
    )


def test_export_and_prune_of_boosted_trees(said, gputree, boosted, misused, rules, tmp_path):
    assert "add --tree 1" in misused("export", boosted, "--format", "text")
    output = said("export", boosted, "--format", "text", "--tree", 1)
    assert output in gputree("show", boosted, "--tree", 1)[1]
    pruned = ["--pruning", "cost_complexity:alpha=0.1", "-o", tmp_path / "out"]
    assert "this one has 3 trials" in misused("prune", boosted, *pruned)
    assert "this one has rules" in misused("prune", rules, *pruned)
