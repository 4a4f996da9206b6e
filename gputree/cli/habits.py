"""Options of J48, C4.5, C5.0, rpart and scikit-learn, and the corresponding ones."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable

from gputree.base.texts import nearest

_CONFIDENCE = "--pruning pessimistic:confidence={}"
_RAISING = "--pruning pessimistic:subtree_raising=false"
_FOLDS = "--pruning reduced_error:validation_fraction={}"

# {} stands for the value that follows, or for the example. More are in docs/coming_from.md.
_OPTIONS = {
    "-C": (_CONFIDENCE, "0.25"),
    "-M": ("--min-samples-leaf {}", "2"),
    "-U": ("--pruning none", ""),
    "-O": ("--no-collapse", ""),
    "-J": ("--no-mdl-correction", ""),
    "-B": ("--binary-splits", ""),
    "-A": ("--laplace", ""),
    "-R": ("--pruning reduced_error", ""),
    "-S": (_RAISING, ""),
    "-Q": ("--random-state {}", "1"),
    "-x": ("--cv {}", "10"),
    "-m": ("--min-samples-leaf {}", "2"),
    "-r": ("--rules", ""),
    "-t": ("--trials {}", "10"),
    "-b": ("--trials 10", ""),
    "-w": ("--winnow", ""),
    "-p": ("--soft-thresholds", ""),
    "-X": ("--cv {}", "10"),
    "-I": ("--random-state {}", "1"),
    "--test": ("--holdout {}", "0.2"),
    "--test-size": ("--holdout {}", "0.2"),
    "--folds": ("--cv {}", "10"),
    "--cp": ("--pruning cost_complexity:cp={}", "0.01"),
    "--xval": ("--pruning cost_complexity_cv:cv={}", "10"),
    "--minsplit": ("--min-samples-split {}", "20"),
    "--minbucket": ("--min-samples-leaf {}", "7"),
    "--maxdepth": ("--max-depth {}", "30"),
    "--ntree": ("--n-estimators {}", "500"),
    "--n-trees": ("--n-estimators {}", "500"),
    "--mtry": ("--max-features {}", "sqrt"),
}

_ALGORITHMS = {
    "j48": "c45",
    "c4.5": "c45",
    "c50": "c45 --trials 10",
    "c5.0": "c45 --trials 10",
    "see5": "c45 --trials 10",
    "rpart": "cart",
    "simplecart": "cart",
    "id3": "id3",
    "cart": "cart",
    "c45": "c45",
    "randomforest": "random-forest",
    "random_forest": "random-forest",
    "forest": "random-forest",
    "rf": "random-forest",
    "ranger": "random-forest",
    "extratrees": "extra-trees",
    "extra_trees": "extra-trees",
}

# Those of J48 and C5.0, which CART does not have.
_OF_C45 = {"-C", "-U", "-O", "-J", "-B", "-A", "-S", "-r", "-b", "-c"}

_STRONGER = ("none", "reduced_error", "pessimistic", "cost_complexity", "cost_complexity_cv")

_NUMBER = re.compile(r"\d*\.?\d+")


def unrecognized(words: list[str], given: list[str], options: Collection[str]) -> str:
    """Message about unrecognized words among those given, of a command with some `options`."""
    ours: list[str] = []
    meant: list[str] = []
    for word in words:
        name, _, value = word.partition("=")
        after = given[given.index(word) + 1 :] if word in given else []
        if form := _ours(name, value or (after[0] if after else ""), options):
            ours = _with_form(ours, form)
        elif name.startswith("--") and (near := nearest(name.replace("_", "-"), options)):
            meant.append(near)
    if ours and _OF_C45.intersection(words) and "--algorithm" not in given:
        ours.insert(0, "--algorithm c45")
    text = f"unrecognized arguments: {' '.join(words)}"
    text += f". Write {' '.join(ours)}" if ours else ""
    return text + (f". Did you mean {' '.join(meant)}?" if meant else "")


def _with_form(ours: list[str], form: str) -> list[str]:
    """Options, and one more: of two ways to prune one, with the parameters of both.

    As in J48, where -U excludes -C and -S, and -R -C.
    """
    begin = "--pruning "
    before = next((option for option in ours if option.startswith(begin)), None)
    if before is None or not form.startswith(begin):
        return [*ours, form]
    methods = [text.removeprefix(begin).partition(":") for text in (before, form)]
    strongest = min(methods, key=lambda method: _STRONGER.index(method[0]))
    parameters = [given for name, _, given in methods if name == strongest[0] and given]
    one = begin + strongest[0] + (":" + ",".join(parameters) if parameters else "")
    return [one if option == before else option for option in ours]


def _ours(name: str, value: str, options: Collection[str]) -> str | None:
    """The option that corresponds to one of another program, or None."""
    if "--algorithm" not in options:  # of train
        return None
    number = value if _NUMBER.fullmatch(value) else ""
    if name == "-t" and value and not number:  # Weka's training file
        return None
    if name == "-N":  # one fold of this number
        return _FOLDS.format(f"{1 / max(float(number or 3), 2):.3g}")
    if name == "-S" and number:  # C5.0's rows to train on, in percent
        return f"--holdout {max(1 - float(number) / 100, 0.01):g}"
    if name == "-c":  # in percent
        return _CONFIDENCE.format(f"{float(number or 25) / 100:g}")
    form, example = _OPTIONS.get(name, (None, ""))
    return None if form is None else form.format(number or example)


def one_of(algorithms: Iterable[str], name: str) -> str:
    """The name of an algorithm; a type for argparse."""
    if name in (listed := list(algorithms)):
        return name
    words = f"must be {', '.join(listed[:-1])} or {listed[-1]}, got {name!r}"
    if (written := _ALGORITHMS.get(name.casefold())) is not None:
        words += f". Write --algorithm {written}"
    raise argparse.ArgumentTypeError(words)
