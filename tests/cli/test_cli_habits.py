"""Names and options as users of other programs write them, or misspell them."""

import pytest

from gputree.datasets import load_golf, load_iris

GOLF = load_golf().filename
TRAIN = ["train", GOLF, "--target", "play", "-o"]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--target", "pley"], "play"),
        (["--target", "PLAY"], "play"),
        (["--target", "play", "--ignore", "Outlok"], "outlook"),
        (["--target", "play", "--columns", "wint"], "wind"),
        (["--target", "play", "--categorical", "humid"], "humidity"),
        (["--target", "play", "--weights", "wint"], "wind"),
    ],
)
def test_a_column_that_was_meant(fails, tmp_path, words, meant):
    assert f". Did you mean {meant!r}?" in fails("train", GOLF, *words, "-o", tmp_path / "m")


def test_a_column_that_is_near_none(fails, tmp_path):
    assert "mean" not in fails("train", GOLF, "--target", "zzz", "-o", tmp_path / "m")


# As documented by Weka, C5.0 and rpart.
OPTIONS = {
    "-C 0.1": "Write --algorithm c45 --pruning pessimistic:confidence=0.1",
    "-C": "Write --algorithm c45 --pruning pessimistic:confidence=0.25",
    "-M 3": "Write --min-samples-leaf 3",
    "-C 0.1 -M 3": "Write --algorithm c45 --pruning pessimistic:confidence=0.1 "
    "--min-samples-leaf 3",
    "-U": "Write --algorithm c45 --pruning none",
    "-c 10": "Write --algorithm c45 --pruning pessimistic:confidence=0.1",
    "--cp=0.02": "Write --pruning cost_complexity:cp=0.02",
    "--max_depth 3": "Did you mean --max-depth?",
    "--test-size=0.3": "Write --holdout 0.3",
    "--max-leaf-node 3": "Did you mean --max-leaf-nodes?",
}


@pytest.mark.parametrize("words", OPTIONS)
def test_options_of_other_programs(misused, tmp_path, words):
    told = misused(*TRAIN, tmp_path / "m", *words.split())
    assert told.startswith(f"gputree: error: unrecognized arguments: {words}. {OPTIONS[words]} (")


def test_a_training_file_of_weka_is_no_number_of_trials(misused, tmp_path):
    assert "--trials" not in misused(*TRAIN, tmp_path / "m", "-t", "weather.arff")


def test_options_of_other_programs_before_the_table(misused, tmp_path):
    told = misused("train", "-M", "3", *TRAIN[1:], tmp_path / "m")
    assert "Write --min-samples-leaf 3" in told


@pytest.mark.parametrize("words", OPTIONS.values())
def test_what_is_advised_is_taken(gputree, tmp_path, words):
    if words.startswith("Write"):
        given = [*TRAIN, tmp_path / "m", "--algorithm", "c45", *words.split()[1:]]
        assert gputree(*given)[0] == 0


@pytest.mark.parametrize(("name", "ours"), [("j48", "c45"), ("C5.0", "c45 --trials 10")])
def test_algorithms_of_other_programs(misused, tmp_path, name, ours):
    told = misused(*TRAIN, tmp_path / "m", "--algorithm", name)
    assert f"got {name!r}. Write --algorithm {ours} (see" in told


def test_other_commands_have_no_such_options(misused, tmp_path):
    assert misused("show", tmp_path / "m", "-M", "3").endswith("-M 3 (see gputree show --help)\n")


# --------------------------------------------------------------------------------- numbers
@pytest.mark.filterwarnings("always")
def test_id3_warns_of_quantities_once(gputree, tmp_path):
    iris = ["train", load_iris().filename, "--target", "species", "--algorithm", "id3"]
    status, _, errors = gputree(*iris, "--cv", 5, "-o", tmp_path / "m")
    assert status == 0
    assert errors.count("\n") == 1
    assert "Columns 'sepal length', 'sepal width', 'petal length', 'petal width' of X " in errors
    assert "Add --algorithm c45. If they are codes, add --categorical NAME." in errors
    names = "sepal length,sepal width,petal length,petal width"
    assert gputree(*iris, "--categorical", names, "-o", tmp_path / "m")[2] == ""
