"""What the cells of a table look like: dates, marks of missing values, decimal commas."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree._texts import is_number
from gputree.cli.names import as_argument
from gputree.cli.report import say
from gputree.coded_labels import CodedLabels, Labels, distinct
from gputree.errors import InputError

# What often stands in a cell that is missing; the first among text, too.
MARKS = ("?", "-", "--", ".", "*", "None", "none", "unknown", "missing", "na", "n.a.")

_LONGEST_MARK = 12

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")

_MARK_NAMES = {",": "commas", ".": "points"}
_THOUSANDS = {mark: re.compile(rf"[+-]?\d{{1,3}}(\{mark}\d{{3}})+") for mark in _MARK_NAMES}

_AS_NUMBERS = "Make numbers of them (year, month, weekday, hour, days since a day)"


# ---------------------------------------------------------------------- dates
def check_cells(label: str, X: Any, target: Labels | None, arguments: argparse.Namespace) -> None:
    """Refuse dates, and warn of cells that look as if they were missing, or numbers."""
    forbid_dates(label, X, [*arguments.categorical, *(name for name, _ in arguments.ordered)])
    if target is not None and arguments.task == "auto":
        _forbid_dates_as_target(label, arguments.target, target)
    _look_for_marks(X)
    if target is not None:
        _warn_of_blanks(arguments.target, target)


def forbid_dates(label: str, X: Any, names: Collection[str]) -> None:
    """Raise ValueError where a column holds dates or times; those of `names` may, as text."""
    import pyarrow as pa

    from gputree.datasets.conversion import is_date
    from gputree.datasets.dates import dates_in

    typed = {field.name: _first(X[field.name]) for field in X.schema if is_date(field.type)}
    lasting = any(pa.types.is_duration(X.schema.field(name).type) for name in typed)
    texts = {name: dates_in(X[name], MARKS) for name in X.column_names if name not in names}
    found = typed | {name: cell for name, cell in texts.items() if cell is not None}
    if not found:
        return
    columns, them = ("column", "it") if len(found) == 1 else ("columns", "them")
    such = next((f", such as {cell}" for cell in found.values() if cell), "")
    listed = ", ".join(map(repr, found))
    words = "" if lasting else f"if they are categories: --categorical {as_argument(found)}; "
    raise InputError(
        f"{label} has dates or times in {columns} {listed}{such}, which a tree cannot split. "
        f"{_AS_NUMBERS}; {words}or leave {them} out: --ignore {as_argument(found)}"
    )


def _forbid_dates_as_target(label: str, name: str, target: Labels) -> None:
    """Raise ValueError where the target is of dates or times."""
    import pyarrow as pa

    from gputree.datasets.dates import dates_in

    if target.dtype.kind != "U":
        return
    words = target.present()[0] if isinstance(target, CodedLabels) else target
    cell = dates_in(pa.chunked_array([pa.array(words)]))
    if cell is not None:
        raise InputError(
            f"The target column {name!r} of {label} holds dates or times, such as {cell}. "
            f"{_AS_NUMBERS}, or write --task classification if each is a class."
        )


def target_of_task(arguments: argparse.Namespace, target: Labels) -> Labels:
    """The target; 007 is a number in regression, and said to be a class if no task was given."""
    from gputree.datasets.codes import leading_zeros

    if arguments.task == "regression":
        return without_zeros(np.asarray(target))
    if arguments.task == "auto" and target.dtype.kind == "U":
        cell = leading_zeros(distinct(target))
        if cell is not None:
            say(
                f"the target column {arguments.target!r} holds {cell.strip()!r}, and is taken for "
                "classes; --task regression takes it for numbers"
            )
    return target


def without_zeros(target: NDArray[Any]) -> NDArray[Any]:
    """A target of text that is integers with leading zeros as numbers; others as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from gputree.datasets.codes import leading_zeros

    if target.dtype.kind != "U" or leading_zeros(target) is None:
        return target
    try:
        numbers = pc.utf8_trim_whitespace(pa.array(target)).cast(pa.int64())
    except pa.ArrowInvalid:
        return target
    return numbers.to_numpy()


def _first(column: Any) -> str:
    known = column.drop_null()
    return str(known[0]) if len(known) else ""


# ---------------------------------------------------------------------- marks
def _look_for_marks(X: Any) -> None:
    """Warn of cells that look as if they were missing, or numbers."""
    among_text = []
    for name, column in zip(X.column_names, X.columns, strict=True):
        words = _words(column)
        marks = [mark for mark in MARKS if mark in words]
        rest = words.difference(marks)
        if marks and rest and all(map(is_number, rest)):
            say(
                f"warning: column {name!r} holds numbers and {marks[0]!r}, and is taken for text. "
                f"If that stands for a missing value, add --missing {shlex.quote(marks[0])}"
            )
        elif MARKS[0] in marks:
            among_text.append(name)
        if grouped := _grouped(rest):
            say(
                f"warning: column {name!r} holds numbers with {_MARK_NAMES[grouped[1]]} before "
                f"three digits, such as {grouped[0]}, and is taken for text. If they separate "
                "thousands, write the numbers without them"
            )
        elif cell := _decimal_comma(rest):
            say(
                f"warning: column {name!r} holds numbers with commas, such as {cell}, and is taken "
                "for text. Write points, or separate the cells by semicolons, where commas are read"
            )
    if among_text:
        say(
            f"warning: '?' is a category like others in {', '.join(map(repr, among_text))}. If it "
            "stands for a missing value, add --missing '?'"
        )


def _words(column: Any) -> set[str]:
    """The different cells of a column of text; none of others."""
    import pyarrow as pa

    if not pa.types.is_string(column.type):
        return set()
    return {word.strip() for word in column.drop_null().unique().to_pylist()}


def _warn_of_blanks(name: str, target: Labels) -> None:
    """Warn of classes that differ in the blanks around them alone."""
    if target.dtype.kind != "U":
        return
    seen: dict[str, str] = {}
    for label in distinct(target).tolist():
        twin = seen.setdefault(label.strip(), label)
        if twin != label:
            say(
                f"warning: {twin!r} and {label!r} are two classes of the target column {name!r}: "
                "they differ in blanks"
            )
            return


def _grouped(words: set[str]) -> tuple[str, str] | None:
    """A number with thousands separators, and the separator, where all others are numbers."""
    for mark in _MARK_NAMES:
        found = [word for word in words if _THOUSANDS[mark].fullmatch(word)]
        if found and all(word in found or is_number(word) for word in words):
            return min(found), mark
    return None


def _decimal_comma(words: set[str]) -> str | None:
    """A number with a decimal comma, where all others are numbers, too."""
    found = [word for word in words if _DECIMAL_COMMA.fullmatch(word)]
    whole = found and all(_DECIMAL_COMMA.fullmatch(word) or is_number(word) for word in words)
    return min(found) if whole else None


def unknown_marks(estimator: Any, X: Any) -> list[str]:
    """Columns of text where "?" stands, which training did not have."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    pairs = zip(X.column_names, X.columns, estimator.columns_.categories, strict=True)
    for name, column, words in pairs:
        if words is None or not pa.types.is_string(column.type):
            continue
        if any(str(word).strip() == MARKS[0] for word in words.tolist()):
            continue
        if pc.any(pc.equal(pc.utf8_trim_whitespace(column), MARKS[0])).as_py():
            found.append(name)
    return found


def warn_of_marks(columns: list[str]) -> None:
    """Warn of what `unknown_marks` found."""
    if columns:
        say(
            f"warning: training had no '?' in {', '.join(map(repr, columns))}. If it stands for a "
            "missing value, add --missing '?'"
        )


@contextmanager
def told(missing: Sequence[str]) -> Iterator[None]:
    """Add advice to errors about cells that are no numbers."""
    from gputree.datasets.conversion import NotANumberError

    try:
        yield
    except NotANumberError as error:
        mark = error.cell.strip()
        if _DECIMAL_COMMA.fullmatch(mark):
            raise InputError(
                f"{error} Write points, or separate the cells by semicolons, where commas are read."
            ) from error
        if not mark or mark in missing or len(mark) > _LONGEST_MARK:
            raise
        raise InputError(
            f"{error} If that stands for a missing value, add --missing {shlex.quote(mark)}"
        ) from error
