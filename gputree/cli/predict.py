"""`gputree predict`: a model's answers for the rows of a table."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from numpy.typing import NDArray

from gputree._files import replaced_file
from gputree.cli.report import check_output


def add_predict(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree predict`."""
    parser.set_defaults(run=_predict)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("data", metavar="DATA", help="columns are matched by name")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help=".csv or .parquet; default: CSV to standard output"
    )
    parser.add_argument("--proba", action="store_true", help="add a probability for each class")


def _predict(arguments: argparse.Namespace) -> None:
    from gputree.datasets import read_table
    from gputree.estimators.model_file import load_model

    output = None if arguments.output is None else Path(arguments.output)
    if output is not None and output.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"The name of the output must end in .csv or .parquet, got {output}.")
    if output is not None:
        check_output(output, arguments.data, arguments.model)
    estimator: Any = load_model(arguments.model)
    if arguments.proba and not hasattr(estimator, "classes_"):
        raise ValueError("--proba needs a classification model; this is a regression model.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ValueError(f"{arguments.model} holds no column names to match {arguments.data} with.")
    table = read_table(
        arguments.data, columns=list(names), text=_text_columns(estimator), verbose=True
    )
    try:
        predictions = _predictions(estimator, table.columns, arguments.proba)
    except ValueError as error:
        raise ValueError(f"{arguments.data}: {error}") from error
    _write(predictions, output)


def _predictions(estimator: Any, X: Any, proba: bool) -> dict[str, NDArray]:
    """Columns of the output."""
    predictions = {"prediction": estimator.predict(X)}
    if proba:
        shares = estimator.predict_proba(X).T
        pairs = zip(estimator.classes_, shares, strict=True)
        predictions |= {f"probability_{label}": share for label, share in pairs}
    return predictions


def _text_columns(estimator: Any) -> list[str]:
    """Names of the columns that were text in training: "01234" is no number here either."""
    pairs = zip(estimator.feature_names_in_, estimator.columns_.categories, strict=True)
    return [name for name, words in pairs if words is not None and words.dtype.kind == "O"]


def _write(columns: dict[str, NDArray], output: Path | None) -> None:
    if output is None:
        _write_csv(columns, sys.stdout)
        return
    with replaced_file(output) as file:
        if output.suffix.lower() == ".parquet":
            _write_parquet(columns, file)
        else:
            with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
                _write_csv(columns, text)


def _write_csv(columns: dict[str, NDArray], file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))


def _write_parquet(columns: dict[str, NDArray], file: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), file)
