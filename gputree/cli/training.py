"""What `gputree train` learns from: a table in memory, or one of files that is read in batches."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from gputree.cli.cells import (
    forbid_dates,
    forbid_dates_as_target,
    look_for_marks,
    target_of_task,
    told,
    warn_of_blanks,
)
from gputree.cli.report import UsageError, say
from gputree.cli.streams import STANDARD
from gputree.cli.tables import (
    categorical_features,
    check_columns,
    columns_to_read,
    training_table,
)
from gputree.cli.weights import Weight, WithoutWeights, check_values, require_column

_UNITS = {unit: 1000**k for k, unit in enumerate(("", "K", "M", "G", "T"))}
_UNITS |= {f"{unit}I": 1024**k for k, unit in enumerate(("", "K", "M", "G", "T")) if unit}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?", re.IGNORECASE)


class Training(NamedTuple):
    """A table to train on.

    Attributes
    ----------
    X : pyarrow.Table or CodedTable
    y : array of shape (n_rows,)
    categorical_features : list of str or "auto"
        The parameter of that name, which X does not know yet.
    weight : float64 array of shape (n_rows,), or None
    declared : array of str, or None
        Classes that the type of the target declares.
    """

    X: Any
    y: NDArray[Any]
    categorical_features: list[str] | str
    weight: Weight
    declared: NDArray[Any] | None


def add_memory(group: Any) -> None:
    """Add `--memory`."""
    group.add_argument(
        "--memory",
        metavar="SIZE",
        type=parse_size,
        help="memory limit, such as 4GB: larger tables are read in batches into temporary files; "
        "the model is the same. Default: the available memory. Several files are always read in "
        "batches. The temporary files are in the folder that TMPDIR names (else /tmp) and take 5 "
        "to 9 bytes per value; the page cache of these files is not counted",
    )


def parse_size(text: str) -> int:
    """Bytes of a size such as "4GB" or "512 MiB"."""
    found = _SIZE.fullmatch(text.strip())
    size = 0.0 if found is None else float(found[1]) * _UNITS[found[2].upper()]
    if size < 1:
        raise argparse.ArgumentTypeError(f"must be a size such as 4GB or 512MiB, got {text!r}")
    return int(size)


def files_of(data: list[str]) -> list[str]:
    """The files that are meant, or standard input; for messages and checks."""
    from gputree.datasets.files import list_files

    if STANDARD in data:
        if len(data) > 1:
            raise UsageError("Standard input (-) cannot be one of several files.")
        return data
    return [str(path) for path in list_files(data[0] if len(data) == 1 else data)]


def read_training(arguments: argparse.Namespace, files: list[str]) -> Training:
    """The table to train on, in memory unless it exceeds what it may take."""
    is_stream = files == [STANDARD]
    if len(files) == 1 and (is_stream or not _exceeds(files[0], arguments.memory)):
        try:
            table, weight = training_table(arguments, files[0])
            categorical = categorical_features(arguments, table.columns)
            y = target_of_task(arguments, table.target)
            return Training(table.columns, y, categorical, weight, table.declared)
        except MemoryError as error:
            if is_stream or arguments.memory is not None:
                raise
            say(f"{getattr(error, 'reason', error)} It is read in batches instead.")
    return _in_batches(arguments, files)


def _exceeds(file: str, memory: int | None) -> bool:
    """Whether the table of a file takes more memory than it may."""
    from gputree.datasets.size import least_bytes

    return memory is not None and least_bytes(Path(file)) > memory


def _in_batches(arguments: argparse.Namespace, files: list[str]) -> Training:
    """A table in files of this process."""
    from gputree import CodedTable
    from gputree.datasets import open_batches

    label = files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
    if arguments.algorithm == "id3":
        raise UsageError(
            "--algorithm id3 takes one table in memory, and not several files or what exceeds "
            "--memory: numbers are its categories, which are known once all rows are. Join the "
            "files, or take --algorithm c45."
        )
    with told(arguments.missing):
        batches: Any = open_batches(files, arguments.target, **columns_to_read(arguments))
        if arguments.weights is not None:
            require_column(batches.names, arguments.weights, label)
            batches = WithoutWeights(batches, arguments.weights)
        check_columns(label, batches.names, arguments)
        head, _ = next(iter(batches))
        forbid_dates(label, head, head.column_names)  # of a type; text is looked at below
        table = CodedTable.from_batches(
            batches,
            categorical_features=categorical_features(arguments, head),
            device=arguments.device or "auto",
            verbose=not arguments.quiet,
        )
    words, y = _words(table), table.target
    assert y is not None  # with --target
    forbid_dates(label, words, arguments.categorical)
    if arguments.task == "auto":
        forbid_dates_as_target(label, arguments.target, y)
    look_for_marks(words)
    warn_of_blanks(arguments.target, y)
    weight = None
    if arguments.weights is not None:
        weight = batches.weight
        check_values(weight, arguments.weights, label)
    return Training(table, target_of_task(arguments, y), "auto", weight, None)


def _words(table: Any) -> Any:
    """The different cells of the columns of text, as columns that nulls make equally long."""
    import pyarrow as pa

    from gputree.columns.categories import hold_text

    columns = table._view.held.columns.categories
    words = {
        name: list(found)
        for name, found in zip(table.feature_names_in_, columns, strict=True)
        if hold_text(found)
    }
    longest = max(map(len, words.values()), default=0)
    return pa.table(
        {
            name: pa.array([*found, *[None] * (longest - len(found))], pa.string())
            for name, found in words.items()
        }
    )
