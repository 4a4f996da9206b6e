"""Rows covered by rules: lists of rows by rule, and of rules by row.

They are made from masks of the rows that satisfy each condition, in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from gputree.arithmetic.bits import SPAN, WORD, Words, count_bits, lowest_bit, pack
from gputree.base.dtypes import ROW, Floats, Int32s, Int64s, Values
from gputree.base.memory import require_memory
from gputree.compilation import inner, kernel
from gputree.rules.conditions import Condition, Rules
from gputree.tree.branches import concatenated_ranges

# Maximum bytes of masks in memory at once, where a table has more rows than a block.
BLOCK_BYTES = 1 << 28

LEAST_BLOCK = 1 << 14  # minimum rows of a block: fewer would leave threads idle
TILE = 8  # consecutive words of a mask that are written at once: a cache line


class MaskBlock(NamedTuple):
    """Consecutive rows of a table."""

    first: int  # their first row
    rows: Words  # (W,): all rows, as words of bits (`gputree.arithmetic.bits`)
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
    most, n = BLOCK_BYTES * 8 // max(n_rows, 1), rules.label.size
    first, seen = 0, set[int]()
    for rule in range(n if len(rules.conditions) > most else 0):
        conditions = set(rules.of(rule).tolist())
        if rule > first and len(seen) + len(conditions - seen) > most:
            yield first, rule
            first, seen = rule, set()
        seen |= conditions
    if n:
        yield first, n


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
    present = ~np.isnan(column)
    words = pack(present)
    masks[tests.present] = words
    masks[tests.missing] = pack(~present)
    if tests.threshold.size:
        # number of thresholds below a value, in float64 for any column
        above = np.searchsorted(tests.threshold, column.astype(np.float64))
        above[~present] = tests.threshold.size
        _fill_sides(above, words, tests.below, tests.above, masks)
    if tests.listed.size:
        codes = np.where(present, column, -1.0).astype(np.int64)
        _fill_lists(codes, tests.begin, tests.listed, masks)


@kernel
def _fill_sides(place: Int64s, present: Words, below: Int64s, above: Int64s, masks: Words) -> None:
    """Fill the masks of `<=` and `>` conditions by cumulative OR over sorted thresholds."""
    some = np.zeros((below.size + 1, TILE), np.uint64)
    met = np.zeros(TILE, np.uint64)
    for first in range(0, present.size, TILE):
        width = min(TILE, present.size - first)
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
                    masks[above[t], first + j] = present[first + j] & ~met[j]


@kernel
def _fill_lists(codes: Int64s, begin: Int64s, listed: Int64s, masks: Words) -> None:
    """Add each row of a category to the masks of the conditions that list it."""
    for row in range(codes.size):
        if 0 <= codes[row] < begin.size - 1:
            bit = np.uint64(1) << np.uint64(row % WORD)
            for i in range(begin[codes[row]], begin[codes[row] + 1]):
                masks[listed[i], row // WORD] |= bit


class Coverage(NamedTuple):
    """The rows that each of R rules covers, and the rules that cover each of n rows."""

    # (R + 1,): rule r covers ``rows[rule_begin[r] : rule_begin[r + 1]]``, ascending
    rule_begin: Int64s
    rows: Int32s  # (P,)
    # (n + 1,): row i is covered by ``rules[row_begin[i] : row_begin[i + 1]]``, ascending
    row_begin: Int64s
    rules: Int32s  # (P,)

    @property
    def n_rules(self) -> int:
        return self.rule_begin.size - 1

    @property
    def n_rows(self) -> int:
        return self.row_begin.size - 1

    def of(self, rule: int) -> Int32s:
        """The rows that one rule covers."""
        return self.rows[self.rule_begin[rule] : self.rule_begin[rule + 1]]

    @property
    def rules_of_pairs(self) -> Int64s:
        """The rule of each of `rows`."""
        return np.repeat(np.arange(self.n_rules), np.diff(self.rule_begin))

    @property
    def first_rules(self) -> Int64s:
        """The first rule that covers each row; R where none does."""
        found = np.full(self.n_rows, self.n_rules, np.int64)
        covered = np.flatnonzero(np.diff(self.row_begin))
        found[covered] = self.rules[self.row_begin[covered]]
        return found

    def take(self, rules: Int64s) -> Coverage:
        """Return the coverage of the given rules, in their order."""
        sizes = np.diff(self.rule_begin)[rules]
        begin = np.append(0, np.cumsum(sizes))
        _require(int(begin[-1]))
        places = concatenated_ranges(self.rule_begin[rules], sizes)
        return _transposed(begin, self.rows[places], self.n_rows)


def coverage(rules: Rules, values: Values) -> Coverage:
    """Find the rows of a table (n, d) that rules cover.

    MemoryError if there is clearly not enough memory for the list.
    """
    n = values.shape[0]
    sizes, parts, total = [np.empty(0, np.int64)], [np.empty(0, ROW)], 0
    for begin, end in groups(rules, n):
        some = rules.take(np.arange(begin, end))
        masks, size = Masks(values, some.conditions), np.zeros(end - begin, np.int64)
        for block in masks:
            _count(block, some.begin, some.condition, size)
        total += int(size.sum())
        _require(total)
        place, rows = np.cumsum(size) - size, np.empty(int(size.sum()), ROW)
        for block in masks:
            _list(block, some.begin, some.condition, place, rows)
        sizes.append(size)
        parts.append(rows)
    rule_begin = np.append(0, np.cumsum(np.concatenate(sizes)))
    return _transposed(rule_begin, np.concatenate(parts), n)


def _transposed(rule_begin: Int64s, rows: Int32s, n_rows: int) -> Coverage:
    """Make the coverage from the rows that each rule covers."""
    pairs = np.ones(rows.size, np.bool_), rows, rule_begin
    by_row = csr_array(pairs, shape=(rule_begin.size - 1, n_rows)).tocsc()
    row_begin, rules = by_row.indptr.astype(np.int64), by_row.indices.astype(np.int32)
    return Coverage(rule_begin, rows, row_begin, rules)


def _require(n_pairs: int) -> None:
    require_memory(
        8.0 * n_pairs,
        "Listing the rows that rules cover",
        "Prune the tree, or limit its depth: it has too many leaves for rules to be chosen from.",
    )


@kernel
def _count(block: MaskBlock, begin: Int64s, condition: Int64s, size: Int64s) -> None:
    """Add the number of rows in a block that each rule covers."""
    met = np.empty(SPAN, np.uint64)
    for first in range(0, block.rows.size, SPAN):
        width = min(SPAN, block.rows.size - first)
        for rule in range(size.size):
            if _meet(block, first, width, condition[begin[rule] : begin[rule + 1]], met):
                for j in range(width):
                    size[rule] += count_bits(met[j])


@kernel
def _list(block: MaskBlock, begin: Int64s, condition: Int64s, place: Int64s, out: Int32s) -> None:
    """Write the rows of each rule from its place on, and advance the place."""
    met = np.empty(SPAN, np.uint64)
    for first in range(0, block.rows.size, SPAN):
        width = min(SPAN, block.rows.size - first)
        for rule in range(begin.size - 1):
            if not _meet(block, first, width, condition[begin[rule] : begin[rule + 1]], met):
                continue
            for j in range(width):
                while met[j] != 0:
                    out[place[rule]] = block.first + (first + j) * WORD + lowest_bit(met[j])
                    place[rule] += 1
                    met[j] &= met[j] - np.uint64(1)


@inner
def _meet(block: MaskBlock, first: int, width: int, conditions: Int64s, met: Words) -> bool:
    """Find the rows of some words that satisfy all conditions; return True if there are any."""
    for j in range(width):
        met[j] = block.rows[first + j]
    for condition in conditions:
        mask = block.masks[condition, first : first + width]
        some = np.uint64(0)
        for j in range(width):  # without a branch: several words at a time
            met[j] &= mask[j]
            some |= met[j]
        if some == 0:
            return False
    return True
