"""`--target` of `gputree train`, which may be given repeatedly: the columns to predict."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.texts import hint
from gputree.cli.cells import tell_other_task
from gputree.cli.report import UsageError
from gputree.errors import InputError
from gputree.inputs.labels import Labels


def add_targets(add: Any) -> None:
    """Add `--target`: the first is `target`, and `more_targets` are the others."""
    text = "the column to predict; several, all of numbers or all of classes, if it is repeated"
    add("--target", required=True, action=_Append, metavar="COL", help=text)


class _Append(argparse.Action):
    """Take the names of columns, all different."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        """Take the next name."""
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
    """Let a fitted estimator know the names of several targets."""
    if more := more_targets(arguments):
        estimator.target_names_in_ = np.array([arguments.target, *more], dtype=object)


def named_targets(arguments: argparse.Namespace, targets: list[Labels]) -> dict[str, Labels]:
    """Targets by their names."""
    return dict(zip([arguments.target, *more_targets(arguments)], targets, strict=True))


def take_targets(label: str, table: Any, arguments: argparse.Namespace) -> tuple[Any, list[Labels]]:
    """The table without the other targets, and the values of all targets.

    Rows without one of them are an error, or are dropped.
    """
    from gputree.datasets.targets import has_target, target_values

    names, found = more_targets(arguments), []
    for name in names:
        if name not in table.names:
            raise InputError(f"{label} has no column {name!r} (--target).{hint(name, table.names)}")
        if arguments.missing_target == "drop":
            table = _filtered(label, name, table, np.asarray(has_target(table.columns[name])))
    for name in names:
        found.append(target_values(label, name, table.columns[name]))
    if len(names) == len(table.names):
        raise InputError(f"{label} has no feature column other than those of --target.")
    return replace(table, columns=table.columns.drop_columns(names)), [table.target, *found]


def _filtered(label: str, name: str, table: Any, present: NDArray[np.bool_]) -> Any:
    """The table with some of its rows, which have a target."""
    if not present.any():
        raise InputError(f"The target column {name!r} of {label} has no value in any row.")
    return replace(
        table,
        columns=table.columns.filter(present),
        target=table.target[present],
        weight=None if table.weight is None else table.weight[present],
        n_dropped=table.n_dropped + int(np.count_nonzero(~present)),
    )


def join_targets(targets: list[Labels]) -> Labels:
    """One target as it is, or several as columns of an array; text next to numbers as objects."""
    if len(targets) == 1:
        return targets[0]
    columns = list(map(np.asarray, targets))
    if len({column.dtype.kind in "iuf" for column in columns}) == 2:
        columns = [column.astype(object) for column in columns]
    return np.stack(columns, axis=1)


def columns_of(y: Labels) -> list[Labels]:
    """The targets that `join_targets` has joined."""
    if y.ndim == 1:
        return [y]
    plain = y.dtype.kind != "O"
    return [column if plain else np.array(column.tolist()) for column in np.asarray(y).T]


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
            "classes and quantities, and a model has targets of one kind. Write --task "
            "classification, or train a model for each."
        )
    (task,) = found
    for name, column in named.items():
        tell_other_task(name, task, column)
    return task


def require_one_target(arguments: argparse.Namespace) -> None:
    """Refuse options that are for one target, where there are several."""
    given = {
        "--holdout": arguments.holdout,
        "--cv": arguments.cv,
        "--classes": arguments.classes,
        "--costs": arguments.costs,
        "--rules": arguments.rules or None,
        f"--algorithm {arguments.algorithm}": (
            arguments.algorithm if arguments.algorithm in ("c45", "id3", "extra-trees") else None
        ),
    }
    others = len(more_targets(arguments))
    for option, value in given.items():
        if others and value is not None:
            raise UsageError(f"{option} takes one --target, got {1 + others}.")
