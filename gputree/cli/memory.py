"""`--memory`: tables that are read in batches, the size of these, and the limit of growth.

In batches a process holds, in addition to what Python and its libraries take,

    while reading   a batch; of Parquet, about 4 MB a column
    evaluate        the sums of what was read, and a block of rows
    growth          the bytes a row of `row_bytes`, kernels, and buffers, which are made to fit

Trees do not depend on any of it.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gputree.base.memory import private_bytes, resident_bytes
from gputree.base.threads import beside
from gputree.cli.report import say
from gputree.compilation.waits import n_compiled

_UNITS = {unit: 1000**k for k, unit in enumerate(("", "K", "M", "G", "T"))}
_UNITS |= {f"{unit}I": 1024**k for k, unit in enumerate(("", "K", "M", "G", "T")) if unit}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]I?|)B|(\d+(?:\.\d+)?)\s*([KMGT]I?)", re.IGNORECASE)

# Memory that a table takes in memory, as a multiple of its cells in Arrow: these, the matrix, its
# codes, labels as text and what is made of them. Of 4,000,000 rows x 21 columns and text labels.
IN_MEMORY = 6

# Of the memory, in a batch.
BATCH_SHARE = 1 / 256
LEAST_BATCH = 1 << 20

# Of a column of Parquet: pages that are compressed and not, dictionaries.
COLUMN_BYTES = 4_000_000

LOOK_SECONDS = 0.2  # between two looks at the memory of the process; they take up to 20 ms

KERNEL_BYTES = 40_000_000  # kernels once they are loaded, and what is imported for them

SHARED_BYTES = 150_000_000  # resident memory that is not private, of a fit of 377 MB

# Minimum bytes of each buffer of growth: histograms, those of threads, and twice that for rows
# that are gathered.
LEAST_BUFFER = 1 << 22
BUFFERS = 4
_BUFFERS = (
    "most_histogram_bytes",
    "category_bytes",
    "partial_bytes",
    "listed_bytes",
    "sorted_bytes",
    "local_round_bytes",
)  # of a table on disk; buffers of the search and of levels are not needed at once


def add_memory(group: Any) -> None:
    """Add `--memory`."""
    _add(
        group,
        "limit of the memory of the process, such as 4GB: larger tables are read in batches "
        "into temporary files; the model is the same. Of this, Python and its libraries take "
        "about 0.15 GB, and as much of files that processes share, kernels that are compiled 0.15 "
        "to 0.3 GB (see gputree warmup), and growth 6 bytes per row, 16 more with weights, 40 more "
        "for regression; c45 16 bytes per value, too. A warning says so where it exceeds that. "
        "Default: the available memory. Several files are always read in batches. The temporary "
        "files are in the folder that TMPDIR names (else /tmp) and take 5 to 9 bytes per value; "
        "the page cache of these files is not counted",
    )


def add_scan_memory(parser: Any) -> None:
    """Add `--memory` of commands that read rows once, in batches."""
    _add(
        parser,
        "limit of the memory of the process, such as 500MB, to which batches of rows are "
        "fitted: of this, Python and its libraries take about 0.25 GB, kernels that are compiled "
        "about 0.1 GB (see gputree warmup), and batches of Parquet 4 MB a column. A warning says "
        "so where it exceeds the limit. Tables of ARFF, and of models with categories that are "
        "numbers, are read whole. Default: batches of 1 MiB of CSV",
    )


def _add(parser: Any, help: str) -> None:
    parser.add_argument("--memory", metavar="SIZE", type=parse_size, help=help)


def parse_size(text: str) -> int:
    """Bytes of a size with a unit, such as "4GB" or "512 MiB"."""
    found = _SIZE.fullmatch(text.strip())
    size = 0.0
    if found is not None:
        number, unit = (found[1], found[2]) if found[1] else (found[3], found[4])
        size = float(number) * _UNITS[unit.upper()]
    if size < 1:
        raise argparse.ArgumentTypeError(
            f"must be a size with its unit, such as 4GB or 512MiB, got {text!r}"
        )
    return int(size)


def batch_bytes(memory: int) -> int:
    """Bytes of a batch that is read."""
    from gputree.datasets.delimited import BATCH_BYTES

    return int(min(max(memory * BATCH_SHARE, LEAST_BATCH), BATCH_BYTES))


def batch_bytes_of(arguments: argparse.Namespace) -> int | None:
    """Bytes of a batch by `--memory`; None, for the usual size, without it."""
    memory = getattr(arguments, "memory", None)
    return None if memory is None else batch_bytes(memory)


def row_bytes(columns: int, is_regression: bool, weighted: bool, lists: bool) -> int:
    """Bytes per row in reading and in growth, in addition to its values; `lists` as of C4.5."""
    # order, label and hit; targets in float64 and fixed point, and their squares; weights in both
    return 6 + 40 * is_regression + 16 * weighted + 16 * columns * lists


def warn_if_exceeded(
    memory: int, private: int | None, rows: int, of_a_row: int, read_columns: int
) -> None:
    """Warn before reading if a limit cannot be kept.

    `private` is the memory before anything is read, None if unknown; `rows` a lower bound of their
    number, `of_a_row` the `row_bytes`; of Parquet, the pages of `read_columns` are read at a time.
    """
    if private is None:
        return
    reading = rows + read_columns * COLUMN_BYTES + 2 * batch_bytes(memory)
    growth = rows * of_a_row + KERNEL_BYTES + BUFFERS * LEAST_BUFFER
    if private + max(reading, growth) > memory:
        say(
            f"warning: --memory is exceeded: Python and its libraries take {_megabytes(private)}, "
            f"and about {_megabytes(SHARED_BYTES)} of files that processes share; reading takes "
            f"{_megabytes(reading)}, then growth {_megabytes(growth)}; compiling kernels, once on "
            "a machine (see gputree warmup), 150 to 300 MB more"
        )


@contextmanager
def watched_memory(memory: int | None) -> Iterator[None]:
    """Warn as it happens where the process takes more than a limit; None for no limit.

    Files that are mapped from the folder of temporary files do not count.
    """
    folder = tempfile.gettempdir()
    if memory is None or resident_bytes(folder) is None:
        yield
        return
    greatest = [0]

    def look(done: threading.Event) -> None:
        while True:
            is_last = done.wait(LOOK_SECONDS)
            taken = resident_bytes(folder, max(memory, greatest[0])) or 0
            if taken > memory >= greatest[0]:
                say(
                    f"warning: --memory {_megabytes(memory)} is exceeded: the process takes "
                    f"{_megabytes(taken)}"
                )
            greatest[0] = max(greatest[0], taken)
            if is_last:
                return

    try:
        with beside(look):
            yield
    finally:
        if greatest[0] > memory:
            compiled = n_compiled()
            with_kernels = f", compiling {compiled} kernels included" if compiled else ""
            say(f"warning: the process took {_megabytes(greatest[0])} at most{with_kernels}")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


@contextmanager
def growth_within(memory: int | None, needed: int) -> Iterator[None]:
    """Growth in buffers that fit into a limit together with `needed` bytes; None for no limit."""
    private = private_bytes()
    if memory is None or private is None:
        yield
        return
    from gputree.backends.cpu import tuning as host
    from gputree.backends.sharded import tuning as shards

    buffer = max((memory - private - needed - KERNEL_BYTES) // BUFFERS, LEAST_BUFFER)
    before = host.TUNING, shards.TUNING
    host.TUNING = host.TUNING._replace(
        partial_bytes=min(buffer, host.TUNING.partial_bytes),
        least_histogram_bytes=min(buffer, host.TUNING.least_histogram_bytes),
    )
    shards.TUNING = shards.TUNING._replace(
        gathered_bytes=min(2 * buffer, shards.TUNING.gathered_bytes),
        **{name: min(buffer, getattr(shards.TUNING, name)) for name in _BUFFERS},
    )
    try:
        yield
    finally:
        host.TUNING, shards.TUNING = before
