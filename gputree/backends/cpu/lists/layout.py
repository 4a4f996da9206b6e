"""What the kernels of attribute lists share: how entries and lists lie in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from gputree.backends.lists import ListTask


class Entries(NamedTuple):
    """Parts of rows, by node; `weight` is None where all weigh one unit."""

    target: NDArray[Any]  # (E,)
    weight: NDArray[Any] | None  # (E,) int64


class Lists(NamedTuple):
    """Entries by code and their codes."""

    item: NDArray[Any]  # (d, E) int32
    code: NDArray[Any]  # (d, E) uint32


class ListRules(NamedTuple):
    """What decides between tests of any node; see `ListTask`."""

    information: Any
    limits: Any
    missing_is_category: bool
    one_against_rest: bool
    by_gain: bool
    nominal: NDArray[Any]  # (d,) bool

    @classmethod
    def of(cls, task: ListTask) -> ListRules:
        """Those of a task."""
        return cls(*(getattr(task, field) for field in cls._fields))


class ListNodes(NamedTuple):
    """m nodes: entries ``begin[j] .. end[j]``, in every list."""

    begin: NDArray[Any]  # (m,) int64
    end: NDArray[Any]  # (m,) int64
    weights: NDArray[Any]  # (m, K) int64, of the classes
    resting: NDArray[Any]  # (d, m) bool: columns known to be constant


class NodeList(NamedTuple):
    """The list of one column in one node: places ``begin .. end``, by code."""

    item: NDArray[Any]
    code: NDArray[Any]
    target: NDArray[Any]
    weight: NDArray[Any] | None
    begin: int
    end: int


class Assigned(NamedTuple):
    """The parts of the entries of a level; see `gputree.backends.lists.Parts`."""

    child: NDArray[Any]  # (E,) int32: of each entry its part of the test, -1 where it has none
    part_code: NDArray[Any]  # (P,) uint32
    part_weight: NDArray[Any]  # (P,) int64, of the entries that have a part
    missing: NDArray[Any]  # (tests,) int64: entries without a part


class Opened(NamedTuple):
    """The parts that become nodes: those of test j are ``part[first[j]] .. part[first[j + 1]]``."""

    part: NDArray[Any]  # int64
    first: NDArray[Any]  # (tests + 1,) int64
    begin: NDArray[Any]  # (P,) int64: first entry of each part, -1 where it is not opened
    spread: NDArray[Any]  # (tests,) int64: where the fractions of its entries begin


class Moved(NamedTuple):
    """Where entries went; see `gputree.backends.cpu.lists.partition`."""

    route: NDArray[Any]  # (E,) int64: part of the test and place, or -2 less a place in `spread`
    spread: NDArray[Any]  # int32 places of fractions, -1 where a part gets none
