"""Columns that are no features: `--target`, which may be repeated, and `--weights`; `--costs` of
errors.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Bools, Floats, Weight
from gputree.base.texts import hint
from gputree.cli.cells import tell_other_task
from gputree.cli.report import UsageError, parse_quoted
from gputree.errors import InputError
from gputree.inputs.labels import Labels
from gputree.inputs.targets import columns_of, join_labels


def add_targets(add: Any, text: str, required: bool = True) -> None:
    """Add `--target`: the first is `target`, and `more_targets` are the others."""
    text += "; several, all of numbers or all of classes, if it is repeated"
    add("--target", required=required, action=_Append, metavar="COL", help=text)


class _Append(argparse.Action):
    """Take the names of columns, all different."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        if namespace.target is None:
            namespace.target, namespace.more_targets = values, []
        elif values in (namespace.target, *namespace.more_targets):
            raise argparse.ArgumentError(self, f"names {values!r} twice")
        else:
            namespace.more_targets.append(values)


def more_targets(arguments: argparse.Namespace) -> list[str]:
    """The targets after the first."""
    return getattr(arguments, "more_targets", [])


def name_targets(estimator: Any, arguments: argparse.Namespace) -> None:
    """Give a fitted estimator the names of several targets."""
    if more := more_targets(arguments):
        estimator.target_names_in_ = np.array([arguments.target, *more], dtype=object)


def named_targets(arguments: argparse.Namespace, targets: list[Labels]) -> dict[str, Labels]:
    """Targets by their names."""
    return dict(zip([arguments.target, *more_targets(arguments)], targets, strict=True))


def take_targets(
    label: str, table: Any, arguments: argparse.Namespace, is_part: bool = False
) -> tuple[Any, list[Labels]]:
    """The table without the other targets, and the values of all targets.

    Rows without one of them are an error, or are dropped: of a part of the rows maybe all.
    """
    names = more_targets(arguments)
    for name in names:
        _require(name, table.names, label)
    if len(names) == len(table.names):
        raise InputError(_NO_FEATURE.format(label))
    weight = table.weight
    if weight is not None and arguments.missing_target == "drop":
        weight = weight[_present(table.columns, names)]
    columns, targets, dropped = _taken(label, table.columns, table.target, arguments, is_part)
    if len(columns) == 0 and not is_part:
        raise InputError(f"No row of {label} has a value in every column of --target.")
    n_dropped = table.n_dropped + dropped
    return replace(table, columns=columns, weight=weight, n_dropped=n_dropped), targets


_NO_FEATURE = "{} has no feature column other than those of --target."


def _require(name: str, names: list[str], label: str) -> None:
    if name not in names:
        raise InputError(f"{label} has no column {name!r} (--target).{hint(name, names)}")


def _present(columns: Any, names: list[str]) -> Bools:
    """Mark the rows that have all of some targets."""
    from gputree.datasets.targets import has_target

    return np.all([np.asarray(has_target(columns[name])) for name in names], axis=0)


def _taken(
    label: str, columns: Any, y: Labels, arguments: argparse.Namespace, is_part: bool = False
) -> tuple[Any, list[Labels], int]:
    """Columns without the other targets, the values of all, and the number of rows dropped."""
    from gputree.datasets.targets import target_values

    names, n = more_targets(arguments), len(columns)
    if names and arguments.missing_target == "drop":
        present = _present(columns, names)
        columns, y = columns.filter(present), y[present]
    others = [target_values(label, name, columns[name], is_part) for name in names]
    return columns.drop_columns(names), [y, *others], n - len(columns)


class TrainingBatches:
    """Batches whose targets are those of all `--target`, and whose weights are kept aside.

    Neither are columns then.
    """

    def __init__(self, batches: Any, label: str, arguments: argparse.Namespace) -> None:
        more, weights = more_targets(arguments), arguments.weights
        for name in more:
            _require(name, batches.names, label)
        self.names = [name for name in batches.names if name not in more]
        if not self.names:
            raise InputError(_NO_FEATURE.format(label))
        if weights is not None:
            require_column(self.names, weights, label)
            self.names = [name for name in self.names if name != weights]
        self.n_dropped = 0
        self._batches, self._label, self._arguments = batches, label, arguments
        self._weights: list[Floats] = []

    def least_rows(self) -> int:
        """Lower bound on the rows of the wrapped batches."""
        return int(self._batches.least_rows())

    def __iter__(self) -> Iterator[tuple[Any, Labels]]:
        self.n_dropped, self._weights = 0, []
        for X, y in self._batches:
            columns, targets, dropped = _taken(self._label, X, y, self._arguments, is_part=True)
            self.n_dropped += dropped
            if (name := self._arguments.weights) is not None:
                self._weights.append(values_of(columns, name))
                columns = columns.drop_columns([name])
            yield columns, join_targets(targets)

    @property
    def weight(self) -> Weight:
        """Weights of all rows of the last pass; None without a column of weights."""
        if len(self._weights) > 1:  # parts are not kept next to it
            self._weights = [np.concatenate(self._weights)]
        return self._weights[0] if self._weights else None


def join_targets(targets: list[Labels]) -> Labels:
    """One target as it is, or several as columns of an array; of several kinds as objects."""
    return targets[0] if len(targets) == 1 else join_labels(list(map(np.asarray, targets)))


def task_of(arguments: argparse.Namespace, y: Labels) -> str:
    """The task, by its option or by the values of the targets, which all have one."""
    from gputree.datasets import infer_task

    if arguments.task != "auto":
        return str(arguments.task)
    if arguments.classes is not None:
        return "classification"
    named = named_targets(arguments, columns_of(y))
    found: dict[str, str] = {}
    for name, column in named.items():
        found.setdefault(infer_task(column), name)
    if len(found) > 1:
        raise InputError(
            f"The target columns {found['classification']!r} and {found['regression']!r} hold "
            "classes and quantities, and a model has targets of one kind. "
            f"{_tasks_of_all(list(named.values()))} a model for each."
        )
    (task,) = found
    for name, column in named.items():
        tell_other_task(name, task, column)
    return task


def _tasks_of_all(columns: list[Labels]) -> str:
    """Advice with the task that all of some targets can have, if there is one."""
    arrays = list(map(np.asarray, columns))
    if all(column.dtype.kind in "iuf" for column in arrays):
        return "Write --task regression, or train"
    fractions = any(column.dtype.kind == "f" and (column % 1 != 0).any() for column in arrays)
    return "Train" if fractions else "Write --task classification, or train"


def require_one_target(arguments: argparse.Namespace) -> None:
    """Refuse options that are for one target, where there are several."""
    given = {
        "--classes": arguments.classes,
        "--costs": arguments.costs,
        "--rules": arguments.rules or None,
        f"--algorithm {arguments.algorithm}": (
            arguments.algorithm if arguments.algorithm in ("c45", "id3") else None
        ),
    }
    others = len(more_targets(arguments))
    for option, value in given.items():
        if others and value is not None:
            raise UsageError(f"{option} takes one --target, got {1 + others}.")


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
