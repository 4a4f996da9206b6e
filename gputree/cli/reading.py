"""Files of the command line, `-` being standard input or output; options for their format.

A model keeps those that the tables which it predicts need.
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

from gputree.base.files import replaced_file, require_destination
from gputree.cli.report import HOW, UsageError, as_argument, parse_names, say
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
