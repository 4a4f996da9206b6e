"""Which rows rules cover: lists of rows by rule, and of rules by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree._memory import require_memory
from gputree.compilation import kernel
from gputree.dtypes import ROW
from gputree.rules.bits import WORD, Words, count_bits, lowest_bit, meet_all
from gputree.rules.conditions import Rules
from gputree.rules.masks import Masks


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
        return from_lists([self.of(rule) for rule in rules.tolist()], self.n_rows)


def coverage(rules: Rules, masks: Masks, n_rows: int) -> Coverage:
    """The rows of a table that rules cover.

    Raises
    ------
    MemoryError
        There are clearly more pairs of a rule and a row than memory holds.
    """
    parts: list[list[NDArray[np.int32]]] = [[] for _ in range(rules.label.size)]
    for block in masks:
        size = np.zeros(rules.label.size, np.int64)
        _count(block.rows, block.masks, rules.begin, rules.condition, size)
        _require(int(size.sum()))
        rows = np.empty(int(size.sum()), ROW)
        _list(block.rows, block.masks, rules.begin, rules.condition, block.first, rows)
        for part, found in zip(parts, np.split(rows, np.cumsum(size)[:-1]), strict=False):
            part.append(found)
    return from_lists([np.concatenate([np.empty(0, ROW), *part]) for part in parts], n_rows)


def from_lists(lists: list[NDArray[np.int32]], n_rows: int) -> Coverage:
    """From the rows that each rule covers."""
    sizes = np.array([part.size for part in lists], np.int64)
    _require(int(sizes.sum()))
    rows = np.concatenate([np.empty(0, ROW), *lists])
    rule_begin = np.append(0, np.cumsum(sizes))
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
    for rule in range(size.size):
        for w in range(rows.size):
            size[rule] += count_bits(meet_all(rows[w], masks, w, begin, condition, rule))


@kernel
def _list(
    rows: Words,
    masks: Words,
    begin: NDArray[np.int64],
    condition: NDArray[np.int64],
    first: int,
    out: NDArray[np.int32],
) -> None:
    place = 0
    for rule in range(begin.size - 1):
        for w in range(rows.size):
            met = meet_all(rows[w], masks, w, begin, condition, rule)
            while met != 0:
                out[place] = first + w * WORD + lowest_bit(met)
                place += 1
                met &= met - np.uint64(1)


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
