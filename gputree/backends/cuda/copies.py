"""Cached copies on the device of arrays of the host, within a memory limit.

A copy is released when its array is deleted, or, the least recently used first, when others need
its memory; it is made again when it is required.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from numpy.typing import NDArray


class _Copy(NamedTuple):
    owner: weakref.ref[NDArray[Any]]
    value: Any
    nbytes: int


class Copies:
    """Copies on the device of arrays of the host, by the identity of these arrays.

    One thread at a time calls methods; arrays may be deleted in any.
    """

    def __init__(self) -> None:
        self._kept: dict[int, _Copy] = {}  # least recently used first

    @property
    def nbytes(self) -> int:
        """Bytes of all copies."""
        return sum(copy.nbytes for copy in list(self._kept.values()))

    def find(self, owner: NDArray[Any]) -> Any:
        """Return the copy that is kept for an array, or None."""
        copy = self._kept.pop(id(owner), None)
        if copy is None:
            return None
        self._kept[id(owner)] = copy
        return copy.value

    def keep(self, owner: NDArray[Any], value: Any, nbytes: int) -> None:
        """Keep `value` as the copy for an array, until the array is deleted."""
        key = id(owner)
        gone = weakref.ref(owner, lambda _: self._kept.pop(key, None))
        self._kept[key] = _Copy(gone, value, nbytes)

    def make_room(self, nbytes: int, budget: int) -> None:
        """Release copies until `nbytes` more are within `budget`, or none is left."""
        for key in list(self._kept):
            if self.nbytes + nbytes <= budget:
                return
            self._kept.pop(key, None)
