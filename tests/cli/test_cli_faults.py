"""Errors of users are printed in one line; bugs with a traceback and a request for a report."""

import pytest

from gputree.datasets import load_golf
from gputree.errors import InputError

GOLF = load_golf().filename
TRAIN = ["train", GOLF, "--target", "play"]


def fault(error):
    """What stands in for a function that has a bug."""

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
    monkeypatch.setattr("gputree.estimators.growing.grow", fault(kind("of 3 rows")))
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
        (["predict", GOLF], "gputree.prediction.answers._run_blocks"),
        (["evaluate", GOLF], "gputree.cli.evaluate.answers"),
        (["show"], "gputree.cli.show._head"),
        (["explain", GOLF], "gputree.cli.explain._within"),
        (["export", "--format", "json"], "gputree.estimators.json_file._json"),
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
    """What tells them apart is the kind of error, not its place."""
    monkeypatch.setattr("gputree.estimators.growing.grow", fault(InputError("of 3 rows")))
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
    monkeypatch.setattr("gputree.estimators.growing.grow", fault(KeyboardInterrupt()))
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
