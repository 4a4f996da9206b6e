"""Files of the command line, `-` being standard input or output; options for their format.

A model keeps those that the tables which it predicts need. Models are a tree, rules, or trials of
both that vote.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gputree.base.files import replaced_file, require_destination
from gputree.cli.report import HOW, UsageError, as_argument, counted, parse_names, say, size
from gputree.datasets.file_format import DECIMALS, FORMATS, INFERRED, FileFormat
from gputree.errors import InputError

STANDARD = "-"


def check_inputs(*inputs: str | None) -> None:
    """Raise an error if two inputs are standard input."""
    if inputs.count(STANDARD) > 1:
        raise UsageError("Only one of MODEL and DATA can be standard input (-).")


def check_output(output: str | None, *inputs: str | None) -> None:
    """Raise errors of the output or of an input before the work, not after it."""
    if output is None or output == STANDARD:
        return
    path = Path(output)
    require_destination(path)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise type(error)(error.errno, error.strerror, output) from error
    for name in inputs:
        if name is None or name == STANDARD:
            continue
        if path.exists() and os.path.exists(name) and path.samefile(name):
            raise UsageError(f"The output {output} would overwrite the input {name}.")


def table_origin(data: str) -> Any:
    """Argument of readers of `gputree.datasets` for a table: its file, or standard input."""
    if data != STANDARD:
        return data
    if sys.stdin.isatty():
        say("reading CSV from the terminal; Ctrl-D ends it")
    return sys.stdin.buffer


def load(model: str) -> Any:
    """The estimator of a model file, or of one as JSON."""
    from gputree.persistence import load_model

    return _read(model, load_model)


def load_saved(model: str) -> Any:
    """Load like `load`, but a tree of a model file without the class of its estimator."""
    from gputree.persistence import read_saved

    return _read(model, read_saved)


def _read(model: str, read: Callable[[str | Path], Any]) -> Any:
    if model.lower().endswith(".json"):
        from gputree.persistence import read_json

        return read_json(model)
    if model != STANDARD:
        return read(model)
    if sys.stdin.isatty():
        raise UsageError("A model file cannot be typed: pipe it in, or name it.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "standard input")
        path.write_bytes(sys.stdin.buffer.read())
        try:
            return read(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), "standard input")) from error


def save(estimator: Any, output: str) -> None:
    """Write a model file."""
    from gputree.persistence import save_model

    if output != STANDARD:
        save_model(estimator, output)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        save_model(estimator, path)
        sys.stdout.buffer.write(path.read_bytes())


def forbid_terminal(output: str | None, what: str) -> None:
    """Refuse to fill a terminal with bytes."""
    if output == STANDARD and sys.stdout.isatty():
        raise UsageError(f"{what} is no text: redirect the output, or name a file with -o.")


@contextmanager
def opened_output(output: str | None) -> Iterator[BinaryIO]:
    """Open a file that gets its name once it is complete, or standard output."""
    if output is not None and output != STANDARD:
        with replaced_file(output) as file:
            yield file
        return
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # replaced by something that takes text alone
        text = io.BytesIO()
        yield text
        sys.stdout.write(text.getvalue().decode())
        return
    yield buffer
    buffer.flush()


def write_text(text: str, output: str | None) -> None:
    """Write text, as UTF-8."""
    with opened_output(output) as file:
        file.write(text.encode())


# Fields that a model keeps, so that later tables are read like its training table.
_KEPT = ("encoding", "has_header", "names", "delimiter", "decimal", "thousands", "units")

_FLAGS = {
    "has_header": "--no-header",
    "missing_target": "--drop-missing-target",
    "format": "--format",
}
_SWITCHES = ("has_header", "missing_target")


def add_format(group: Any, is_format_taken: bool = False) -> None:
    """Add the options that say how a file is written."""
    group.add_argument(
        "--no-header",
        dest="has_header",
        action="store_const",
        const=False,
        help="the first row holds values: the columns of CSV are V1, V2, ..., as in R",
    )
    group.add_argument(
        "--names",
        metavar="A,B,...",
        type=parse_names,
        action="extend",
        help=f"names of all columns of CSV without a header: {HOW}",
    )
    group.add_argument(
        *(() if is_format_taken else ("--format",)),
        "--input-format",
        dest="input_format",
        choices=[*FORMATS],
        metavar="NAME",
        help=f"format of the table, whatever its name ends in: {', '.join(FORMATS)}",
    )
    group.add_argument(
        "--encoding", metavar="NAME", help="encoding of text, such as cp1252, gbk or utf-16"
    )
    group.add_argument(
        "--delimiter", metavar="C", type=_one_character, help="mark between cells; \\t is a tab"
    )
    group.add_argument("--decimal", choices=DECIMALS, help="mark before fractions of numbers")
    group.add_argument(
        "--thousands", metavar="C", type=_one_character, help="mark between groups of three digits"
    )
    group.add_argument(
        "--units",
        metavar="A,B,...",
        type=parse_names,
        action="extend",
        help="columns of numbers with a unit, such as 12.5%%, $1.25 or 3 kg, which is left out; "
        "different units in a column are an error",
    )


def _one_character(text: str) -> str:
    mark = "\t" if text == "\\t" else text
    if len(mark) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return mark


def format_of(arguments: argparse.Namespace, estimator: Any = None) -> FileFormat:
    """Format from the options; by default, the format that a model was trained with."""
    given = {
        "has_header": arguments.has_header,
        "names": arguments.names,
        "format": arguments.input_format,
        "encoding": arguments.encoding,
        "delimiter": arguments.delimiter,
        "decimal": arguments.decimal,
        "thousands": arguments.thousands,
        "units": arguments.units,
    }
    kept = getattr(estimator, "reading_", {}).get("format", {})
    if arguments.units and isinstance(kept.get("units"), dict):  # as they were in training
        given["units"] = {name: kept["units"].get(name) for name in arguments.units}
    return INFERRED._replace(
        **{**kept, **{key: value for key, value in given.items() if value is not None}}
    )


def keep_reading(
    estimator: Any,
    arguments: argparse.Namespace,
    file: str,
    left_out: Iterable[str],
    units: Mapping[str, str | None],
) -> None:
    """Store in a model the options that its table was read with: model files contain them."""
    from gputree.datasets.readers import read_names

    if arguments.missing:
        estimator.missing_marks_ = [mark.strip() for mark in arguments.missing]
    form = format_of(arguments)._replace(units=dict(units) or ())
    others = getattr(arguments, "more_targets", [])
    ignored = list(dict.fromkeys([*arguments.ignore, *left_out, *others]))
    if form.is_headless and form.names is None and (file != STANDARD or not arguments.columns):
        # of one without the target, others would have the names of its columns
        named = {*estimator.feature_names_in_, *ignored, arguments.target, arguments.weights}
        width = len(named.difference([None]))
        names = form.names_of(width, file) if file == STANDARD else read_names(file, form)
        form = form._replace(names=names, has_header=True)
    usual = INFERRED._asdict()
    kept = {key: value for key, value in form._asdict().items() if value != usual[key]}
    found = {
        "target": arguments.target,
        **({"ignored": ignored} if ignored else {}),
        **({} if arguments.weights is None else {"weights": arguments.weights}),
        **({"format": {key: kept[key] for key in _KEPT if key in kept}} if kept else {}),
    }
    estimator.reading_ = found


def as_options(options: Iterable[Any]) -> list[str]:
    """Options of the readers as a user writes them on the command line."""
    return [" ".join(_as_option(option.name, option.value)) for option in options]


def _as_option(name: str, value: Any) -> list[str]:
    flag = _FLAGS.get(name, f"--{name}")
    if name in _SWITCHES:
        return [flag]
    if name == "names" and not value:
        return [flag, "A,B,..."]
    if name == "missing":
        return [
            f"{flag}={shlex.quote(mark)}"
            if mark.startswith("--")
            else f"{flag} {shlex.quote(mark)}"
            for mark in value
        ]
    return [flag, as_argument(value) if isinstance(value, list) else shlex.quote(value)]


def add_tree(parser: argparse.ArgumentParser) -> None:
    """Add `--tree`."""
    parser.add_argument(
        "--tree",
        "--trial",
        dest="tree",
        type=int,
        metavar="N",
        help="of boosted trees or rules, those of this trial alone; of a forest, this tree",
    )


def has_rules(estimator: Any) -> bool:
    """Return whether a fitted model predicts by one rule set."""
    return hasattr(estimator, "rules_")


def members_of(estimator: Any) -> list[Any]:
    """The trees or rules of a fitted model that votes; none of others."""
    return getattr(estimator, "estimators_", [])


def member_name(estimator: Any) -> str:
    """Name of a part of a model that votes: tree or trial."""
    return "trial" if hasattr(estimator, "estimator_errors_") else "tree"


def chosen(estimator: Any, place: int | None) -> Any:
    """The model itself, or its tree or trial of the number `place`, which counts from 1."""
    if place is None:
        return estimator
    members = members_of(estimator)
    if not members:
        raise UsageError(
            "--tree (--trial) is for boosted trees and rules, and for forests: this model is none."
        )
    if not 1 <= place <= len(members):
        raise UsageError(f"--tree (--trial) must be from 1 to {len(members)}. Got {place}.")
    return members[place - 1]


def require_one(estimator: Any, command: str) -> None:
    """Refuse models that vote."""
    if members := members_of(estimator):
        what = "rule set" if has_rules(members[0]) else "tree"
        raise UsageError(
            f"gputree {command} takes one {what}, and this model has {len(members)}: add --tree 1."
        )


def forbid_several(estimator: Any, command: str) -> None:
    """Refuse models that are no single tree."""
    if has_rules(estimator) or members_of(estimator):
        members = (
            "rules"
            if has_rules(estimator)
            else f"{len(members_of(estimator))} {member_name(estimator)}s"
        )
        raise UsageError(
            f"gputree {command} takes a model of one tree, and this one has {members}."
        )


def sizes(estimator: Any) -> dict[str, str]:
    """Size of a fitted model, columns removed by winnowing, and why boosting ended early."""
    first = f"{member_name(estimator)}s" if members_of(estimator) else "tree"
    found = dict(zip((first, "rules"), size_of(estimator), strict=False)) | _left_out(estimator)
    if (reason := getattr(estimator, "stop_reason_", None)) is not None:
        found["ended"] = f"before {estimator.n_trials} trials, since {reason}"
    return found


def size_of(estimator: Any) -> list[str]:
    """Size of a fitted model: of its tree, and the rules of that; or of its trials."""
    if has_rules(estimator):
        rules = estimator.rules_
        rule_counts = f"{counted(len(rules), 'rule')}, {counted(rules.n_conditions, 'condition')}"
        return [size(estimator.estimator_.tree_), rule_counts]
    if members := members_of(estimator):
        each = [parts(member) for member in members]
        counts = [count for _, count in each]
        kind = "rule set" if has_rules(members[0]) else "tree"
        least, most = min(counts), max(counts)
        spread = f"{least:,} to {most:,}" if least < most else f"{least:,}"
        of = f"of {spread} {each[0][0]}, {sum(counts):,} in all"
        return [f"{counted(len(members), kind)} {of}"]
    return [size(estimator.tree_)]


def _left_out(estimator: Any) -> dict[str, str]:
    """The columns that winnowing left out, if it was used."""
    estimator = getattr(estimator, "estimator_", estimator)
    if not getattr(estimator, "winnow", False) or not hasattr(estimator, "winnowed_"):
        return {}
    names = np.asarray(estimator.feature_names_in_)[estimator.winnowed_]
    return {"winnowed": ", ".join(map(str, names)) or "no column"}


def parts(estimator: Any) -> tuple[str, int]:
    """Unit of the size of a model, and the number of units."""
    if has_rules(estimator):
        return "rules", len(estimator.rules_)
    if members := members_of(estimator):
        each = [parts(member) for member in members]
        return each[0][0], sum(count for _, count in each)
    return "leaves", estimator.get_n_leaves()


def set_verbose(estimator: Any, verbose: int) -> Any:
    """Set how much a model, not fitted or fitted, reports of its progress."""
    of_tree = "estimator" in estimator.get_params(deep=False)
    return estimator.set_params(**{"estimator__verbose" if of_tree else "verbose": verbose})


def about_costs(tree: Any) -> str:
    """Sentences on costs below the printed lines: row weights, and the class that a leaf names."""
    if getattr(tree, "costs_", None) is None:
        return ""
    text = " Rows are weighted by the misclassification costs of their class."
    if not tree._weighs_errors:
        return text
    return f"{text} Leaves name the class of the minimum expected cost."
