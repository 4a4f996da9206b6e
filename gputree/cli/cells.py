"""Dates in the cells of a table, marks of missing values, errors about cells, and `--ordered`.

The command refuses columns of dates and times, with advice. They are columns of which each cell is
certainly one, that is

- a day, month and year in any order of use between "/", "-" or ".", the year of four digits;
  of two only between slashes, as in 12/31/20;
- a day or a month and a year with the name of the month: 3 Feb 2020, Jan 2020;
- a year and its month or week: 2020-01, 1/2020, 2020-W05; years with the next one, 2001-02 and
  2002-03 throughout, are seasons;
- a time with two digits for the hour, with seconds, or with am or pm: 09:30, 9:30:00, 9:30 pm;
- a day with a time, in any of the usual zones.

All other text is categories: 3:45 may be a length, 20-12-31 a code, 10.10.10 a version.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gputree.cli.report import HOW, UsageError, as_argument, parse_names, parse_quoted, say
from gputree.columns.categories import MARKS
from gputree.errors import InputError
from gputree.inputs.labels import CodedLabels, Labels, distinct

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST_CELLS = 1000  # cells that are looked at before all are

_DAY = r"(0?[1-9]|[12]\d|3[01])"
_MONTH = r"(0?[1-9]|1[0-2])"
_YEAR = r"((1[5-9]|2[01])\d\d)"
_NAME = (
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?"
    r"|oct(ober)?|nov(ember)?|dec(ember)?)\.?"
)
_WEEKDAY = (
    r"((mon(day)?|tue(s(day)?)?|wed(nesday)?|thu(r(s(day)?)?)?|fri(day)?|sat(urday)?"
    r"|sun(day)?)[,.]? )?"
)


def _between(mark: str) -> list[str]:
    """Days of years in the orders that are in use."""
    return [
        f"{_DAY}{mark}{_MONTH}{mark}{_YEAR}",
        f"{_MONTH}{mark}{_DAY}{mark}{_YEAR}",
        f"{_YEAR}{mark}{_MONTH}{mark}{_DAY}",
    ]


_DATES = [
    *_between("/"),
    *_between("-"),
    *_between(r"\."),
    rf"{_DAY}/{_MONTH}/\d\d",
    rf"{_MONTH}/{_DAY}/\d\d",
    rf"\d\d/{_MONTH}/{_DAY}",
    f"{_YEAR}-{_MONTH}",
    f"{_MONTH}/{_YEAR}",
    rf"{_YEAR}-?W[0-5]\d(-?[1-7])?",
    rf"{_WEEKDAY}{_DAY}(st|nd|rd|th)?[ ./-]+{_NAME}[ ,./-]+({_YEAR}|\d\d)",
    rf"{_WEEKDAY}{_NAME}[ -]{_DAY}(st|nd|rd|th)?,? {_YEAR}",
    rf"{_NAME}[ -]{_YEAR}",
]
_ZONE = r"( ?(z|utc|gmt|[+-]\d\d:?\d\d))?"
_SECONDS, _HALF = r":[0-6]\d([.,]\d+)?", r" ?[ap]\.?m\.?"
_SHORT_HOUR, _HOUR = r"([01]?\d|2[0-4]):[0-5]\d", r"([01]\d|2[0-4]):[0-5]\d"
_OF_A_DAY = f"{_SHORT_HOUR}({_SECONDS})?({_HALF})?{_ZONE}"
_ALONE = f"({_HOUR}|{_SHORT_HOUR}({_SECONDS}({_HALF})?|{_HALF})){_ZONE}"
_PATTERN = rf"^\s*(({'|'.join(_DATES)})([t, ]+{_OF_A_DAY})?|{_ALONE})\s*$"
_SEASON = re.compile(r"\s*\d\d(\d\d)-(\d\d)\s*")


def dates_in(column: pa.ChunkedArray, marks: Collection[str] = ()) -> str | None:
    """The first cell of a column of text where every cell is a date or a time, else None.

    `marks` stand in cells that are missing, and need not be any.
    """
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    first = _all_dates(column.drop_null().slice(0, _FIRST_CELLS), marks)
    words = None if first is None or len(first) == 0 else _all_dates(column, marks)
    return None if words is None else str(words[0]).strip()


def _all_dates(column: pa.ChunkedArray, marks: Collection[str]) -> pa.Array | None:
    """The different cells, if each is a date or a time, except markers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = column.unique().drop_null()
    present = pc.invert(
        pc.is_in(pc.utf8_trim_whitespace(words), value_set=pa.array(["", *marks], words.type))
    )
    words = words.filter(present)
    found = pc.match_substring_regex(words, _PATTERN, ignore_case=True)
    if not pc.all(found, min_count=0).as_py():
        return None
    parts = map(_SEASON.fullmatch, words.to_pylist())  # years, each with the next one
    seasons = all(part and (int(part[1]) + 1) % 100 == int(part[2]) for part in parts)
    return None if seasons and len(words) else words


_LONGEST_MARK = 12

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")

_AS_NUMBERS = "Make numbers of them (year, month, weekday, hour, days since a day)"


def check_cells(
    label: str, X: Any, targets: Mapping[str, Labels], arguments: argparse.Namespace
) -> None:
    """Refuse dates, and warn of classes that differ in blanks."""
    forbid_dates(label, X, [*arguments.categorical, *(name for name, _ in arguments.ordered)])
    for name, target in targets.items():
        if arguments.task == "auto":
            _forbid_dates_as_target(label, name, target)
        _warn_of_blanks(name, target)


def forbid_dates(label: str, X: Any, names: Collection[str]) -> None:
    """Raise ValueError if a column holds dates or times, unless `names` takes it as text."""
    import pyarrow as pa

    from gputree.datasets.conversion import is_date

    typed = {
        field.name: str(next(iter(X[field.name].drop_null()), ""))
        for field in X.schema
        if is_date(field.type)
    }
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

    if target.dtype.kind != "U":
        return
    words = target.present()[0] if isinstance(target, CodedLabels) else target
    cell = dates_in(pa.chunked_array([pa.array(words)]))
    if cell is not None:
        raise InputError(
            f"The target column {name!r} of {label} holds dates or times, such as {cell}. "
            f"{_AS_NUMBERS}, or write --task classification if each is a class."
        )


def target_of_task(task: str, name: str, target: Labels) -> Labels:
    """The target; 007 is a number in regression, and said to be a class if no task was given."""
    from gputree.datasets.conversion import leading_zeros

    if task == "regression":
        return without_zeros(np.asarray(target))
    if task == "auto" and target.dtype.kind == "U":
        cell = leading_zeros(distinct(target))
        if cell is not None:
            say(
                f"the target column {name!r} holds {cell.strip()!r}, and is taken for "
                "classes; --task regression takes it for numbers"
            )
    return target


def tell_other_task(name: str, task: str, target: Labels) -> None:
    """Say what else integers of a target may be."""
    from gputree.datasets.targets import uncertain_classes

    n_values = uncertain_classes(target)
    if not n_values:
        return
    taken, other = ("classes", "quantities: --task regression")
    if task == "regression":
        taken, other = ("quantities", "classes: --task classification")
    say(
        f"the target column {name!r} holds {n_values} different integers, and is taken for "
        f"{taken}. They may be {other}"
    )


def without_zeros(target: NDArray[Any]) -> NDArray[Any]:
    """A target of text that is integers with leading zeros as numbers; others as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from gputree.datasets.conversion import leading_zeros

    if target.dtype.kind != "U" or leading_zeros(target) is None:
        return target
    try:
        numbers = pc.utf8_trim_whitespace(pa.array(target)).cast(pa.int64())
    except pa.ArrowInvalid:
        return target
    return numbers.to_numpy()


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


def unknown_categories(estimator: Any, X: Any) -> dict[str, str]:
    """Warnings by columns of text: of "?", and of columns none of whose words training had."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {}
    pairs = zip(X.column_names, X.columns, estimator.columns_.categories, strict=True)
    for name, column, words in pairs:
        if words is None or not pa.types.is_string(column.type):
            continue
        trained = {str(word).strip() for word in words.tolist()}
        given = pc.utf8_trim_whitespace(column.unique()).drop_null().to_pylist()
        if MARKS[0] in given and MARKS[0] not in trained:
            found[name] = (
                f"training had no '?' in {name!r}. If it stands for a missing value, add "
                "--missing '?'"
            )
        elif len(X) > 1 and given and trained.isdisjoint(given):
            found[name] = (
                f"no cell of {name!r}, such as {given[0]!r}, is a category that training had, "
                f"such as {str(words[0])!r}"
            )
    return found


@contextmanager
def with_hints(missing: Sequence[str]) -> Iterator[None]:
    """Add advice to errors about cells that are no numbers."""
    from gputree.datasets.conversion import NotANumberError, unit_of

    try:
        yield
    except NotANumberError as error:
        mark = error.cell.strip()
        if _DECIMAL_COMMA.fullmatch(mark):
            raise InputError(f"{error} If that is a decimal comma, add --decimal ,") from error
        has_other_unit = error.unit is not None and unit_of(mark) is not None
        if not mark or mark in missing or len(mark) > _LONGEST_MARK or has_other_unit:
            raise
        raise InputError(
            f"{error} If that stands for a missing value, add --missing {shlex.quote(mark)}"
        ) from error


_DECLARED = "declared"  # of the parameter `ordered_categories`

_QUOTED = r'\s*"(?:[^"]|"")*"\s*'
_ORDER = re.compile(rf'({_QUOTED}|[^"=<]+)=(.*)', re.S)
_LEVEL = re.compile(rf'({_QUOTED}|[^"<]+)(<|$)', re.S)


def add_ordered(parser: Any) -> None:
    """Add `--ordered`."""
    parser.add_argument(
        "--ordered",
        type=parse_order,
        metavar="A=X<Y<...",
        action="extend",
        default=[],
        help="column of ordered categories, from the lowest to the highest, which is cut along "
        "their order; names and categories that contain = or < in double quotes; may be repeated. "
        f"A,B,...: the order that an ARFF header, or a type, declares; names are {HOW}",
    )


def parse_order(text: str) -> list[tuple[str, Any]]:
    """Columns, each with its categories in their order, or "declared"."""
    found = _ORDER.fullmatch(text)
    if found is None:
        return [(name, _DECLARED) for name in parse_names(text)]
    words = _LEVEL.findall(found[2])
    levels = [parse_quoted(word.strip()) for word, _ in words]
    whole = "".join(word + end for word, end in words) == found[2] and not found[2].endswith("<")
    name = parse_quoted(found[1].strip())
    if not whole or len(levels) < 2 or not all(levels) or not name:
        raise argparse.ArgumentTypeError(
            "must be COLUMN=LOWEST<...<HIGHEST, with names and categories in double quotes where "
            f"they contain = or <, or names of columns, got {text!r}"
        )
    return [(name, levels)]


def orders_of(arguments: argparse.Namespace) -> dict[str, Any] | str:
    """The parameter `ordered_categories`."""
    return dict(arguments.ordered) or "auto"


def listed_levels(arguments: argparse.Namespace) -> list[str]:
    """Columns whose categories are listed: as text, whatever they look like."""
    return [name for name, levels in arguments.ordered if levels != _DECLARED]


def check_orders(arguments: argparse.Namespace) -> None:
    """Refuse columns that are ordered twice, or said to be something else."""
    names = [name for name, _ in arguments.ordered]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--ordered gives two orders of {name!r}.")
        for option in ("categorical", "numeric"):
            if name in getattr(arguments, option):
                raise UsageError(f"--{option} and --ordered both name {name!r}.")
