"""Options for the format of files, and those that a model keeps for the tables it predicts."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from gputree.cli.report import HOW, as_argument, parse_names
from gputree.cli.streams import STANDARD
from gputree.datasets.file_format import DECIMALS, FORMATS, INFERRED, FileFormat

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
