"""Rows covered by rules: lists of rows by rule, and of rules by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputree._memory import require_memory
from gputree.bits import SPAN, WORD, Words, count_bits, lowest_bit
from gputree.compilation import inner, kernel
from gputree.dtypes import ROW, Int32s, Int64s, Values
from gputree.rules.conditions import Rules
from gputree.rules.masks import MaskBlock, Masks, groups


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
        begin = np.append(0, np.cumsum(np.diff(self.rule_begin)[rules]))
        _require(int(begin[-1]))
        rows = np.empty(int(begin[-1]), ROW)
        _gather(self.rule_begin, self.rows, rules, rows)
        return _transposed(begin, rows, self.n_rows)


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
    row_begin = np.append(0, np.cumsum(np.bincount(rows, minlength=n_rows)))
    rules = np.empty(rows.size, np.int32)
    _transpose(rule_begin, rows, row_begin[:-1].copy(), rules)
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


@kernel
def _gather(rule_begin: Int64s, rows: Int32s, rules: Int64s, out: Int32s) -> None:
    place = 0
    for rule in rules:
        for i in range(rule_begin[rule], rule_begin[rule + 1]):
            out[place] = rows[i]
            place += 1


@kernel
def _transpose(rule_begin: Int64s, rows: Int32s, place: Int64s, rules: Int32s) -> None:
    for rule in range(rule_begin.size - 1):
        for i in range(rule_begin[rule], rule_begin[rule + 1]):
            rules[place[rows[i]]] = rule
            place[rows[i]] += 1
