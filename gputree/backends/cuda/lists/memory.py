"""What attribute lists take of a device's memory, within a budget.

A level of E entries and the next one lie there together. Where the next one is made in groups of
nodes, levels wait: one of E entries, one of E / 2, and so on, two tables of entries in all.
"""

from __future__ import annotations

from typing import Any

from gputree.backends.cuda import tuning
from gputree.backends.cuda.memory import free_bytes
from gputree.backends.lists import ListTask
from gputree.dtypes import MOST_ROWS

# Of an entry in the list of a column, and its code.
LIST_ENTRY_BYTES = 4 + 4

# Of an entry while it is moved: its route, and its place if it is a fraction.
ROUTE_BYTES = 8 + 4

# Of the table's rows: what levels are grown in, beside those that wait, at least. Smaller levels
# would be many.
LEAST_SHARE = 8

# Rows of a table for each part of a level that memory is set aside for.
PART_ROWS = 4

# Words of a part beside its class weights.
PART_WORDS = 6

# Bytes between allocations, which lists of pieces of nodes are aligned by.
ALIGNED = 512


class Ledger:
    """Device memory of one growth: what it may use, and what its levels hold.

    Attributes
    ----------
    budget : int
        Bytes that may be used: `ListTask.max_device_memory`, or a share of the free memory.
    held : int
        Bytes of levels, their entries, lists and parts.
    """

    def __init__(self, task: ListTask) -> None:
        self.is_given = task.max_device_memory is not None
        self.budget = (
            int(tuning.TUNING.default_share * free_bytes())
            if task.max_device_memory is None
            else task.max_device_memory
        )
        self.held = 0

    @property
    def left(self) -> int:
        """Bytes that nothing holds."""
        return self.budget - self.held

    @property
    def bound(self) -> str:
        """The budget in words."""
        what = "max_device_memory allows" if self.is_given else "the free device memory is"
        return f"{what} {self.budget:,}"

    def require(self, nbytes: int, what: str) -> None:
        """Raise MemoryError unless so many bytes more fit the budget."""
        if nbytes > self.left:
            raise MemoryError(
                f"{what} needs {self.held + nbytes:,} bytes of device memory together with the "
                f"attribute lists there; {self.bound}. Use device='cpu', or fewer rows or columns."
            )

    def require_table(self, task: ListTask, d: int, n: int) -> None:
        """Raise MemoryError where a table of n rows and d columns has no room to grow in."""
        needed = self.held + least_bytes(task, d, n)
        if needed > self.budget:
            raise MemoryError(
                f"The attribute lists of {n:,} rows x {d:,} columns, two levels of them, need at "
                f"least {needed:,} bytes of device memory; {self.bound}. Use device='cpu'."
            )


def least_bytes(task: ListTask, d: int, n: int) -> int:
    """What levels of n rows and d columns take at least."""
    return (2 * n + -(-n // LEAST_SHARE)) * _entry_bytes(task, d) + n * _work_bytes(task)


def most_entries(task: ListTask, d: int, n: int, room: int) -> int:
    """Entries of a level at most, so that growth takes no more than `room`.

    Levels that wait, and the one that is made below them, add up to two tables and a level of so
    many entries, or to three such levels where these are larger than the table.
    """
    entry, work = _entry_bytes(task, d), _work_bytes(task)
    few = (room - n * work) // entry - 2 * n
    return min(few if few <= n else room // (3 * entry + work), MOST_ROWS)


def _entry_bytes(task: ListTask, d: int) -> int:
    """Of an entry of a level: in d lists, and its own."""
    return LIST_ENTRY_BYTES * d + 4 + (0 if task.weight is None else 8)


def _work_bytes(task: ListTask) -> int:
    """Of an entry while a level is scored, assigned and moved."""
    return ROUTE_BYTES + 8 * (task.n_classes + PART_WORDS) // PART_ROWS


# ------------------------------------------------------------------ of each step
def score_bytes(n_classes: int, d: int, m: int) -> tuple[int, int]:
    """What m nodes are told in, whatever is scored, and candidates of each column."""
    return m * (8 * (3 + n_classes) + d), 6 * 8 * m


def assign_bytes(n_classes: int, m: int, n_parts: int, n_entries: int) -> int:
    """Tests of m nodes, and their parts."""
    pieces = m + n_entries // tuning.TUNING.lists_chunk_places + 1
    return (
        8 * n_parts * (n_classes + PART_WORDS)
        + m * (6 * 8 + 2 * 4)
        + 8
        + 3 * (8 * pieces + ALIGNED)
    )


def level_bytes(task: ListTask, d: int, n_entries: int) -> int:
    """Entries of a level and their lists."""
    return n_entries * _entry_bytes(task, d)


def move_bytes(d: int, m: int, n_parts: int, n_entries: int, fractions: int) -> int:
    """Where entries and their fractions go, the parts that are opened, and what moves are told."""
    return 8 * n_entries + 4 * max(fractions, 1) + 2 * 8 * n_parts + m * (4 * 8 + d) + 3 * 8


def cursor_bytes(n_cursors: int) -> int:
    """Cursors of one column."""
    return 4 * n_cursors


def nbytes_of(*arrays: Any) -> int:
    """Bytes of arrays; None has none."""
    return sum(int(array.nbytes) for array in arrays if array is not None)
