"""Errors of users are printed in one line; bugs with a traceback and a request for a report."""

import pytest

from gputree import cli
from gputree.datasets import load_auto_mpg, load_golf, load_iris
from gputree.errors import InputError

GOLF = load_golf().filename
TRAIN = ["train", GOLF, "--target", "play"]


def fault(error):
    """Return a function that has a bug."""

    def broken(*_, **__):
        raise error

    return broken


@pytest.fixture
def model(gputree, tmp_path):
    path = tmp_path / "golf.gputree"
    assert gputree(*TRAIN, "-o", path, "--quiet") == (0, "", "")
    return path


@pytest.mark.parametrize("kind", [ValueError, TypeError, RuntimeError, KeyError, ImportError])
def test_a_fault_of_growth_is_none_of_the_user(gputree, tmp_path, monkeypatch, kind):
    monkeypatch.setattr("gputree.estimators.growing.grow_roots", fault(kind("of 3 rows")))
    status, output, errors = gputree(*TRAIN, "-o", tmp_path / "m")
    first, *trace, error, last = errors.splitlines()
    assert (status, output) == (70, "")
    assert first == "Traceback (most recent call last):"
    assert any("growing.py" in line for line in trace)
    assert error.startswith(kind.__name__)
    assert "of 3 rows" in error
    assert last.startswith(f"gputree: error: {kind.__name__}: this is a bug in gputree. Please")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["predict", GOLF], "gputree.prediction.answers.run_blocks"),
        (["evaluate", GOLF], "gputree.cli.evaluate._answers"),
        (["show"], "gputree.cli.show._head"),
        (["explain", GOLF], "gputree.cli.explain._within"),
        (["export", "--format", "json"], "gputree.persistence.save_load._json"),
    ],
)
def test_faults_of_other_commands(gputree, model, monkeypatch, command, place):
    name, *rest = command
    monkeypatch.setattr(place, fault(ValueError("deep down")))
    status, _, errors = gputree(name, model, *rest)
    assert status == 70
    assert "Traceback" in errors
    assert "ValueError: deep down\n" in errors


def test_a_mistake_deep_down_is_one_of_the_user(fails, tmp_path, monkeypatch):
    """Distinguish mistakes of users by the class of the error, not by its place."""
    monkeypatch.setattr("gputree.estimators.growing.grow_roots", fault(InputError("of 3 rows")))
    assert fails(*TRAIN, "-o", tmp_path / "m") == "gputree: error: of 3 rows\n"


@pytest.mark.parametrize("place", [0, 1, 6])
def test_debug_shows_all_tracebacks(gputree, tmp_path, place):
    words = ["train", GOLF, "--target", "absent", "-o", tmp_path / "m"]
    status, _, errors = gputree(*words[:place], "--debug", *words[place:])
    assert status == 1
    assert errors.startswith("Traceback")
    assert "gputree.errors.InputError: " in errors
    assert "has no column 'absent'" in errors.splitlines()[-1]


def test_debug_shows_where_an_interrupt_came(gputree, tmp_path, monkeypatch):
    monkeypatch.setattr("gputree.estimators.growing.grow_roots", fault(KeyboardInterrupt()))
    status, _, errors = gputree(*TRAIN, "-o", tmp_path / "m", "--debug")
    assert status == 130
    assert errors.startswith("Traceback")
    assert errors.endswith("gputree: error: interrupted\n")


# Mistakes that other libraries find, some of them deep in their own code.
MISTAKES = {
    "more folds than rows": ["--pruning", "cost_complexity_cv:cv=15"],
    "one fold": ["--pruning", "cost_complexity_cv:cv=1"],
    "a share of rows that is none": ["--pruning", "reduced_error:validation_fraction=2"],
    "a seed below 0": ["--random-state", "-1"],
    "a sign of text": ["--monotonic-cst", "outlook=1"],
    "a sign of no column": ["--monotonic-cst", "absent=1"],
    "no such class": ["--classes", "yes,maybe"],
    "no device": ["--device", "tpu"],
    "folds beyond rows": ["--cv", "15"],
    "columns that are none": ["--categorical", "absent"],
    "a number of jobs": ["--n-jobs", "0"],
    "weights of text": ["--weights", "outlook"],
    "a file of costs that is none": ["--costs", "absent.costs"],
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_end_in_one_line(gputree, tmp_path, mistake):
    status, output, errors = gputree(*TRAIN, "-o", tmp_path / "m", *mistake)
    assert (status in (1, 2), output) == (True, ""), errors
    assert errors.startswith("gputree: error: ")
    assert errors.count("\n") == 1


# ----------------------------------------------------------------------- habits from other programs


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
    "-U -C 0.1": "Write --algorithm c45 --pruning none",
    "-R -N 5": "Write --pruning reduced_error:validation_fraction=0.2",
    "-S": "Write --algorithm c45 --pruning pessimistic:subtree_raising=false",
    "-S -C 0.1": "Write --algorithm c45 --pruning pessimistic:subtree_raising=false,confidence=0.1",
    "-S 70": "Write --algorithm c45 --holdout 0.3",
    "-c 10": "Write --algorithm c45 --pruning pessimistic:confidence=0.1",
    "--cp=0.02": "Write --pruning cost_complexity:cp=0.02",
    "--max_depth 3": "Did you mean --max-depth?",
    "--test-size=0.3": "Write --holdout 0.3",
    "--max-leaf-node 3": "Did you mean --max-leaf-nodes?",
}


@pytest.mark.parametrize("option", ["--forced-splits splits.json", "--monotonic-cst weight=1"])
def test_constraints_are_options_in_messages(fails, tmp_path, option, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "splits.json").write_text('{"feature": "weight", "threshold": 2800}')
    cars = [load_auto_mpg().filename, "--target", "mpg", "--criterion", "absolute_error"]
    told = fails("train", *cars, "-o", tmp_path / "m", *option.split())
    assert f"does not take {option.split()[0]} with" in told
    assert told.endswith(f"Leave {option.split()[0]} out.\n")


@pytest.mark.parametrize("words", OPTIONS)
def test_options_of_other_programs(misused, tmp_path, words):
    told = misused(*TRAIN, "-o", tmp_path / "m", *words.split())
    assert told.startswith(f"gputree: error: unrecognized arguments: {words}. {OPTIONS[words]} (")


def test_a_training_file_of_weka_is_no_number_of_trials(misused, tmp_path):
    assert "--trials" not in misused(*TRAIN, "-o", tmp_path / "m", "-t", "weather.arff")


def test_options_of_other_programs_before_the_table(misused, tmp_path):
    told = misused("train", "-M", "3", *TRAIN[1:], "-o", tmp_path / "m")
    assert "Write --min-samples-leaf 3" in told


@pytest.mark.parametrize("words", OPTIONS.values())
def test_what_is_advised_is_taken(gputree, tmp_path, words):
    if words.startswith("Write"):
        given = [*TRAIN, "-o", tmp_path / "m", "--algorithm", "c45", *words.split()[1:]]
        assert gputree(*given)[0] == 0


@pytest.mark.parametrize(("name", "ours"), [("j48", "c45"), ("C5.0", "c45 --trials 10")])
def test_algorithms_of_other_programs(misused, tmp_path, name, ours):
    told = misused(*TRAIN, "-o", tmp_path / "m", "--algorithm", name)
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


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (OSError(28, "No space left on device", "t.csv"), "t.csv: No space left on device"),
        (OSError("no server"), "no server"),
        (ValueError("X has 2 features"), "X has 2 features"),
    ],
)
def test_what_an_error_says(error, message):
    assert cli._message(error) == message
