"""`--costs FILE`: costs of errors, in the format of C5.0."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.cli.report import parse_quoted
from gputree.errors import InputError

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
