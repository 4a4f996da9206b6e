"""Damaged files: errors name them, and offsets and text are validated before use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from gputree._memory import OutOfMemory
from gputree.datasets.csv_head import not_utf8
from gputree.datasets.sources import ARROW, PARQUET, Source
from gputree.errors import InputError

# What a file can unpack to, in bytes and in times its length: a run of equal cells is packed to
# little, and a damaged file claims exabytes.
LEAST_UNPACKED = 1 << 36
MOST_TIMES = 1 << 16


@contextmanager
def told(source: Source) -> Iterator[None]:
    """Re-raise errors of readers with the file's name."""
    try:
        yield
    except UnicodeError as error:  # UTF-16 without its mark is no UnicodeDecodeError
        raise InputError(not_utf8(source, str(error))) from error
    except OutOfMemory:
        raise  # of a file that is whole, and it names that
    except MemoryError as error:
        if isinstance(error, pa.ArrowException) and not _may_unpack_to(source, error):
            raise InputError(f"{source.label} is damaged: {error}") from error
        raise MemoryError(f"Cannot read {source.label}: {error}") from error
    except (pa.ArrowException, OSError, OverflowError) as error:
        raise InputError(f"Cannot read {source.label}: {error}") from error


def _may_unpack_to(source: Source, error: MemoryError) -> bool:
    """Return whether a file of its length may need the bytes that could not be allocated."""
    size = source.path.stat().st_size if source.path is not None else LEAST_UNPACKED
    asked = re.search(r"size (\d+)", str(error))
    return asked is not None and int(asked[1]) <= max(LEAST_UNPACKED, MOST_TIMES * size)


def undamaged(source: Source, table: pa.Table) -> pa.Table:
    """Validate the offsets and the text of a table from a Parquet or Arrow file, and return it."""
    if source.kind not in (*PARQUET, *ARROW):
        return table  # which its reader has made, and found to be text
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"Cannot read {source.label}: column {name!r} is damaged, or holds text that is "
                f"not UTF-8: {error}"
            ) from error
    return table
