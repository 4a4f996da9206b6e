"""`gputree edit`, and what `gputree show` says of edits."""

import json
from pathlib import Path

import pytest

from gputree import load_model
from gputree.datasets import load_golf, load_iris, read_table
from gputree.editing import TreeEditor
from gputree.editing.node_summaries import node_summaries

GOLF = load_golf().filename
IRIS = load_iris().filename
SPLIT = "2: petal length <= 5"


@pytest.fixture
def model(gputree, tmp_path):
    path = tmp_path / "iris.gputree"
    assert gputree("train", IRIS, "--target", "species", "-o", path)[0] == 0
    return path


def test_edits_are_those_of_the_editor_and_are_replayed(said, gputree, model, write, tmp_path):
    out, again = tmp_path / "edited.gputree", tmp_path / "again.gputree"
    words = ["--split", SPLIT, "--grow", "18: max-depth=4,min_samples_leaf=5", "--prune", "17,19"]
    with_rows = ["edit", model, "--data", IRIS]
    status, _, errors = gputree(*with_rows, *words)
    assert status == 1
    assert "--prune 17,19: Node 17 is a leaf already." in errors
    words[-1] = "18"
    printed = said(*with_rows, *words)
    assert "17: |   petal length <= 5: versicolor (58/9)" in printed.splitlines()
    assert "nodes" in said(*with_rows, *words, "-o", out)
    table = read_table(IRIS, "species")
    editor = TreeEditor(load_model(model), table.columns, table.target)
    editor.split(2, "petal length", 5.0)
    editor.grow(18, max_depth=4, min_samples_leaf=5)
    editor.prune(18)
    assert load_model(out).tree_.equals(editor.estimator.tree_)
    history = write(said("show", out, "--history"), "history.json")
    assert json.loads(history.read_text()) == editor.history
    for file in (out, history):
        assert gputree(*with_rows, "--replay", file, "-o", again)[0] == 0
        assert again.read_bytes() == out.read_bytes()


def test_rows_of_another_table_are_an_error(gputree, model, tmp_path):
    other = tmp_path / "other.csv"
    head, *rows = Path(IRIS).read_text("utf-8").splitlines()
    other.write_text("\n".join([head, *rows[::2]]))
    status, _, errors = gputree("edit", model, "--data", other)
    assert status == 2
    assert f"{other} does not have the rows that {model} was trained on. --data takes" in errors


def test_alternatives_of_a_node_are_shown(said, model):
    printed = said("show", model, "--alternatives", 2, "--data", IRIS)
    assert printed.startswith("Node 2: petal length > 2.45\n\nsplit")
    assert "petal width <= 1.75    0.3897  54 / 46      1.000     1.000  in use\n" in printed


def test_nodes_are_summarized_as_by_the_editor(said, model):
    printed = said("show", model, "--summary", "--data", IRIS)
    table = read_table(IRIS, "species")
    editor = TreeEditor(load_model(model), table.columns, table.target)
    assert printed == "\n".join(map(str, node_summaries(editor)))
    assert printed.startswith("Node 0: 150 rows, complexity 0.5\n  all rows\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([GOLF, "play", "c45"], "is of binary trees of CART, not C45Classifier."),
        ([GOLF, "play", "id3"], "is of binary trees of CART, not ID3Classifier."),
        ([IRIS, "species", "random-forest", "--n-estimators", 2], "this one has 2 trees."),
        ([GOLF, "play", "c45", "--rules"], "this one has rules."),
    ],
)
def test_models_that_have_no_summary(gputree, fails, tmp_path, words, message):
    (data, target, algorithm, *more), path = words, tmp_path / "model"
    options = ["--target", target, "--algorithm", algorithm, "--max-depth", 2, *more]
    assert gputree("train", data, *options, "--quiet", "-o", path)[0] == 0
    status = 2 if message.startswith("this one has") else 1
    assert message in fails("show", path, "--summary", "--data", data, status=status)


def test_edits_that_do_not_apply(gputree, model, write):
    history = write(
        '[{"edit": "prune", "paths": [[0, 0, 0]]}, {"edit": "grow", "path": [1]}]', "history.json"
    )
    status, _, errors = gputree("edit", model, "--data", IRIS, "--replay", history)
    assert status == 0
    assert 'not applied: {"edit": "prune", "paths": [[0, 0, 0]]}: The tree has no node' in errors


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["edit", "--prune", "x"], "A node is named by its number, got 'x'"),
        (["edit", "--split", "3"], "--split takes 'NODE: COLUMN <= NUMBER'"),
        (["edit", "--grow", "3: max_depth"], "--grow takes limits as max_depth=6"),
        (["show", "--alternatives", "3"], "add --data FILE"),
        (["show", "--summary"], "--summary needs the rows of the tree: add --data FILE."),
        (["edit", "--grow", "2: depth=4"], "no limit 'depth'. Did you mean 'max_depth'?"),
        (["edit", "--split", "2: petals <= 5"], "names no column of the model"),
        (["edit", "--split", "2: petal widht <= 5"], "Did you mean 'petal width'?"),
        (["edit", "--split", "2: petal width <= wide"], "must be a number, got 'wide'"),
        (["edit", "--split", "2: petal width in a,b"], "is split by 'threshold'"),
        (["edit", "--prune", "99"], "has no node 99. It has 0, 1, 2, 3, 4, 5, 6, 7 and 9 more."),
        (["show", "--cp", "--summary"], "--cp and --summary each print something else"),
    ],
)
def test_what_cannot_be_edited(gputree, model, words, message):
    command, *rest = words
    data = ["--data", IRIS] if command == "edit" else []
    status, _, errors = gputree(command, model, *data, *rest)
    assert status in (1, 2)
    assert message in errors
    if command == "show":
        assert "is for --alternatives" in gputree("show", model, "--data", IRIS)[2]
