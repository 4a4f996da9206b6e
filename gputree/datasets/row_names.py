"""Columns that name or count the rows: indices of pandas, row names of R."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from gputree.datasets.guesses import Guess, Option

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
