"""`gputree predict`: a model's predictions of the rows of a table."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gputree.cli.memory import add_scan_memory, watched_memory
from gputree.cli.reading import STANDARD, check_inputs, check_output, load, opened_output
from gputree.cli.report import HOW, UsageError, parse_names, with_examples
from gputree.cli.tables import add_reading, batches_for, feature_names, label_of
from gputree.cli.training import files_of
from gputree.errors import InputError

# Columns of the output by their names: of NumPy, and of the table in Arrow.
Columns = dict[str, Any]
Write = Callable[[Columns], None]


def add_predict(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree predict`."""
    with_examples(
        parser,
        "Write the prediction of each row of a table, in its order, under the heading "
        "`prediction`; those of several targets as prediction_NAME. Rows are read in batches, "
        "however many they are.",
        "gputree predict adult.gputree new.csv --proba -o predictions.csv",
        "gputree predict adult.gputree new.csv --keep id,name -o predictions.csv",
        "zcat big.csv.gz | gputree predict big.gputree - | sort | uniq -c",
    )
    parser.set_defaults(run=_predict)
    parser.add_argument("model", metavar="MODEL", help="model file; - for standard input")
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="+",
        help="CSV, Parquet, Arrow or ARFF file, whose columns are matched by name; - for CSV from "
        "standard input; several files as for train, whose predictions follow one another",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        default=STANDARD,
        help=".csv or .parquet; default, and -: CSV to standard output",
    )
    parser.add_argument(
        "--proba",
        action="store_true",
        help="add the probability of each class, as probability_CLASS; of several targets, as "
        "probability_NAME_CLASS",
    )
    parser.add_argument(
        "--quantiles",
        type=_levels,
        metavar="Q,...",
        help="add conditional quantiles, such as 0.1,0.5,0.9, as quantile_Q; of a forest that was "
        "trained with --quantreg",
    )
    parser.add_argument(
        "--standard-error",
        action="store_true",
        help="add the standard error of a random forest's prediction, as standard_error; of each "
        "probability, as standard_error_CLASS",
    )
    parser.add_argument(
        "--keep",
        metavar="A,B,...",
        type=parse_names,
        action="extend",
        default=[],
        help="columns of the table to write before the prediction, such as an identifier, whether "
        f"the model uses them or not: {HOW}",
    )
    add_reading(parser)
    add_scan_memory(parser)


def _levels(text: str) -> dict[str, float]:
    try:
        return {level.strip(): float(level) for level in text.split(",")}
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers from 0 to 1, got {text!r}") from None


def _predict(arguments: argparse.Namespace) -> None:
    output: str = arguments.output
    if output != STANDARD and Path(output).suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"The name of the output must end in .csv or .parquet, got {output}.")
    files = files_of(arguments.data)
    check_inputs(arguments.model, *files)
    check_output(output, *files, arguments.model)
    estimator = load(arguments.model)
    if arguments.proba and not hasattr(estimator, "classes_"):
        raise UsageError("--proba needs a classification model; this is a regression model.")
    if arguments.quantiles and not getattr(estimator, "quantreg", False):
        raise UsageError("--quantiles needs a forest that was trained with --quantreg.")
    if arguments.standard_error and not hasattr(estimator, "predict_standard_error"):
        raise UsageError("--standard-error needs a random forest.")
    with watched_memory(arguments.memory):
        _write_output(columns_of_output(estimator, arguments, files), output)


def _write_output(batches: Iterator[dict[str, Any]], output: str) -> None:
    first = next(batches)  # before there is any output: most errors are here
    parquet = output != STANDARD and Path(output).suffix.lower() == ".parquet"
    with opened_output(output) as file, (_parquet if parquet else _csv)(file) as write:
        write(first)
        for columns in batches:
            write(columns)


def columns_of_output(
    estimator: Any, arguments: argparse.Namespace, files: list[str]
) -> Iterator[Columns]:
    """Columns of the output, batch by batch."""
    features = feature_names(estimator, arguments.model)
    targets = getattr(estimator, "target_names_in_", None)
    for file in files:
        one = argparse.Namespace(**{**vars(arguments), "data": file})
        for X in batches_for(estimator, one):
            try:
                kept = {name: X[name] for name in arguments.keep}
                X = X.select(features)
                columns = _named("prediction", estimator.predict(X), targets)
                classes = getattr(estimator, "classes_", None)
                if arguments.proba:
                    found = estimator.predict_proba(X)
                    columns |= _named("probability", found, targets, classes)
                if arguments.quantiles:
                    found = estimator.predict_quantiles(X, [*arguments.quantiles.values()])
                    for i, level in enumerate(arguments.quantiles):
                        columns |= _named(f"quantile_{level}", found[..., i], targets)
                if arguments.standard_error:
                    errors = estimator.predict_standard_error(X)
                    columns |= _named("standard_error", errors, targets, classes)
            except InputError as error:
                raise InputError(f"{label_of(file)}: {error}") from error
            if same := sorted(kept.keys() & columns):
                raise UsageError(
                    f"--keep {same[0]}: the output has a column of this name. Rename it in the "
                    "table."
                )
            yield kept | columns


def _named(name: str, values: Any, targets: Any, classes: Any = None) -> Columns:
    """Columns of `values`: one by its name, else by targets, which may have names, and classes."""
    if isinstance(values, list):  # of each target the classes
        each = range(len(values)) if targets is None else targets
        parts = [
            _named(f"{name}_{target}", found, None, labels)
            for target, found, labels in zip(each, values, classes, strict=True)
        ]
        return {key: column for part in parts for key, column in part.items()}
    if values.ndim == 1:
        return {name: values}
    labels = targets if classes is None else classes
    labels = range(values.shape[1]) if labels is None else labels
    return {f"{name}_{label}": column for label, column in zip(labels, values.T, strict=True)}


@contextmanager
def _csv(file: BinaryIO) -> Iterator[Write]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    begun: list[bool] = []

    def write(columns: Columns) -> None:
        if not begun:
            writer.writerow(columns)
            begun.append(True)
        writer.writerows(zip(*map(_cells, columns.values()), strict=True))

    try:
        yield write
    finally:
        text.detach()  # who has opened the file closes it


def _cells(values: Any) -> list[Any]:
    """Cells of a column as CSV has them: integers of columns that were read as floats as such."""
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    cells = values.to_pylist()
    return [int(c) if isinstance(c, float) and c.is_integer() else c for c in cells]


@contextmanager
def _parquet(file: BinaryIO) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writers: list[Any] = []

    def write(columns: Columns) -> None:
        arrays = {n: pa.array(v) if isinstance(v, np.ndarray) else v for n, v in columns.items()}
        table = pa.table(arrays)
        if not writers:
            writers.append(pq.ParquetWriter(file, table.schema))
        writers[0].write_table(table.cast(writers[0].schema))  # of files whose types differ

    try:
        yield write
    finally:
        for writer in writers:
            writer.close()
