"""`--classes A,B,...`: classes that the target may have no rows of."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.cli.names import HOW, parse_names
from gputree.cli.report import UsageError

DECLARED = "declared"


def add_classes(group: Any) -> None:
    """Add `--classes`."""
    group.add_argument(
        "--classes",
        metavar="A,B,...",
        type=parse_names,
        action="extend",
        help=f"all classes, if the target lacks some: {HOW}; or {DECLARED}, those that the "
        "type of the target column declares (ARFF, dictionaries of Parquet and Arrow)",
    )


def classes_of(
    arguments: argparse.Namespace, y: NDArray[Any], declared: NDArray[Any] | None
) -> NDArray[Any] | None:
    """The classes that were requested, of the kind of `y`; None where none were.

    Raises
    ------
    UsageError
        A name is no number where the target holds numbers, or its column declares no classes.
    """
    names = arguments.classes
    if names is None:
        return None
    if names == [DECLARED]:
        if declared is None:
            raise UsageError(
                f"--classes {DECLARED}: the column {arguments.target!r} declares no classes, as "
                "nominal ones of ARFF and dictionaries of Parquet and Arrow do. List them: "
                "--classes A,B."
            )
        return declared
    if y.dtype.kind not in "biuf":
        return np.array(names)
    read = _truth if y.dtype.kind == "b" else _number
    return np.array([_read(read, name, arguments.target) for name in names])


def _read(read: Callable[[str], Any], name: str, target: str) -> Any:
    try:
        return read(name)
    except (KeyError, ValueError):
        what = "booleans" if read is _truth else "numbers"
        raise UsageError(
            f"--classes must be {what}, as those of the column {target!r} are. Got {name!r}."
        ) from None


def _truth(name: str) -> bool:
    return {"true": True, "false": False}[name.lower()]


def _number(name: str) -> int | float:
    try:
        return int(name)
    except ValueError:
        return float(name)
