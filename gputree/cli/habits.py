"""Options of J48, C4.5, C5.0, rpart and scikit-learn, and the corresponding ones."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable

from gputree._texts import nearest

_CONFIDENCE = "--pruning pessimistic:confidence={}"

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
}

# Those of J48 and C5.0, which CART does not have.
_OF_C45 = {"-C", "-U", "-O", "-J", "-B", "-A", "-r", "-b", "-c"}

_NUMBER = re.compile(r"\d*\.?\d+")


def unrecognized(words: list[str], given: list[str], known: Collection[str]) -> str:
    """Message about unrecognized words among those given; `known` are the options."""
    ours, meant = [], []
    for word in words:
        name, _, value = word.partition("=")
        after = given[given.index(word) + 1 :] if word in given else []
        if form := _ours(name, value or (after[0] if after else ""), known):
            ours.append(form)
        elif name.startswith("--") and (near := nearest(name.replace("_", "-"), known)):
            meant.append(near)
    if ours and _OF_C45.intersection(words) and "--algorithm" not in given:
        ours.insert(0, "--algorithm c45")
    text = f"unrecognized arguments: {' '.join(words)}"
    text += f". Write {' '.join(ours)}" if ours else ""
    return text + (f". Did you mean {' '.join(meant)}?" if meant else "")


def _ours(name: str, value: str, known: Collection[str]) -> str | None:
    """The option that corresponds to one of another program, or None."""
    if "--algorithm" not in known:  # of train
        return None
    number = value if _NUMBER.fullmatch(value) else ""
    if name == "-t" and value and not number:  # Weka's training file
        return None
    if name == "-c":  # in percent
        return _CONFIDENCE.format(f"{float(number or 25) / 100:g}")
    form, example = _OPTIONS.get(name, (None, ""))
    return None if form is None else form.format(number or example)


def one_of(algorithms: Iterable[str], name: str) -> str:
    """The name of an algorithm; a type for argparse.

    Raises
    ------
    argparse.ArgumentTypeError
        It is not one of the algorithms.
    """
    if name in (listed := list(algorithms)):
        return name
    words = f"must be {', '.join(listed[:-1])} or {listed[-1]}, got {name!r}"
    if (own := _ALGORITHMS.get(name.casefold())) is not None:
        words += f". Write --algorithm {own}"
    raise argparse.ArgumentTypeError(words)
