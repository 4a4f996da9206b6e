"""`--classes A,B,...`: classes that the target may have no rows of."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.cli.names import HOW, number, parse_names
from gputree.cli.report import UsageError
from gputree.coded_labels import Labels

DECLARED = "declared"
_TRUTHS = {"true": True, "false": False}


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
    arguments: argparse.Namespace, y: Labels, declared: NDArray[Any] | None
) -> NDArray[Any] | None:
    """The classes that were requested, of the kind of `y`; None where none were."""
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
    read = number if y.dtype.kind != "b" else lambda name: _TRUTHS[name.lower()]
    return np.array([_read(read, name, arguments.target) for name in names])


def _read(read: Callable[[str], Any], name: str, target: str) -> Any:
    try:
        return read(name)
    except (KeyError, ValueError):
        what = "numbers" if read is number else "booleans"
        raise UsageError(
            f"--classes must be {what}, as those of the column {target!r} are. Got {name!r}."
        ) from None
