"""Masks of the rows of a table that satisfy conditions, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from gputree._memory import require_memory
from gputree.bits import WORD, Words, pack
from gputree.compilation import kernel
from gputree.dtypes import Floats, Int64s, Values
from gputree.rules.conditions import Condition, Rules

# Maximum bytes of masks in memory at once, where a table has more rows than a block.
BLOCK_BYTES = 1 << 28

LEAST_BLOCK = 1 << 14  # minimum rows of a block: fewer would leave threads idle
TILE = 8  # consecutive words of a mask that are written at once: a cache line


class MaskBlock(NamedTuple):
    """Consecutive rows of a table."""

    first: int  # their first row
    rows: Words  # (W,): all rows, as words of bits (`gputree.bits`)
    masks: Words  # (U, W): those that satisfy each condition


class _Tests(NamedTuple):
    """The conditions of one column, by their places among all."""

    feature: int
    threshold: Floats  # (T,): ascending, all different
    # (T,): the conditions "<=" and ">" of each threshold; -1 where there is none
    below: Int64s
    above: Int64s
    # (C + 1,): category c is listed by the conditions ``listed[begin[c] : begin[c + 1]]``
    begin: Int64s
    listed: Int64s
    present: list[int]
    missing: list[int]


def groups(rules: Rules, n_rows: int) -> Iterator[tuple[int, int]]:
    """Iterate over groups of consecutive rules whose masks fit `BLOCK_BYTES` together.

    Yields the begin and end of each group. A condition's mask is made once for a group, however
    often it is used; neighbours in a tree share most conditions.
    """
    most = BLOCK_BYTES * 8 // max(n_rows, 1)
    ends = _ends(rules.begin, rules.condition, len(rules.conditions), most)
    yield from zip([0, *ends.tolist()], ends.tolist(), strict=False)


@kernel
def _ends(begin: Int64s, condition: Int64s, n_conditions: int, most: int) -> Int64s:
    """Ends of groups of at least one rule, and of at most `most` different conditions."""
    last = np.full(n_conditions, -1, np.int64)  # group that has a condition
    ends = np.empty(begin.size - 1, np.int64)
    group, size, first = 0, 0, 0  # `first` is the first rule of the group
    for rule in range(begin.size - 1):
        news = 0
        for i in range(begin[rule], begin[rule + 1]):
            if last[condition[i]] != group:
                news += 1
        if size + news > most and rule > first:
            ends[group] = rule
            group, size, first = group + 1, 0, rule
        for i in range(begin[rule], begin[rule + 1]):
            if last[condition[i]] != group:
                last[condition[i]] = group
                size += 1
    if begin.size > 1:
        ends[group] = begin.size - 1
        group += 1
    return ends[:group]


class Masks:
    """The rows of a table (n, d) that satisfy each of some different conditions."""

    def __init__(self, values: Values, conditions: Sequence[Condition]) -> None:
        self._values = values
        by_feature: dict[int, list[int]] = {}
        for place, condition in enumerate(conditions):
            by_feature.setdefault(condition.feature, []).append(place)
        self._tests = [
            _tests(feature, places, conditions) for feature, places in by_feature.items()
        ]
        self._n_conditions = len(conditions)
        height = BLOCK_BYTES * 8 // max(len(conditions), 1) // WORD * WORD
        self.height = max(height, LEAST_BLOCK)
        require_memory(
            len(conditions) * min(self.height, values.shape[0]) / 8,
            "Holding which rows satisfy which conditions",
            "Prune the tree, or limit its depth: it has too many leaves for rules to be read.",
        )
        self._kept: MaskBlock | None = None

    def __iter__(self) -> Iterator[MaskBlock]:
        """Iterate over the blocks in order; a single one is cached."""
        if self._kept is None and self._values.shape[0] <= self.height:
            self._kept = self.block(0)
        if self._kept is not None:
            yield self._kept
            return
        for first in range(0, self._values.shape[0], self.height):
            yield self.block(first)

    def block(self, first: int) -> MaskBlock:
        """Make the block that begins with row `first`."""
        values = self._values[first : first + self.height]
        n = values.shape[0]
        masks = np.zeros((self._n_conditions, -(-n // WORD)), np.uint64)
        for tests in self._tests:
            _fill(tests, np.ascontiguousarray(values[:, tests.feature]), masks)
        return MaskBlock(first, pack(np.ones(n, np.bool_)), masks)


def _tests(feature: int, places: list[int], conditions: Sequence[Condition]) -> _Tests:
    """Collect the conditions on one column."""
    by_kind: dict[str, list[int]] = {kind: [] for kind in ("<=", ">", "in", "present", "missing")}
    for place in places:
        by_kind[conditions[place].kind].append(place)
    threshold = np.unique(
        [conditions[place].threshold for kind in ("<=", ">") for place in by_kind[kind]]
    )
    below, above = (_side(threshold, by_kind[kind], conditions) for kind in ("<=", ">"))
    pairs = [(code, place) for place in by_kind["in"] for code in conditions[place].codes]
    code, listed = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
    begin = np.append(0, np.cumsum(np.bincount(code)))
    return _Tests(
        feature, threshold, below, above, begin, listed, by_kind["present"], by_kind["missing"]
    )


def _side(threshold: Floats, places: list[int], conditions: Sequence[Condition]) -> Int64s:
    """Place of the condition of each threshold, of one kind; -1 where there is none."""
    found = np.full(threshold.size, -1, np.int64)
    found[np.searchsorted(threshold, [conditions[place].threshold for place in places])] = places
    return found


def _fill(tests: _Tests, column: Values, masks: Words) -> None:
    """Write the rows that satisfy the conditions of a column to empty masks."""
    known = ~np.isnan(column)
    words = pack(known)
    masks[tests.present] = words
    masks[tests.missing] = pack(~known)
    if tests.threshold.size:
        # number of thresholds below a value, in float64 for any column
        above = np.searchsorted(tests.threshold, column.astype(np.float64))
        above[~known] = tests.threshold.size
        _fill_sides(above, words, tests.below, tests.above, masks)
    if tests.listed.size:
        codes = np.where(known, column, -1.0).astype(np.int64)
        _fill_lists(codes, tests.begin, tests.listed, masks)


@kernel
def _fill_sides(place: Int64s, known: Words, below: Int64s, above: Int64s, masks: Words) -> None:
    """Fill the masks of `<=` and `>` conditions by cumulative OR over sorted thresholds."""
    some = np.zeros((below.size + 1, TILE), np.uint64)
    met = np.zeros(TILE, np.uint64)
    for first in range(0, known.size, TILE):
        width = min(TILE, known.size - first)
        some[:] = np.uint64(0)
        met[:] = np.uint64(0)
        for row in range(first * WORD, min((first + width) * WORD, place.size)):
            some[place[row], row // WORD - first] |= np.uint64(1) << np.uint64(row % WORD)
        for t in range(below.size):
            for j in range(width):
                met[j] |= some[t, j]
            if below[t] >= 0:
                for j in range(width):
                    masks[below[t], first + j] = met[j]
            if above[t] >= 0:
                for j in range(width):
                    masks[above[t], first + j] = known[first + j] & ~met[j]


@kernel
def _fill_lists(codes: Int64s, begin: Int64s, listed: Int64s, masks: Words) -> None:
    """Add each row of a category to the masks of the conditions that list it."""
    for row in range(codes.size):
        if 0 <= codes[row] < begin.size - 1:
            bit = np.uint64(1) << np.uint64(row % WORD)
            for i in range(begin[codes[row]], begin[codes[row] + 1]):
                masks[listed[i], row // WORD] |= bit
