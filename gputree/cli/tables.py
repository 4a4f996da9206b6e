"""Tables of the command line: their options, and how they are read for a model."""

from __future__ import annotations

import argparse
import codecs
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gputree.base.dtypes import Weight
from gputree.cli.cells import (
    add_ordered,
    check_orders,
    listed_levels,
    unknown_categories,
    with_hints,
    without_zeros,
)
from gputree.cli.memory import batch_bytes_of
from gputree.cli.reading import STANDARD, add_format, format_of, table_origin
from gputree.cli.report import HOW, UsageError, counted, parse_names, say
from gputree.cli.targets import (
    add_targets,
    check_name,
    join_targets,
    more_targets,
    take_targets,
    taken_out,
    with_column,
)
from gputree.datasets.file_format import WEIGHTS, FileFormat
from gputree.errors import InputError


def add_reading(parser: Any, is_format_taken: bool = False) -> None:
    """Add the options of how a table is read, which every command has that reads one."""
    add_format(parser, is_format_taken)
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TOKEN",
        help="marker of missing values, such as '?', in addition to empty cells; may be repeated. "
        "A model keeps the markers of its training",
    )


def add_columns(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose columns and say what they hold."""
    group = parser.add_argument_group("options of the table", f"A,B,... are {HOW}.")
    features = group.add_mutually_exclusive_group()
    listed: dict[str, Any] = {"metavar": "A,B,...", "type": parse_names, "action": "extend"}
    features.add_argument("--columns", **listed, help="feature columns; default: all")
    features.add_argument("--ignore", **listed, default=[], help="columns to leave out")
    add_reading(group)
    group.add_argument(
        "--categorical",
        **listed,
        default=[],
        help="numeric or date columns to treat as categorical, as text and booleans are; "
        "007 and 7 are then two categories",
    )
    group.add_argument(
        "--numeric", **listed, default=[], help="numeric columns: any other cell is an error"
    )
    add_ordered(group)


def columns_to_read(arguments: argparse.Namespace) -> dict[str, Any]:
    """Arguments of readers for a table to train on: its columns and their format."""
    weights, others = arguments.weights, getattr(arguments, "more_targets", [])
    columns = arguments.columns
    if columns is not None:
        columns = [*with_column(columns, weights), *others]
    return {
        "columns": columns,
        "ignore": [name for name in arguments.ignore if name != weights],
        "numeric": [*arguments.numeric, *([] if weights is None else [weights])],
        "categorical": [*arguments.categorical, *others],
        "text": listed_levels(arguments),
        "missing": arguments.missing,
        "missing_target": arguments.missing_target,
        "file_format": format_of(arguments),
    }


def tell_dropped(label: str, count: int) -> None:
    """Say how many rows were dropped."""
    if count:
        say(f"{label}: {counted(count, 'row')} without a target dropped")


def check_kinds(arguments: argparse.Namespace) -> None:
    """Refuse columns that are said to be two things."""
    check_name(arguments)
    both = sorted(set(arguments.categorical) & set(arguments.numeric))
    if both:
        raise UsageError(f"--categorical and --numeric both name {both[0]!r}.")
    check_orders(arguments)


def label_of(data: str) -> str:
    """Name of a table in messages."""
    return "standard input" if data == STANDARD else data


def feature_names(estimator: Any, model: str) -> list[str]:
    """Names of the columns that a model was trained on."""
    found = getattr(estimator, "feature_names_in_", None)
    if found is None:
        raise InputError(f"{model} holds no column names to match a table with.")
    return list(map(str, found))


class _Reading(NamedTuple):
    """Columns that a table for a model is read with."""

    features: list[str]  # of the model
    columns: list[str]  # these, others of `--keep`, and that of `--weights`
    carried: list[str]
    needs_all_rows: bool  # for categories that are numbers or booleans
    options: dict[str, Any]  # of all readers


def _reading_for(
    estimator: Any, arguments: argparse.Namespace, targets: Sequence[str] = ()
) -> _Reading:
    """Columns as in training, of their kinds there, and markers and format of the table."""
    from gputree.columns.categories import hold_text

    features = feature_names(estimator, arguments.model)
    pairs = list(zip(features, estimator.columns_.categories, strict=True))
    text = [name for name, words in pairs if hold_text(words)]
    numeric = [name for name, words in pairs if words is None]
    needs_all_rows = len(text) + len(numeric) < len(features)
    carried = [
        name for name in dict.fromkeys(getattr(arguments, "keep", [])) if name not in features
    ]
    weights = getattr(arguments, "weights", None)
    if weights is not None:
        numeric = [*numeric, weights]
    for target, classes in zip(targets, _classes_of(estimator, len(targets)), strict=False):
        if classes is not None and classes.dtype.kind in "UO":
            text = [*text, target]  # "01" is no number here either
    marks = [*arguments.missing, *getattr(estimator, "missing_marks_", ())]
    options = {
        "text": text,
        "numeric": numeric,
        "missing": list(dict.fromkeys(marks)),
        "file_format": _format_for(estimator, arguments),
    }
    columns = with_column([*features, *carried, *targets[1:]], weights)
    return _Reading(features, columns, carried, needs_all_rows, options)


def _classes_of(estimator: Any, n_targets: int) -> list[Any]:
    """Classes of each target; None of numbers."""
    classes = getattr(estimator, "classes_", None)
    return classes if isinstance(classes, list) else [classes] * n_targets


def table_for(estimator: Any, arguments: argparse.Namespace, targets: Sequence[str] = ()) -> Any:
    """The whole table: the columns of training, then the column of `--weights`."""
    from gputree.datasets import read_table

    reading = _reading_for(estimator, arguments, targets)
    typed = {*reading.options["text"], *reading.options["numeric"]}
    with with_hints(reading.options["missing"]):
        table = read_table(
            table_origin(arguments.data),
            targets[0] if targets else None,
            columns=reading.columns,
            whole=[name for name in reading.features if name not in typed],
            missing_target=getattr(arguments, "missing_target", "error"),
            carried=reading.carried,
            verbose=True,
            **reading.options,
        )
    tell_dropped(label_of(arguments.data), table.n_dropped)
    _CategoryWarnings(estimator, reading.features).warn(table.columns)
    return table


def batches_for(estimator: Any, arguments: argparse.Namespace) -> Iterator[Any]:
    """The rows in batches: columns as in training, and others of `--keep`, as they are."""
    from gputree.datasets import read_batches

    reading = _reading_for(estimator, arguments)
    if reading.needs_all_rows:
        yield table_for(estimator, arguments).columns
        return
    warnings = _CategoryWarnings(estimator, reading.features)
    # a bar would run through rows that are written to a terminal
    apart = getattr(arguments, "output", STANDARD) != STANDARD or not sys.stdout.isatty()
    with with_hints(reading.options["missing"]):
        for batch in read_batches(
            table_origin(arguments.data),
            reading.columns,
            carried=reading.carried,
            verbose=apart,
            batch_bytes=batch_bytes_of(arguments),
            **reading.options,
        ):
            warnings.warn(batch)
            yield batch


def _format_for(estimator: Any, arguments: argparse.Namespace) -> FileFormat:
    """The format of a table to predict: of one without a header, with the names of training.

    The table may have a header, and may lack the target.
    """
    from gputree.datasets.readers import read_names

    form = format_of(arguments, estimator)
    if arguments.encoding is None and form.encoding is not None and _is_utf8(arguments.data, form):
        form = form._replace(encoding=None)
    if form.names is None or arguments.names is not None:
        return form
    form = form._replace(may_lack=estimator.reading_.get("target"))
    if arguments.data == STANDARD:
        return form
    with_header = form._replace(has_header=True, names=None)
    features = set(feature_names(estimator, arguments.model))
    return with_header if features <= set(read_names(arguments.data, with_header)) else form


def _is_utf8(data: str, form: FileFormat) -> bool:
    """Return whether the beginning of a file is UTF-8 text that is not ASCII.

    Text of other encodings hardly ever is. A stream cannot be read again, and is not looked at.
    """
    from gputree.datasets.csv_head import HEAD_BYTES
    from gputree.datasets.sources import source_of

    if data == STANDARD or (source := source_of(data, form._replace(encoding=None))).is_stream:
        return False
    with source.open(False) as file:
        head = bytes(file.read(HEAD_BYTES))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the end may be part of a character
    except UnicodeDecodeError:
        return False
    return not head.isascii()


class _CategoryWarnings:
    """Warnings of `unknown_categories`: one a column, however many batches."""

    def __init__(self, estimator: Any, columns: list[str]) -> None:
        self._estimator, self._columns = estimator, columns
        self._warned: set[str] = set()

    def warn(self, batch: Any) -> None:
        found = unknown_categories(self._estimator, batch.select(self._columns))
        for name in sorted(found.keys() - self._warned):
            say(f"warning: {found[name]}")
        self._warned |= found.keys()


def add_target(parser: Any) -> None:
    """Add `--target` of commands that have a model."""
    add_targets(
        parser.add_argument,
        "the target column; default: that of training, or the only one that is no feature of the "
        "model",
        required=False,
    )
    add_missing_target(parser)


def add_missing_target(parser: Any) -> None:
    """Add `--drop-missing-target`."""
    parser.add_argument(
        "--drop-missing-target",
        dest="missing_target",
        action="store_const",
        const="drop",
        default="error",
        help="drop rows without a target, as Weka's trees do; they are an error otherwise",
    )


def table_with_target(estimator: Any, arguments: argparse.Namespace) -> tuple[Any, Weight]:
    """The table with its columns as in training, and with the target, of the kind in training.

    And the weights of its rows, which may be a column of the model, too.
    """
    check_name(arguments)
    arguments, targets = _with_targets(estimator, arguments)
    return _as_trained(estimator, arguments, table_for(estimator, arguments, targets))


def tables_with_target(
    estimator: Any, arguments: argparse.Namespace, files: list[str]
) -> tuple[Any, Weight]:
    """Read several files as `table_with_target` does, one after another."""
    import pyarrow as pa

    found = []
    for file in files:
        one = argparse.Namespace(**{**vars(arguments), "data": file})
        found.append(table_with_target(estimator, one))
    tables, weights = zip(*found, strict=True)
    if len(files) == 1:
        return found[0]
    columns = pa.concat_tables([t.columns for t in tables], promote_options="permissive")
    target = np.concatenate([t.target for t in tables])
    weight = None
    if any(given is not None for given in weights):  # of some files of ARFF
        pairs = zip(tables, weights, strict=True)
        weight = np.concatenate([np.ones(t.n_rows) if w is None else w for t, w in pairs])
    return replace(tables[0], columns=columns, target=target), weight


def label_of_all(files: list[str]) -> str:
    """Name of the table of several files in messages."""
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{label_of(files[0])}{more}"


def batches_with_target(
    estimator: Any, arguments: argparse.Namespace
) -> Iterator[tuple[Any, Weight]]:
    """Read as `table_with_target`, in batches of rows, whose weights may be all zero."""
    from gputree.datasets.readers import labelled_batches
    from gputree.datasets.sources import ARFF, C45, source_of

    check_name(arguments)
    arguments, targets = _with_targets(estimator, arguments)
    origin = table_origin(arguments.data)
    reading = _reading_for(estimator, arguments, targets)
    kind = source_of(origin, reading.options["file_format"]).kind
    if not targets or reading.needs_all_rows or kind in (*ARFF, *C45):
        yield _as_trained(estimator, arguments, table_for(estimator, arguments, targets))
        return
    warnings, n_dropped = _CategoryWarnings(estimator, reading.features), 0
    with with_hints(reading.options["missing"]):
        for table in labelled_batches(
            origin,
            targets[0],
            reading.columns,
            missing_target=getattr(arguments, "missing_target", "error"),
            verbose=True,
            batch_bytes=batch_bytes_of(arguments),
            **reading.options,
        ):
            warnings.warn(table.columns)
            n_dropped += table.n_dropped
            if table.columns.num_rows:
                yield _as_trained(estimator, arguments, table, is_part=True)
    tell_dropped(label_of(arguments.data), n_dropped)


def _as_trained(
    estimator: Any, arguments: argparse.Namespace, table: Any, is_part: bool = False
) -> tuple[Any, Weight]:
    """The table without weights, its target of the kind in training; and the weights."""
    label = label_of(arguments.data)
    is_feature = arguments.weights in feature_names(estimator, arguments.model)
    table, targets = take_targets(label, table, arguments, is_part)
    columns, weight = taken_out(table.columns, arguments, label, keep=is_feature, is_part=is_part)
    weight = table.weight if weight is None else weight
    names = [table.target_name, *more_targets(arguments)]
    for j, classes in enumerate(_classes_of(estimator, len(names))):
        if classes is not None and classes.dtype.kind not in "iuf":
            continue
        targets[j] = without_zeros(np.asarray(targets[j]))
        if len(targets[j]) and targets[j].dtype.kind not in "iuf":
            what = "was trained on a numeric target" if classes is None else "has numeric classes"
            raise InputError(
                f"{arguments.model} {what}; column {names[j]!r} of {label} holds others, such as "
                f"{str(targets[j][0])!r}."
            )
    return replace(table, columns=columns, target=join_targets(targets)), weight


def _with_targets(
    estimator: Any, arguments: argparse.Namespace
) -> tuple[argparse.Namespace, list[str]]:
    """Arguments with the names of all targets, and these; none as of `_target_of`."""
    n, names = getattr(estimator, "n_outputs_", 1), target_names(estimator, arguments)
    if n > 1 and len(names) != n:
        raise UsageError(f"--target must name the {n} target columns: repeat it. Got {len(names)}.")
    if n == 1:
        if len(names) > 1:
            raise UsageError(f"The model has one target; got {len(names)} times --target.")
        one = _target_of(estimator, arguments)
        return arguments, [] if one is None else [one]
    given = {"target": names[0], "more_targets": names[1:]}
    return argparse.Namespace(**{**vars(arguments), **given}), names


def target_names(estimator: Any, arguments: argparse.Namespace) -> list[str]:
    """Names of the targets by `--target`, else by the model; in its order if it has the same."""
    of_model = list(map(str, getattr(estimator, "target_names_in_", [])))
    if arguments.target is None:
        return of_model
    given = [arguments.target, *more_targets(arguments)]
    return of_model if sorted(given) == sorted(of_model) else given


def _target_of(estimator: Any, arguments: argparse.Namespace) -> str | None:
    """Name of the target column; None where a table lacks columns, which readers say."""
    from gputree.datasets.readers import read_names

    if arguments.target is not None:
        return str(arguments.target)
    if arguments.data == STANDARD:
        if "target" in getattr(estimator, "reading_", {}):
            return str(estimator.reading_["target"])
        raise UsageError("--target must name the target column of standard input.")
    features = feature_names(estimator, arguments.model)
    present = read_names(arguments.data, _format_for(estimator, arguments))
    kept = getattr(estimator, "reading_", {})
    if kept.get("target") in present:
        return str(kept["target"])
    left_out = (
        *features,
        arguments.weights,
        *kept.get("ignored", ()),
        kept.get("weights"),
        WEIGHTS,
    )
    rest = [name for name in present if name not in left_out]
    if len(rest) != 1 and set(features) <= set(present):
        found = ", ".join(map(repr, rest)) or "none"
        raise UsageError(
            f"--target must name the target column; the columns of {arguments.data} that are no "
            f"features of the model are: {found}."
        )
    return rest[0] if rest else None
