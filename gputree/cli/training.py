"""Tables that `gputree train` reads: in memory, or files in batches."""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Weight
from gputree.base.memory import private_bytes
from gputree.base.texts import hint
from gputree.cli.cells import check_cells, forbid_dates, orders_of, target_of_task, with_hints
from gputree.cli.memory import IN_MEMORY, batch_bytes_of, row_bytes, warn_if_exceeded
from gputree.cli.reading import STANDARD, format_of, table_origin
from gputree.cli.report import UsageError, say
from gputree.cli.tables import columns_to_read, label_of, tell_dropped
from gputree.cli.targets import (
    TrainingBatches,
    check_values,
    join_targets,
    named_targets,
    take_targets,
    taken_out,
)
from gputree.datasets.file_format import WEIGHTS
from gputree.errors import InputError
from gputree.inputs.labels import Labels
from gputree.inputs.targets import columns_of


class Training(NamedTuple):
    """A table to train on."""

    X: Any
    y: Labels  # (n_rows,), also as codes, or (n_rows, k) of several targets
    # the parameters of these names, which X does not know yet
    categorical_features: list[str] | str
    ordered_categories: dict[str, Any] | str
    weight: Weight  # (n_rows,)
    declared: NDArray[Any] | None  # classes that the type of the target declares
    left_out: tuple[str, ...] = ()  # columns that name the rows
    units: Mapping[str, str | None] = MappingProxyType({})  # of the columns that have one


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
    if len(files) == 1 and (is_stream or not _exceeds(files[0], arguments)):
        try:
            table, y, weight = training_table(arguments, files[0])
            categorical = categorical_features(arguments, table.columns)
            orders = orders_of(arguments)
            X, left_out = table.columns, table.left_out
            return Training(
                X, y, categorical, orders, weight, table.declared, left_out, table.units
            )
        except MemoryError as error:
            if is_stream or arguments.memory is not None:
                raise
            say(f"{getattr(error, 'reason', error)} It is read in batches instead.")
    return _in_batches(arguments, files)


def training_table(arguments: argparse.Namespace, data: str) -> tuple[Any, Labels, Weight]:
    """The table of a file to train on, its targets and its rows' weights; dates are refused."""
    from gputree.datasets import read_table

    with with_hints(arguments.missing):
        table = read_table(
            table_origin(data),
            arguments.target,
            **columns_to_read(arguments),
            verbose=not arguments.quiet,
        )
    label = label_of(data)
    table, targets = take_targets(label, table, arguments)
    columns, weight = taken_out(table.columns, arguments, label)
    if weight is None and table.weight is not None:
        check_values(table.weight, WEIGHTS, label)
        weight = table.weight
    tell_dropped(label, table.n_dropped)
    table = replace(table, columns=columns)
    check_columns(label, table.names, arguments)
    named = named_targets(arguments, targets)
    check_cells(label, table.columns, named, arguments)
    y = join_targets([target_of_task(arguments.task, *target) for target in named.items()])
    return table, y, weight


def check_columns(label: str, names: list[str], arguments: argparse.Namespace) -> None:
    """Refuse names of columns that the table has not."""
    ordered = (name for name, _ in arguments.ordered)
    for name in (*arguments.categorical, *arguments.numeric, *ordered):
        if name not in names:
            raise InputError(f"{label} has no feature column {name!r}.{hint(name, names)}")


def categorical_features(arguments: argparse.Namespace, X: Any) -> list[str] | str:
    """The parameter of that name: the columns listed, and those of categorical types."""
    import pyarrow as pa

    if not arguments.categorical:
        return "auto"
    by_type = (pa.types.is_boolean, pa.types.is_dictionary)
    typed = {field.name for field in X.schema if any(test(field.type) for test in by_type)}
    return [name for name in X.column_names if name in typed.union(arguments.categorical)]


def _exceeds(file: str, arguments: argparse.Namespace) -> bool:
    """Return whether the table of a file takes more memory than `--memory` allows."""
    from gputree.datasets.sources import least_bytes

    memory = arguments.memory
    form = format_of(arguments)
    return memory is not None and IN_MEMORY * least_bytes(Path(file), form) > memory


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
    private = private_bytes()
    with with_hints(arguments.missing):
        files_read: Any = open_batches(
            files,
            arguments.target,
            **columns_to_read(arguments),
            batch_bytes=batch_bytes_of(arguments),
        )
        batches = TrainingBatches(files_read, label, arguments)
        check_columns(label, batches.names, arguments)
        head, _ = next(iter(batches))
        forbid_dates(label, head, head.column_names)  # of a type; text is looked at below
        categorical = categorical_features(arguments, head)
        del head
        _warn_of_memory(arguments, private, files, batches)
        table = CodedTable.from_batches(
            batches,
            categorical_features=categorical,
            ordered_categories=orders_of(arguments),
            device=arguments.device or "auto",
            verbose=not arguments.quiet,
        )
    words, y = _words(table), table._target
    assert y is not None  # with --target
    named = named_targets(arguments, columns_of(y))
    check_cells(label, words, named, arguments)
    _warn_of_guesses(arguments, files, label, words, table)
    tell_dropped(label, files_read.n_dropped + batches.n_dropped)
    weight = batches.weight
    if weight is not None:
        check_values(weight, arguments.weights, label)
    y = join_targets([target_of_task(arguments.task, *target) for target in named.items()])
    left_out, units = files_read.left_out, files_read.units
    return Training(table, y, "auto", "auto", weight, None, left_out, units)


def _warn_of_memory(
    arguments: argparse.Namespace, private: int | None, files: list[str], batches: Any
) -> None:
    if arguments.memory is None:
        return
    from gputree.datasets.sources import PARQUET

    d = len(batches.names)
    row = row_bytes(
        d,
        arguments.task == "regression",
        arguments.weights is not None,
        arguments.algorithm == "c45",
    )
    read = d + 1 if files[0].lower().endswith(PARQUET) else 0
    warn_if_exceeded(arguments.memory, private, batches.least_rows(), row, read)


def _warn_of_guesses(
    arguments: argparse.Namespace, files: list[str], label: str, words: Any, table: Any
) -> None:
    """Warn of guesses about columns of text whose kind the user has not said, and about classes."""
    from gputree.datasets.file_format import warn_of
    from gputree.datasets.sources import DELIMITERS, source_of
    from gputree.datasets.words import guesses_of_classes, guesses_of_text

    names = table.feature_names_in_.tolist()

    def count(name: str) -> list[int]:
        return table._table.count_categories(names.index(name)).tolist()

    ordered = table._table.columns.ordered
    said = {*arguments.numeric, *arguments.categorical, *itertools.compress(names, ordered)}
    others = words.select([name for name in words.column_names if name not in said])
    is_delimited = source_of(files[0], format_of(arguments)).kind in DELIMITERS
    warn_of(label, guesses_of_text(others, is_delimited, count))
    for target in named_targets(arguments, columns_of(table._target)).items():
        warn_of(label, guesses_of_classes(*target))


def _words(table: Any) -> Any:
    """The different cells of the columns of text, as columns that nulls make equally long."""
    import pyarrow as pa

    from gputree.columns.categories import hold_text

    columns = table._table.columns.categories
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


def training_score(estimator: Any, table: Training) -> float:
    """The score on the training rows: accuracy, or R2, of a table in batches by some at a time."""
    from gputree import CodedTable

    X, y, weight = table.X, table.y, table.weight
    if not isinstance(X, CodedTable) or hasattr(estimator, "predict_proba"):
        return estimator.score(X, y, sample_weight=weight)
    targets = np.asarray(y).reshape(len(y), -1)
    mean, errors, centred = np.average(targets, axis=0, weights=weight), [], []
    for rows, part in X._slices():
        weights = 1.0 if weight is None else weight[rows][:, None]
        truth = targets[rows].astype(np.float64)
        predicted = estimator.predict(part).reshape(truth.shape)
        errors.append((weights * (truth - predicted) ** 2).sum(axis=0))
        centred.append((weights * (truth - mean) ** 2).sum(axis=0))
    error, variance = (
        list(map(math.fsum, zip(*found, strict=True))) for found in (errors, centred)
    )
    found = [1.0 - e / v if v else float(not e) for e, v in zip(error, variance, strict=True)]
    return float(np.mean(found))
