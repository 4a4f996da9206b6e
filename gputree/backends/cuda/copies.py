"""Copies on the device of arrays of the host: made once, kept while they fit memory.

A copy is released when its array is gone, or when others need its memory, the least recently used
first, and made again when it is required.
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
    """What the device has for arrays of the host, by the identity of these arrays.

    One thread at a time calls methods; arrays may be released in any.
    """

    def __init__(self) -> None:
        self._kept: dict[int, _Copy] = {}  # the least recently used first

    @property
    def nbytes(self) -> int:
        """Of all copies."""
        return sum(copy.nbytes for copy in list(self._kept.values()))

    def find(self, owner: NDArray[Any]) -> Any:
        """The copy that is kept for an array, or None."""
        copy = self._kept.pop(id(owner), None)
        if copy is None:
            return None
        self._kept[id(owner)] = copy
        return copy.value

    def keep(self, owner: NDArray[Any], value: Any, nbytes: int) -> None:
        """Keep `value` as the copy for an array, until that is gone."""
        key = id(owner)
        gone = weakref.ref(owner, lambda _: self._kept.pop(key, None))
        self._kept[key] = _Copy(gone, value, nbytes)

    def make_room(self, nbytes: int, budget: int) -> None:
        """Release copies until so many bytes more are within the budget, or none is left."""
        for key in list(self._kept):
            if self.nbytes + nbytes <= budget:
                return
            self._kept.pop(key, None)
