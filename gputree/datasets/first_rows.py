"""Guesses that the first rows of a CSV file show, as they are written.

Header, thousands that are read as decimals, and leading zeros.

Names of the columns of a file: choice of the features, checks, and columns that name or count the
rows: indices of pandas, row names of R.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from gputree.base.texts import hint
from gputree.columns.categories import is_decimal
from gputree.datasets.conversion import listed
from gputree.datasets.csv_head import DELIMITERS as MARKS
from gputree.datasets.csv_head import Opened, groups_of_three, has_fractions
from gputree.datasets.file_format import Guess, Option
from gputree.errors import InputError

_ZEROS = re.compile(r"\s*[+-]?0\d{2,}\s*")  # 01 to 12 and the like are numbers
_WHOLE = re.compile(r"\s*\d+\s*")

_MOST_SHOWN = 4


def guesses_of_first_rows(
    opened: Opened, numbers: Collection[str], sure: Collection[str], is_decimal_given: bool
) -> Iterator[Guess]:
    """Guesses about a file; `numbers` were read as such, `sure` are columns with a given kind."""
    if not opened.is_headless and header_is_row(opened.names, opened.rows):
        yield _of_header(opened.names)
    columns = {
        name: [row[place] for row in opened.rows if place < len(row)]
        for place, name in enumerate(opened.names)
        if name in numbers and name not in sure
    }
    if opened.dialect.delimiter != "," and not is_decimal_given:
        yield from _of_thousands(opened, columns)
    for name, cells in columns.items():
        zeros = next(filter(_ZEROS.fullmatch, cells), "").strip()
        if zeros:
            yield Guess(
                f"column {name!r} holds integers with leading zeros, such as {zeros}, and is taken "
                f"for numbers: {zeros} is {int(zeros)}",
                "For codes add {0}; {1} says that they are numbers",
                (Option("categorical", [name]), Option("numeric", [name])),
                name,
            )


def _of_header(names: Sequence[str]) -> Guess:
    more = ", ..." if len(names) > _MOST_SHOWN else ""
    return Guess(
        f"the header looks like a row of values: {', '.join(names[:_MOST_SHOWN])}{more}",
        "If it is one, add {0}, or {1} with a name for each column",
        (Option("has_header", False), Option("names", [])),
    )


_HEADLESS = " If these are values, add has_header=False."


def header_is_row(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether names of columns look like the values below them.

    Numbers that do not count columns or years; or, where no column holds numbers, words that all
    stand in their own columns, too.
    """
    if not rows:
        return False
    columns = [[row[place] for row in rows if place < len(row)] for place in range(len(names))]
    numbers = [
        name
        for name, cells in zip(names, columns, strict=True)
        if is_decimal(name) and _mostly_decimal(cells)
    ]
    if numbers:
        return not _count(numbers)
    if any(map(_mostly_decimal, columns)) or len(names) < 2:
        return False
    return all(
        bool(name.strip()) and name in cells for name, cells in zip(names, columns, strict=True)
    )


def _mostly_decimal(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and 2 * sum(map(is_decimal, filled)) > len(filled)


def _count(numbers: Sequence[str]) -> bool:
    """Return whether names are numbers of columns, such as 0, 1, 2, or years, ascending."""
    if not all(map(_WHOLE.fullmatch, numbers)):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(numbers)}
    return len(steps) <= 1 and min(steps, default=1) > 0


def _of_thousands(opened: Opened, columns: dict[str, list[str]]) -> Iterator[Guess]:
    """Numbers read as decimals whose points may separate thousands, of a file without fractions."""
    everywhere = [
        [row[place] for row in opened.rows if place < len(row)]
        for place in range(len(opened.names))
    ]
    if any(has_fractions(opened.dialect.decimal_point, cells) for cells in everywhere):
        return
    for name, cells in columns.items():
        found = groups_of_three(opened.dialect.decimal_point, cells)
        if not found:
            continue
        mark, value = opened.dialect.decimal_point, found[0].strip()
        yield Guess(
            f"column {name!r} holds numbers with {'points' if mark == '.' else 'commas'} before "
            f"three digits, such as {value}, which are read as decimals",
            "If they separate thousands, add {0}; {1} says that they are decimals",
            (Option("thousands", mark), Option("decimal", mark)),
            name,
        )


def check_header(label: str, present: list[str], wanted: Sequence[str]) -> None:
    """Raise ValueError unless names differ and all that are wanted are there."""
    forbid_repeated(label, present)
    check_present(label, present, wanted)


def forbid_repeated(label: str, present: Sequence[str], opened: Opened | None = None) -> None:
    """Raise ValueError where two columns have the same name."""
    if repeated := _repeated(present):
        hint = ""
        if opened is not None and not opened.is_headless and header_is_row(present, opened.rows):
            hint = _HEADLESS
        elif 2 * present.count("") > len(present):
            hint = " If the first row is a title, remove it: it must name the columns."
        raise InputError(f"{label} has columns of the same name: {listed(repeated)}.{hint}")


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def feature_names(
    label: str,
    present: list[str],
    target: str | None,
    columns: Sequence[str] | None,
    ignore: Sequence[str],
) -> list[str]:
    """Names of the feature columns."""
    wanted = [name for name in present if name != target] if columns is None else list(columns)
    check_present(label, present, [*wanted, *ignore, *([] if target is None else [target])])
    if target in wanted:
        raise InputError(f"The target column {target!r} cannot also be a feature column.")
    if repeated := _repeated(wanted):
        raise InputError(f"{listed(repeated)} is listed twice in columns.")
    wanted = [name for name in wanted if name not in ignore]
    if not wanted:
        raise InputError(
            f"{label} has no feature columns other than the target and those left out."
        )
    return wanted


def check_present(label: str, present: list[str], wanted: Sequence[str]) -> None:
    """Raise ValueError unless a file has all columns that are wanted."""
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        column = "column" if len(missing) == 1 else "columns"
        raise InputError(
            f"{label} has no {column} {listed(missing)}.{hint(missing[0], present)} Its columns "
            f"are: {listed(present)}.{_separator_hint(present) or _headless_hint(present)}"
        )


def _headless_hint(present: Sequence[str]) -> str:
    """Hint for an error: no header, if names are numbers that count no columns or years."""
    numbers = [name for name in present if is_decimal(name)]
    return "" if not numbers or _count(numbers) else _HEADLESS


def _separator_hint(present: list[str]) -> str:
    """Hint for an error: a separator, if a file seems to have one column."""
    found = [mark for mark in MARKS if len(present) == 1 and mark in present[0]]
    if len(present) == 1 and not found and " " in present[0].strip():
        return (
            " If blanks separate the cells, single ones are a delimiter: delimiter=' '. Make "
            "single ones of several: tr -s ' '"
        )
    if not found:
        return ""
    return (
        f" The separator seems to be {found[0]!r}; it must be a tab in .tsv, and in .csv part all "
        "rows alike."
    )


# The names that pandas, readr and R give to a column that had none.
_UNNAMED = re.compile(r"|Unnamed: \d+|\.\.\.\d+|__index_level_\d+__")
_COUNTER = re.compile(
    r"(?-i:X)|#|nr|no|num|number|index|idx|obs|observation|case|instance|sample|row|rank"
    r"|(row|obs|case|sample|instance|record|data)?[ _.-]?(id|ids|no|nr|num|number|name|names|index)"
    r"|编号|序号|行号",
    re.IGNORECASE,
)

# Rows from which a column that counts them is no accident, whatever its name.
_MANY_ROWS = 100


def pandas_index(schema: pa.Schema) -> list[str]:
    """Columns that pandas wrote as the index of a frame, by its own metadata."""
    try:
        found = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError):
        return []
    return [name for name in found if isinstance(name, str) and name in schema.names]


def index_columns(table: pa.Table) -> list[str]:
    """Columns that hold an index: by pandas' metadata, or without a name and all different."""
    declared = pandas_index(table.schema)
    return [
        name
        for name in table.column_names
        if name in declared or (_UNNAMED.fullmatch(name) and _is_index(table[name]))
    ]


def _is_index(column: pa.ChunkedArray) -> bool:
    """Return whether all cells of a column differ, or none has a value."""
    present = column.drop_null()
    return not len(present) or len(present.unique()) == len(column)


def guess_of_index(name: str, is_declared: bool, is_empty: bool = False) -> Guess:
    """The message that a column is left out."""
    kind = "the index of pandas" if is_declared else "row names" if name else "row names, unnamed"
    kind = "no values, and its heading is no name" if is_empty and not is_declared else kind
    return Guess(
        f"column {name!r} holds {kind}, and is left out",
        "{0} with the names of all features takes it",
        (Option("columns", [name]),),
        name,
        is_declared,
    )


def guesses_of_counters(table: pa.Table) -> Iterator[Guess]:
    """Guesses about columns that count the rows from 0 or 1, or that have no name."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if _UNNAMED.fullmatch(name):
            yield Guess(
                f"column {table.column_names.index(name) + 1} of the features has no name",
                "To leave it out add {0}",
                (Option("ignore", [name]),),
                name,
            )
        elif counts_rows(column) and (
            _COUNTER.fullmatch(name.strip()) or len(column) >= _MANY_ROWS
        ):
            first = column[0].as_py()
            yield Guess(
                f"column {name!r} counts the rows from {first:g} to {len(column) - 1 + first:g}",
                "To leave it out add {0}",
                (Option("ignore", [name]),),
                name,
            )


def counts_rows(column: pa.ChunkedArray) -> bool:
    """Return whether cells are 0, 1, 2 and so on, or begin with 1."""
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) or len(column) < 2:
        return False
    first = column[0].as_py()
    if column.null_count or first not in (0, 1):
        return False
    steps = pa.array(range(int(first), int(first) + len(column)), pa.int64())
    return bool(pc.all(pc.equal(column, steps.cast(kind, safe=False))).as_py())
