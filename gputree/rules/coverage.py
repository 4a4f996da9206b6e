"""Which rows rules cover: lists of rows by rule, and of rules by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._memory import require_memory
from gputree.bits import SPAN, WORD, Words, count_bits, lowest_bit
from gputree.compilation import inner, kernel
from gputree.dtypes import ROW
from gputree.rules.conditions import Rules
from gputree.rules.masks import Masks, groups


class Coverage(NamedTuple):
    """The rows that each of R rules covers, and the rules that cover each of n rows.

    Attributes
    ----------
    rule_begin : int64 array of shape (R + 1,)
        Rule r covers ``rows[rule_begin[r] : rule_begin[r + 1]]``, ascending.
    rows : int32 array of shape (P,)
    row_begin : int64 array of shape (n + 1,)
        Row i is covered by ``rules[row_begin[i] : row_begin[i + 1]]``, ascending.
    rules : int32 array of shape (P,)
    """

    rule_begin: NDArray[np.int64]
    rows: NDArray[np.int32]
    row_begin: NDArray[np.int64]
    rules: NDArray[np.int32]

    @property
    def n_rules(self) -> int:
        return self.rule_begin.size - 1

    @property
    def n_rows(self) -> int:
        return self.row_begin.size - 1

    def of(self, rule: int) -> NDArray[np.int32]:
        """The rows that one rule covers."""
        return self.rows[self.rule_begin[rule] : self.rule_begin[rule + 1]]

    @property
    def rules_of_pairs(self) -> NDArray[np.int64]:
        """The rule of each of `rows`."""
        return np.repeat(np.arange(self.n_rules), np.diff(self.rule_begin))

    @property
    def first_rules(self) -> NDArray[np.int64]:
        """The first rule that covers each row; R where none does."""
        found = np.full(self.n_rows, self.n_rules, np.int64)
        covered = np.flatnonzero(np.diff(self.row_begin))
        found[covered] = self.rules[self.row_begin[covered]]
        return found

    def take(self, rules: NDArray[np.int64]) -> Coverage:
        """That of some rules, in their order."""
        begin = np.append(0, np.cumsum(np.diff(self.rule_begin)[rules]))
        _require(int(begin[-1]))
        rows = np.empty(int(begin[-1]), ROW)
        _gather(self.rule_begin, self.rows, rules, rows)
        return _transposed(begin, rows, self.n_rows)


def coverage(rules: Rules, values: NDArray[np.floating]) -> Coverage:
    """The rows of a table that rules cover.

    Parameters
    ----------
    rules : Rules
    values : float array of shape (n, d)

    Raises
    ------
    MemoryError
        There are clearly more pairs of a rule and a row than memory holds.
    """
    n = values.shape[0]
    sizes, parts, total = [np.empty(0, np.int64)], [np.empty(0, ROW)], 0
    for begin, end in groups(rules, n):
        own = rules.take(np.arange(begin, end))
        masks, size = Masks(values, own.conditions), np.zeros(end - begin, np.int64)
        for block in masks:
            _count(block.rows, block.masks, own.begin, own.condition, size)
        total += int(size.sum())
        _require(total)
        place, rows = np.cumsum(size) - size, np.empty(int(size.sum()), ROW)
        for block in masks:
            _list(block.rows, block.masks, own.begin, own.condition, place, block.first, rows)
        sizes.append(size)
        parts.append(rows)
    rule_begin = np.append(0, np.cumsum(np.concatenate(sizes)))
    return _transposed(rule_begin, np.concatenate(parts), n)


def _transposed(rule_begin: NDArray[np.int64], rows: NDArray[np.int32], n_rows: int) -> Coverage:
    """From the rows that each rule covers."""
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
def _count(
    rows: Words,
    masks: Words,
    begin: NDArray[np.int64],
    condition: NDArray[np.int64],
    size: NDArray[np.int64],
) -> None:
    met = np.empty(SPAN, np.uint64)
    for first in range(0, rows.size, SPAN):
        width = min(SPAN, rows.size - first)
        for rule in range(size.size):
            if _meet(rows, masks, first, width, begin[rule], begin[rule + 1], condition, met):
                for j in range(width):
                    size[rule] += count_bits(met[j])


@kernel
def _list(
    rows: Words,
    masks: Words,
    begin: NDArray[np.int64],
    condition: NDArray[np.int64],
    place: NDArray[np.int64],
    offset: int,
    out: NDArray[np.int32],
) -> None:
    """Write the rows of each rule from its place on, which moves on."""
    met = np.empty(SPAN, np.uint64)
    for first in range(0, rows.size, SPAN):
        width = min(SPAN, rows.size - first)
        for rule in range(begin.size - 1):
            if not _meet(rows, masks, first, width, begin[rule], begin[rule + 1], condition, met):
                continue
            for j in range(width):
                while met[j] != 0:
                    out[place[rule]] = offset + (first + j) * WORD + lowest_bit(met[j])
                    place[rule] += 1
                    met[j] &= met[j] - np.uint64(1)


@inner
def _meet(
    rows: Words,
    masks: Words,
    first: int,
    width: int,
    begin: int,
    end: int,
    condition: NDArray[np.int64],
    met: Words,
) -> bool:
    """Find the rows of some words that satisfy all conditions of a rule; if there are any."""
    for j in range(width):
        met[j] = rows[first + j]
    for i in range(begin, end):
        mask = masks[condition[i], first : first + width]
        some = np.uint64(0)
        for j in range(width):  # without a branch: several words at a time
            met[j] &= mask[j]
            some |= met[j]
        if some == 0:
            return False
    return True


@kernel
def _gather(
    rule_begin: NDArray[np.int64],
    rows: NDArray[np.int32],
    rules: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    place = 0
    for rule in rules:
        for i in range(rule_begin[rule], rule_begin[rule + 1]):
            out[place] = rows[i]
            place += 1


@kernel
def _transpose(
    rule_begin: NDArray[np.int64],
    rows: NDArray[np.int32],
    place: NDArray[np.int64],
    rules: NDArray[np.int32],
) -> None:
    for rule in range(rule_begin.size - 1):
        for i in range(rule_begin[rule], rule_begin[rule + 1]):
            rules[place[rows[i]]] = rule
            place[rows[i]] += 1
