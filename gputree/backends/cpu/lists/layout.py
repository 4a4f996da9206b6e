"""Memory layout of entries and attribute lists, shared by their kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from gputree.backends.lists import ListTask


class Entries(NamedTuple):
    """Entries, ordered by node; `weight` is None where every entry has a weight of one unit."""

    target: NDArray[Any]  # (E,)
    weight: NDArray[Any] | None  # (E,) int64


class Lists(NamedTuple):
    """Attribute lists: entries in the order of their codes in each column, and the codes."""

    item: NDArray[Any]  # (d, E) int32
    code: NDArray[Any]  # (d, E) uint32


class ListRules(NamedTuple):
    """Rules that choose between tests of any node; see `ListTask`."""

    information: Any
    limits: Any
    missing_is_category: bool
    one_against_rest: bool
    by_gain: bool
    nominal: NDArray[Any]  # (d,) bool

    @classmethod
    def of(cls, task: ListTask) -> ListRules:
        """Return the rules of a task."""
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
    """Parts that the entries of a level are assigned to; see `gputree.backends.lists.TestParts`."""

    child: NDArray[Any]  # (E,) int32: part of the test for each entry, -1 where it has none
    part_code: NDArray[Any]  # (P,) uint32
    part_weight: NDArray[Any]  # (P,) int64, sum over the entries of the part
    missing: NDArray[Any]  # (tests,) int64: entries without a part


class OpenedNodes(NamedTuple):
    """Parts that become nodes: test j has ``part[first[j]] .. part[first[j + 1]]``."""

    part: NDArray[Any]  # int64
    first: NDArray[Any]  # (tests + 1,) int64
    begin: NDArray[Any]  # (P,) int64: first entry of each part, -1 where it does not become a node
    spread: NDArray[Any]  # (tests,) int64: first place of its fractions in `Moved.spread`


class Moved(NamedTuple):
    """Places of entries in the next level; see `gputree.backends.cpu.lists.partition`."""

    route: NDArray[Any]  # (E,) int64: part of the test and place, or -2 less a place in `spread`
    spread: NDArray[Any]  # int32 places of fractions, -1 in a part without a fraction
