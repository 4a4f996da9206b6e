"""Copies on the device of what lies on the host: made once, kept while memory has room.

The host's arrays are what counts: a copy is given up when its array is gone, or when others need
its room, the least recently used first, and made again when it is asked for.
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
    """What lies on the device for arrays of the host, by the identity of these arrays.

    One thread at a time looks up, keeps and makes room; arrays may go in any.
    """

    def __init__(self) -> None:
        self._held: dict[int, _Copy] = {}  # the least recently used first

    @property
    def nbytes(self) -> int:
        """Of all copies."""
        return sum(copy.nbytes for copy in list(self._held.values()))

    def find(self, owner: NDArray[Any]) -> Any:
        """The copy that is kept for an array, or None."""
        copy = self._held.pop(id(owner), None)
        if copy is None:
            return None
        self._held[id(owner)] = copy
        return copy.value

    def keep(self, owner: NDArray[Any], value: Any, nbytes: int) -> None:
        """Keep `value` as the copy for an array, until that is gone."""
        key = id(owner)
        gone = weakref.ref(owner, lambda _: self._held.pop(key, None))
        self._held[key] = _Copy(gone, value, nbytes)

    def make_room(self, nbytes: int, budget: int) -> None:
        """Give up copies until so many bytes more are within the budget, or none is left."""
        for key in list(self._held):
            if self.nbytes + nbytes <= budget:
                return
            self._held.pop(key, None)
