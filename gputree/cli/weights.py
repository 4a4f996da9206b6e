"""`--weights COL` and `--costs FILE`: the case weight and the costs of errors of C5.0."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Weight
from gputree.base.texts import hint
from gputree.cli.report import UsageError, parse_quoted
from gputree.errors import InputError


def add_weights(parser: Any) -> None:
    """Add `--weights`."""
    parser.add_argument(
        "--weights",
        metavar="COL",
        help="column of sample weights, which is no feature then (C5.0's case weight)",
    )


def check_name(arguments: argparse.Namespace) -> None:
    """Refuse a column that is named for weights and as a target."""
    targets = arguments.target, *getattr(arguments, "more_targets", ())
    if arguments.weights is not None and arguments.weights in targets:
        raise UsageError(f"--weights and --target both name {arguments.weights!r}.")


def with_column(names: list[str], weights: str | None) -> list[str]:
    """Add the column of weights, if there is one, to the names of columns to read."""
    return names if weights is None or weights in names else [*names, weights]


def taken_out(
    columns: Any,
    arguments: argparse.Namespace,
    label: str,
    keep: bool = False,
    is_part: bool = False,
) -> tuple[Any, Weight]:
    """Take the column of weights out of a table, unless it is to stay; return both.

    Those of a part of the rows may be all zero.
    """
    if arguments.weights is None:
        return columns, None
    require_column(columns.column_names, arguments.weights, label)
    weight = values_of(columns, arguments.weights)
    check_values(np.append(weight, 1.0) if is_part else weight, arguments.weights, label)
    if not keep:
        columns = columns.drop_columns([arguments.weights])
    if columns.num_columns == 0:
        raise InputError(f"{label} has no feature column other than that of --weights.")
    return columns, weight


def require_column(names: list[str], name: str, label: str) -> None:
    """Raise ValueError unless a table has the column of weights."""
    if name not in names:
        raise InputError(f"{label} has no column {name!r} (--weights).{hint(name, names)}")


def values_of(columns: Any, name: str) -> Floats:
    """A column of numbers; NaN where missing."""
    return columns[name].to_numpy().astype(np.float64)


def check_values(weight: Floats, name: str, label: str) -> None:
    """Raise ValueError for weights that no estimator takes, with the name of their column."""
    from gputree.inputs.validation import check_weights

    try:
        check_weights(weight, weight)
    except InputError as error:
        raise InputError(f"Column {name!r} of {label} (--weights): {error}") from error


class WithoutWeights:
    """Batches without a column of weights, which are kept aside each time they are read."""

    def __init__(self, batches: Any, name: str) -> None:
        self.names = [column for column in batches.names if column != name]
        self._batches, self._name = batches, name
        self._found: list[Floats] = []

    def least_rows(self) -> int:
        """Lower bound on the rows of the wrapped batches."""
        return self._batches.least_rows()

    def __iter__(self) -> Iterator[tuple[Any, NDArray[Any]]]:
        self._found = []
        for X, y in self._batches:
            self._found.append(values_of(X, self._name))
            yield X.drop_columns([self._name]), y

    @property
    def weight(self) -> Floats:
        """Weights of all rows of the last pass."""
        if len(self._found) > 1:  # parts are not kept next to it
            self._found = [np.concatenate(self._found)]
        return self._found[0]


# A name in double quotes, or one in which a backslash stands before a comma, a colon, a bar.
_NAME = r'\s*("(?:[^"]|"")+"|(?:\\.|[^\\,:|"])+?)\s*'
_COMMENT = r"\s*(?:\|.*)?"
_LINE = re.compile(rf"{_NAME},{_NAME}:\s*([^\s|]+?)\.?{_COMMENT}")

FORM = "PREDICTED, TRUE: COST"


def read_costs(path: str, y: NDArray[Any]) -> dict[tuple[Any, Any], float]:
    """Costs of errors by the true class and the predicted one; those not named cost 1.

    On each line of the file a predicted class, a true class and what that error costs. What follows
    a bar is a comment.
    """
    labels = {str(label): label for label in np.unique(y).tolist()}
    found: dict[tuple[Any, Any], float] = {}
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        if re.fullmatch(_COMMENT, line):
            continue
        place = f"{path}, line {number}"
        predicted, true, cost = _parse(line, place)
        for name in (predicted, true):
            if name not in labels:
                listed = ", ".join(labels)
                raise InputError(f"{place}: the target has no class {name!r}; it has {listed}.")
        if (labels[true], labels[predicted]) in found:
            raise InputError(f"{place}: the cost of {predicted!r} for {true!r} stands above.")
        found[labels[true], labels[predicted]] = cost
    if not found:
        raise InputError(f"{path} holds no costs: a line is {FORM}.")
    return found


def _parse(text: str, place: str) -> tuple[str, str, float]:
    match = _LINE.fullmatch(text)
    try:
        if match is None:
            raise InputError
        predicted, true = (_plain(name) for name in match.groups()[:2])
        return predicted, true, float(match[3])
    except ValueError:
        raise InputError(f"{place}: must be {FORM}, got {text.strip()!r}.") from None


def _plain(name: str) -> str:
    return parse_quoted(name) if name.startswith('"') else re.sub(r"\\(.)", r"\1", name)
