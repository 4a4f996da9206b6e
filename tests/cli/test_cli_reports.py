"""`gputree evaluate`, `explain` and `export`; the help of all commands."""

import csv
import errno
import json
import re
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

from gputree import C45Classifier, DecisionTreeClassifier, export_json, load_model, save_model
from gputree import export as library
from gputree.base.texts import aligned, display_width, tabled
from gputree.cli import _COMMANDS, main
from gputree.cli.export import FORMATS
from gputree.datasets import load_auto_mpg, load_golf, load_iris, read_table

GOLF = load_golf().filename
IRIS = load_iris().filename
CARS = load_auto_mpg().filename


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    asked = {
        "golf": [GOLF, "--target", "play", "--algorithm", "c45"],
        "iris": [IRIS, "--target", "species", "--max-depth", "2"],
        "cars": [CARS, "--target", "mpg", "--max-depth", "4"],
    }
    for name, arguments in asked.items():
        assert main(["train", *arguments, "--quiet", "-o", str(folder / name)]) == 0
    return {name: folder / name for name in asked}


# ---------------------------------------------------------------------------------- show
@pytest.mark.parametrize("name", ["golf", "iris", "cars", "costs"])
def test_a_model_is_shown_as_its_estimator_is(said, models, name, tmp_path, monkeypatch):
    if name == "costs":
        errors = {("setosa", "virginica"): 3.0, ("virginica", "versicolor"): 2.0}
        tree = DecisionTreeClassifier(max_depth=2, misclassification_costs=errors)
        tree.fit(*load_iris(return_X_y=True)).missing_marks_ = ["?", "none"]
        models = {name: tmp_path / "costs.gputree"}
        save_model(tree, models[name])
    output = said("show", models[name])
    monkeypatch.setattr("gputree.cli.show.load_saved", load_model)
    assert said("show", models[name]) == output


# ------------------------------------------------------------------------------ evaluate
def test_measures_of_classes_are_scikit_learns(said, models):
    table = read_table(IRIS, "species")
    model = load_model(models["iris"])
    y, predicted = table.target, model.predict(table.columns)
    output = said("evaluate", models["iris"], IRIS, "--format", "json")
    found = json.loads(output)
    assert found["rows"] == 150
    assert found["accuracy"] == metrics.accuracy_score(y, predicted)
    assert found["log_loss"] == metrics.log_loss(y, model.predict_proba(table.columns))
    report = metrics.classification_report(y, predicted, output_dict=True)
    for one in found["classes"]:
        expected = report[one["class"]]
        assert one["precision"] == expected["precision"]
        assert one["recall"] == expected["recall"]
        assert one["f1"] == expected["f1-score"]
        assert one["rows"] == expected["support"]
    assert found["confusion_matrix"] == metrics.confusion_matrix(y, predicted).tolist()
    share = found["accuracy"]
    assert found["accuracy_std_error"] == pytest.approx(np.sqrt(share * (1 - share) / 149))


def test_measures_of_numbers_are_scikit_learns(gputree, models):
    table = read_table(CARS, "mpg")
    predicted = load_model(models["cars"]).predict(table.columns)
    _, output, _ = gputree("evaluate", models["cars"], CARS, "--format", "csv")
    rows = list(csv.DictReader(output.splitlines()))
    found = {row["measure"]: float(row["value"]) for row in rows}
    assert found["rows"] == 398
    assert found["r2"] == metrics.r2_score(table.target, predicted)
    assert found["mae"] == metrics.mean_absolute_error(table.target, predicted)
    assert found["rmse"] == metrics.root_mean_squared_error(table.target, predicted)


def test_formats_agree(gputree, models, tmp_path):
    *_, text = gputree("evaluate", models["iris"], IRIS)[:2]
    _, table, _ = gputree("evaluate", models["iris"], IRIS, "--format", "csv")
    _, document, _ = gputree("evaluate", models["iris"], IRIS, "--format", "json")
    found = json.loads(document)
    rows = list(csv.DictReader(table.splitlines()))
    matrix = [int(row["value"]) for row in rows if row["measure"] == "confusion"]
    assert matrix == np.ravel(found["confusion_matrix"]).tolist()
    assert text.splitlines()[1].startswith(f"accuracy  {found['accuracy']:.4f}  +- 0.0")
    assert max(map(len, text.splitlines())) <= 80
    out = tmp_path / "out.txt"
    assert gputree("evaluate", models["iris"], IRIS, "-o", out) == (0, "", "")
    assert out.read_text() == text


def test_many_classes_fit_a_terminal(gputree, tmp_path, monkeypatch):
    data, model = tmp_path / "data.csv", tmp_path / "model"
    names = [f"class number {i}" for i in range(12)]
    data.write_text("a,y\n" + "".join(f"{i % 4},{name}\n" for i, name in enumerate(names * 3)))
    assert gputree("train", data, "--target", "y", "-o", model)[0] == 0
    monkeypatch.setenv("COLUMNS", "80")
    text = gputree("evaluate", model, data)[1]
    assert max(map(len, text.splitlines())) <= 80
    assert "most frequent confusions" in text
    assert re.search(r"^class number 8 +class number 0 +3$", text, re.M)


def test_evaluate_errors(fails, misused, models, tmp_path):
    assert "has no columns 'sepal length'" in fails("evaluate", models["iris"], CARS)
    data = tmp_path / "data.csv"
    text = "note," + Path(GOLF).read_text().replace("\n", "\nx,").rstrip("x,")
    data.write_text(text.replace("play", "played", 1))
    error = misused("evaluate", models["golf"], data)
    assert "columns of" in error
    assert "that are no features of the model are: 'note', 'played'" in error
    data.write_text(Path(CARS).read_text().replace("mpg", "miles", 1))
    assert "has no column 'mpg'" in fails("evaluate", models["cars"], data, "--target", "mpg")
    lines = Path(CARS).read_text().splitlines()
    head = lines[0].split(",")
    place = head.index("mpg")
    cells = [line.split(",") for line in lines[1:]]
    words = [[*row[:place], "good", *row[place + 1 :]] for row in cells]
    data.write_text("\n".join(map(",".join, [head, *words])) + "\n")
    error = fails("evaluate", models["cars"], data)
    assert "was trained on a numeric target; column 'mpg'" in error
    assert "such as 'good'" in error


# ------------------------------------------------------------------------------- explain
def test_explain_rows(gputree, models):
    text = gputree("explain", models["golf"], GOLF)[1]
    paths = text.split("\n\n")
    assert [path.split(":")[0] for path in paths] == ["row 1", "row 2", "row 3"]
    model, table = load_model(models["golf"]), read_table(GOLF, "play")
    told = library.explain(model, table.columns)
    assert paths[0] == f"row 1: {told[0]}"
    some = gputree("explain", models["golf"], GOLF, "--rows", "14,2-3")[1].split("\n\n")
    assert [path.split(":")[0] for path in some] == ["row 2", "row 3", "row 14"]
    assert some[-1] == f"row 14: {told[13]}\n"


def test_explain_errors(fails, misused, gputree, models, write):
    golf = ["explain", models["golf"]]
    status, _, errors = gputree(*golf, GOLF, "--rows", "13-15")
    assert (status, errors.count("\n")) == (1, 1)
    assert errors.endswith("has 14 rows; there is no row 15.\n")
    for rows in ("0", "3-1", "x", "1-", ""):
        assert "must be rows such as 7 or 1-10" in misused(*golf, GOLF, "--rows", rows)
    data = write("\n".join(Path(GOLF).read_text().splitlines()[:3]) + "\n", "two.csv")
    assert gputree(*golf, data)[1].count("row ") == 2  # the first three, where there are so many


# -------------------------------------------------------------------------------- export
def test_texts_are_the_librarys(said, gputree, models):
    iris = load_model(models["iris"])
    expected = {
        "text": library.export_text(iris),
        "rules": "".join(f"{rule}\n" for rule in library.path_rules(iris)),
        "sql": library.export_sql(iris),
        "python": library.export_python(iris),
        "c": library.export_c(iris),
        "lightgbm": library.export_lightgbm(iris),
        "html": library.export_html(iris),
        "graphviz": library.export_graphviz(iris),
        "json": export_json(iris),
    }
    for name, text in expected.items():
        output = said("export", models["iris"], "--format", name)
        assert output == (text if text.endswith("\n") else f"{text}\n"), name
    _, output, _ = gputree("export", models["iris"], "--format", "dict")
    assert eval(output) == library.to_dict(iris)


def test_every_format_has_a_file(gputree, models, tmp_path):
    heads = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    for name, one in FORMATS.items():
        if name in ("onnx", "treelite"):
            pytest.importorskip(name)
        for suffix in one.suffixes or (".out",):
            out = tmp_path / f"model{suffix}"
            asked = [] if one.suffixes else ["--format", name]
            assert gputree("export", models["iris"], *asked, "-o", out) == (0, "", ""), name
            assert out.read_bytes().startswith(heads.get(name, b""))
            assert out.stat().st_size > 100
    assert gputree("show", tmp_path / "model.json")[1] == gputree("show", models["iris"])[1]


def test_sql_is_run(gputree, models, tmp_path):
    out = tmp_path / "iris.sql"
    asked = ["--dialect", "sqlite", "--table", "iris", "-o", out]
    assert gputree("export", models["iris"], *asked) == (0, "", "")
    table = read_table(IRIS, "species")
    names = ", ".join(f'"{name}" REAL' for name in table.names)
    with sqlite3.connect(":memory:") as database:
        database.execute(f"CREATE TABLE iris ({names})")
        rows = list(zip(*(column.to_pylist() for column in table.columns.columns), strict=True))
        database.executemany("INSERT INTO iris VALUES (?, ?, ?, ?)", rows)
        found = [row[-1] for row in database.execute(out.read_text())]
    assert found == load_model(models["iris"]).predict(table.columns).tolist()
    share = gputree("export", models["iris"], "--format", "sql", "--probability-of", "setosa")[1]
    iris = load_model(models["iris"])
    expected = library.export_sql(iris, output="probability", probability_of="setosa")
    assert share == expected


def test_a_warning_is_told_once(gputree, models, monkeypatch):
    """Drawing finds a letter that its font lacks again and again."""

    def draw(*_, **__):
        for letter in "aabaa":
            warnings.warn(f"Glyph {letter} missing from the font", UserWarning, stacklevel=1)
        return "drawn"

    monkeypatch.setitem(FORMATS, "text", FORMATS["text"]._replace(make=draw))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        status, output, errors = gputree("export", models["iris"], "--format", "text")
    assert (status, output) == (0, "drawn\n")
    assert errors.splitlines() == [
        f"gputree: warning: Glyph {letter} missing from the font" for letter in "ab"
    ]


def test_export_errors(fails, misused, models, tmp_path):
    golf, iris = models["golf"], models["iris"]
    assert "--format must be one of text, rules, " in misused("export", iris)
    error = misused("export", iris, "-o", tmp_path / "model.xyz")
    assert "is of no known format: add --format, one of" in error
    wrong = ["export", iris, "--format", "html", "--dialect", "sqlite"]
    assert "--dialect is no option of --format html" in misused(*wrong)
    assert "--missing-rows is no option of" in misused(
        "export", iris, "--format", "c", "--missing-rows", "largest"
    )
    assert "must be one of setosa, versicolor, virginica. Got 'rose'" in misused(
        "export", iris, "--format", "sql", "--probability-of", "rose"
    )
    assert "would overwrite" in misused("export", iris, "--format", "c", "-o", iris)
    out = tmp_path / "golf.sql"
    error = fails("export", golf, "-o", out)
    assert "--missing-rows largest" in error
    assert not out.exists()


# ---------------------------------------------------------------------------------- help
@pytest.mark.parametrize("command", ["", *_COMMANDS])
def test_help_ends_in_examples_that_parse(said, gputree, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = said(*([command] if command else []), "--help")
    assert max(map(len, output.splitlines())) <= 80
    examples = output.partition("examples:\n")[2].replace("\\\n", " ")
    commands = re.findall(r"gputree (\w+[^\n|>]*)", examples)
    assert commands
    for words in commands:
        name = words.split()[0]
        if name == command or (not command and name in _COMMANDS):
            help_of = gputree(name, "--help")[1]
            for flag in re.findall(r"(?<!\S)--[a-z-]+", words):
                assert flag in help_of


def test_all_exit_statuses_are_told(gputree):
    output = gputree("--help")[1]
    for status in ("0 success", "1 error", "2 error", "3 check", "130 interrupt"):
        assert status in " ".join(output.split())


def test_an_interrupt(gputree, monkeypatch, models):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("gputree.cli.show.load_saved", interrupted)
    status, output, errors = gputree("show", models["iris"])
    assert (status, output, errors) == (130, "", "gputree: error: interrupted\n")


# --------------------------------------------------------------------------------- files
def test_several_files_are_one_table(gputree, misused, models, tmp_path):
    lines = Path(IRIS).read_text().splitlines(keepends=True)
    parts = [tmp_path / f"{k}.csv" for k in range(2)]
    for part, rows in zip(parts, (lines[1:60], lines[60:]), strict=True):
        part.write_text(lines[0] + "".join(rows))
    prune = ["prune", models["iris"], "--pruning", "reduced_error", "-o"]
    assert gputree(*prune, tmp_path / "whole", IRIS)[0] == 0
    for files in (parts, [tmp_path / "*.csv"]):
        assert gputree(*prune, tmp_path / "parts", *files)[0] == 0
        assert (tmp_path / "parts").read_bytes() == (tmp_path / "whole").read_bytes()
        for words in (["evaluate", models["iris"]], ["predict", models["iris"], "--proba"]):
            assert gputree(*words, *files) == gputree(*words, IRIS)
    again = ["evaluate", models["iris"], parts[0], "--format", "json", parts[1]]
    assert gputree(*again) == gputree("evaluate", models["iris"], IRIS, "--format", "json")
    prune[3] = "penalized_loss"
    assert "0.csv and 1 more out" in misused(*prune, tmp_path / "parts", *parts)


def test_a_table_may_follow_the_options(gputree, fails, models, tmp_path):
    words = ["prune", models["iris"], "--pruning", "reduced_error"]
    assert gputree(*words, IRIS, "-o", tmp_path / "a")[0] == 0
    assert gputree(*words, "-o", tmp_path / "b", IRIS)[0] == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert "There is no file c." in fails(*words, IRIS, "-o", tmp_path / "a", "c")


def test_held_out_rows_have_a_confusion_matrix(gputree):
    output = gputree("train", IRIS, "--target", "species", "--holdout", "0.3")[1]
    assert "kappa" in output.partition("all held-out rows")[2]
    assert "true class \\ predicted  setosa  versicolor  virginica" in output


def test_an_output_that_cannot_be_written_is_found_first(fails, monkeypatch, tmp_path):
    def refuse(dir):
        raise PermissionError(errno.EACCES, "Permission denied", dir)

    monkeypatch.setattr("gputree.cli.reading.tempfile.TemporaryFile", refuse)
    monkeypatch.setattr("gputree.cli.train.read_training", None)
    error = fails("train", IRIS, "--target", "species", "-o", tmp_path / "m")
    assert f"{tmp_path / 'm'}: Permission denied" in error


# ------------------------------------------------------------------ tables as text in a terminal
def test_wide_characters_take_two_columns():
    assert [display_width(text) for text in ("ab", "\u7eb9\u7406", "e\u0301", "")] == [2, 4, 1, 0]
    assert aligned({"\u7eb9\u7406": "a", "x": "b"}).splitlines() == ["\u7eb9\u7406  a", "x     b"]
    rows = [["", "\u597d\u74dc", "n"], ["\u5426", "3", "10"]]
    assert tabled(rows).splitlines() == ["    \u597d\u74dc   n", "\u5426     3  10"]


def test_a_tree_of_one_leaf_has_no_rule_for_missing_values(gputree, tmp_path):
    golf = load_golf()
    path = tmp_path / "model"
    save_model(C45Classifier(min_samples_leaf=100).fit(golf.data, golf.target), path)
    lines = gputree("show", path)[1].splitlines()
    assert lines[1] == "All rows get the same prediction."
