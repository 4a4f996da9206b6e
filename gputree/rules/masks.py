"""Which rows of a table meet which conditions, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._memory import require_memory
from gputree.rules.bits import WORD, Words, pack
from gputree.rules.conditions import Condition

# Bytes of masks that are held at once, where a table has more rows than a block.
BLOCK_BYTES = 1 << 28

# Rows of a block, at least: fewer would leave threads nothing to do.
LEAST_BLOCK = 1 << 14


class Block(NamedTuple):
    """Some consecutive rows of a table.

    Attributes
    ----------
    first : int
        Their first row.
    rows : uint64 array of shape (W,)
        All of them, as words of bits (`gputree.rules.bits`).
    masks : uint64 array of shape (U, W)
        Those that meet each condition.
    """

    first: int
    rows: Words
    masks: Words


class Masks:
    """The rows of a table that meet some conditions.

    Parameters
    ----------
    values : float array of shape (n, d)
        Numbers, codes of categories, NaN where missing.
    conditions : sequence of U Condition
    """

    def __init__(self, values: NDArray[np.floating], conditions: Sequence[Condition]) -> None:
        self._values = values
        self._by_feature: dict[int, list[int]] = {}
        for place, condition in enumerate(conditions):
            self._by_feature.setdefault(condition.feature, []).append(place)
        self._conditions = conditions
        height = BLOCK_BYTES * 8 // max(len(conditions), 1) // WORD * WORD
        self.height = max(height, LEAST_BLOCK)
        require_memory(
            len(conditions) * min(self.height, values.shape[0]) / 8,
            "Holding which rows meet which conditions",
            "Prune the tree, or limit its depth: it has too many leaves for rules to be read.",
        )
        self._kept: Block | None = None

    def __iter__(self) -> Iterator[Block]:
        """The blocks in order; where there is one, it is made once."""
        if self._kept is None and self._values.shape[0] <= self.height:
            self._kept = self.block(0)
        if self._kept is not None:
            yield self._kept
            return
        for first in range(0, self._values.shape[0], self.height):
            yield self.block(first)

    def block(self, first: int) -> Block:
        """The block that begins with a row."""
        values = self._values[first : first + self.height]
        n = values.shape[0]
        masks = np.empty((len(self._conditions), -(-n // WORD)), np.uint64)
        for feature, places in self._by_feature.items():
            column = np.ascontiguousarray(values[:, feature])
            known = ~np.isnan(column)
            codes: NDArray[np.int64] | None = None
            for place in places:
                condition = self._conditions[place]
                if condition.kind == "in" and codes is None:
                    codes = np.where(known, column, -1.0).astype(np.int64)
                masks[place] = pack(_meets(condition, column, known, codes))
        return Block(first, pack(np.ones(n, np.bool_)), masks)


def _meets(
    condition: Condition,
    column: NDArray[np.floating],
    known: NDArray[np.bool_],
    codes: NDArray[np.int64] | None,
) -> NDArray[np.bool_]:
    """Which values of a column meet a condition; `codes` are -1 where there is no category."""
    if condition.kind == "missing":
        return ~known
    if condition.kind == "present":
        return known
    if codes is not None and condition.kind == "in":
        listed = np.array(condition.codes, np.int64)
        found = np.zeros(max(int(codes.max(initial=0)), int(listed.max(initial=0))) + 2, np.bool_)
        found[listed] = True  # the last stays free, for -1
        return found[codes]
    threshold = np.float64(condition.threshold)  # compared in float64, whatever the column is
    met: NDArray[np.bool_] = column <= threshold if condition.kind == "<=" else column > threshold
    return met
