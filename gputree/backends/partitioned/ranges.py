"""Where the entries of nodes lie in every part.

entries     |  node 0: begin .. end                  | node 1  ...
part 0      |  first .. last  |                         of node 0, and so on
part 1                        |  first .. last  |
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.backends.base import Int64s


class Ranges:
    """Ranges of P parts, by the range of the node among all entries.

    Parameters
    ----------
    sizes : int64 array of shape (P,)
        Entries of each part.
    """

    def __init__(self, sizes: Int64s) -> None:
        self.parts = sizes.size
        self._of = {(0, int(sizes.sum())): (np.zeros_like(sizes), sizes)}

    def of(self, begin: Int64s, end: Int64s) -> tuple[NDArray, NDArray]:
        """First and last entry of m nodes in each part, shapes (m, P)."""
        found = [self._of[node] for node in zip(begin.tolist(), end.tolist(), strict=True)]
        both = np.array(found, np.int64).reshape(-1, 2, self.parts)
        return both[:, 0], both[:, 1]

    def split(self, begin: Int64s, end: Int64s, middle: NDArray) -> Int64s:
        """Learn where the children of nodes lie: ``middle`` (m, P) is the second's first entry.

        Returns the first of each second child among all entries.
        """
        first, last = self.of(begin, end)
        whole: Int64s = begin + (middle - first).sum(axis=1)
        for j, (a, m, b) in enumerate(
            zip(begin.tolist(), whole.tolist(), end.tolist(), strict=True)
        ):
            self._of[a, m] = first[j], middle[j]
            self._of[m, b] = middle[j], last[j]
        return whole


def join_ranges(begin: Int64s, end: Int64s) -> Int64s:
    """The places ``begin[j] .. end[j]``, one range after another."""
    sizes = end - begin
    upto = np.cumsum(sizes)
    places: Int64s = np.arange(upto[-1] if upto.size else 0)
    return places + np.repeat(begin - (upto - sizes), sizes)
