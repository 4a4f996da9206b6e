"""Errors of the commands, messages on the terminal, and hints for options of other programs.

Names of columns on the command line: between commas, in double quotes where they hold one.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import shlex
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from gputree.base.texts import nearest
from gputree.errors import InputError

DIFFERENT = 3  # the exit status of `gputree check` where a tree differs


class UsageError(InputError):
    """The command line is wrong, independent of the contents of files."""


def say(message: str) -> None:
    """One line on standard error."""
    print(f"gputree: {' '.join(message.split())}", file=sys.stderr, flush=True)


def in_words_of_the_command(message: str) -> str:
    """Replace names of Python in a message of the library by options of the command."""
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message


_WORDS: Sequence[tuple[str, Any]] = (
    (r"The 'n_trials' parameter of \w+ must", "--trials must"),
    (r"The 'misclassification_costs' parameter of \w+ must", "--costs must"),
    (r"The 'confidence' parameter of C45Rules must", "--rule-confidence must"),
    (r"[Tt]he 'classes' parameter of \w+", "--classes"),
    (
        r"The '(\w+)' parameter of \w+ must be",
        lambda found: f"--{found[1].replace('_', '-')} must be",
    ),
    (r"ordered_categories=\{'(.*)': \[\.\.\.\]\}", r'--ordered "\1=...<..."'),
    (r"(The )?'ordered_categories'( parameter)?", "--ordered"),
    (r" or None(?=\. Got )", ""),
    (r"([Cc]olumn '[^']*') of X\b", r"\1"),
    (r"\bin fit\b", "in training"),
    (r"\b([Ll])eave it out\.", r"\1eave it out with --ignore."),
    (r"'?\binteraction_cst\b'?", "--interactions"),
    (r"'?\bmonotonic_cst\b'?", "--monotonic-cst"),
    (r"'?\bforced_splits\b'?", "--forced-splits"),
    (r": categorical=\[\.\.\.\]", " with --categorical"),
    (r": ignore=\[\.\.\.\]", " with --ignore"),
    (r" Read it as (text|numbers): \w+=\[.*\]", " Write it alike everywhere, or raise --memory"),
    (r"device='([\w:]+)'", r"--device \1"),
    (r"encoding='([\w-]+)'", r"--encoding \1"),
    (r"or pass the format", "or add --format"),
    (r"pass missing_target='drop'", "add --drop-missing-target"),
    (r"delimiter=' '", "--delimiter ' '"),
    (r"add has_header=False", "add --no-header"),
    (r"Use C45Classifier, which has thresholds.* If they are", "Add --algorithm c45. If they are"),
    (r"For numbers use \w+\.", "For numbers add --task regression."),
    (r"For classes use \w+\.", "For classes add --task classification."),
    (r"gini or entropy use DecisionTreeClassifier", "gini or entropy add --algorithm cart"),
    (r"C45Classifier splits by", "--algorithm c45 splits by"),
    (r"ExtraTrees\w+ draws cuts", "--algorithm extra-trees draws cuts"),
    (r"list them in 'categorical_features'", "add --categorical NAME"),
    (r"pass exclude_high_cardinality=False", "add --no-exclude-high-cardinality"),
    (r"Name another one in 'folder'", "Set TMPDIR to another one, or raise --memory"),
    (r"\bPass missing='largest'", "Use --missing-rows largest"),
    (r"missing='largest'", "--missing-rows largest"),
)


def size(tree: Any) -> str:
    """Nodes, leaves and depth."""
    leaves = counted(tree.n_leaves, "leaf", "leaves")
    return f"{counted(tree.n_nodes, 'node')}, {leaves}, depth {tree.max_depth}"


def counted(count: int, one: str, more: str | None = None) -> str:
    """A number and its noun."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def escape_unknown_characters() -> None:
    """Text for people is to appear on any terminal; predictions must not be changed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def with_examples(parser: argparse.ArgumentParser, about: str, *examples: str) -> None:
    """Set the first paragraph of a command's help, and the examples at its end."""
    parser.description = about
    parser.epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)])
    parser.formatter_class = _Formatter


class _Formatter(argparse.HelpFormatter):
    """Text is wrapped, but for lines that are indented, and for breaks within a help text."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs: list[str] = []
        for line in text.splitlines():
            whole = line.startswith("  ") or not line
            wrapped = [line] if whole else textwrap.wrap(line, width)
            paragraphs += [indent + part for part in wrapped]
        return "\n".join(paragraphs)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return [part for line in text.splitlines() for part in textwrap.wrap(line, width)]


# Help text of every option that takes names.
HOW = (
    "names separated by commas, a name that contains a comma in double quotes: 'a,\"b, c\"'; "
    "may be repeated"
)
_PLAIN = re.compile(r'[^",\s]([^",\r\n]*[^",\s])?')  # needs no quotes


def parse_names(text: str) -> list[str]:
    """Split names at commas, as in a line of CSV; an empty text is one empty name."""
    if not text:
        return [""]
    try:
        return next(csv.reader([text], skipinitialspace=True))
    except csv.Error as error:
        raise argparse.ArgumentTypeError(f"{error}, got {text!r}") from None


def parse_quoted(name: str) -> str:
    """One name, which may stand in double quotes."""
    quoted = len(name) > 1 and name.startswith('"') and name.endswith('"')
    return name[1:-1].replace('""', '"') if quoted else name


def as_argument(names: Iterable[str]) -> str:
    """Quote names for `parse_names`, and for a shell."""
    quoted = []
    for name in names:
        plain = _PLAIN.fullmatch(name)
        quoted.append(name if plain else '"' + name.replace('"', '""') + '"')
    return shlex.quote(",".join(quoted))


def number(text: str) -> int | float:
    """An integer as int, which is a count; any other as float, which is a fraction."""
    try:
        return int(text)
    except ValueError:
        return float(text)


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
    """Add an option to others; of two ways to prune, the stronger one stays, with its parameters.

    So it is in J48, where -U excludes -C and -S, and -R excludes -C.
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
