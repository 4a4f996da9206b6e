"""Random numbers of a forest: hashes of (seed, tree, place), never a stream.

A number depends neither on the trees grown before nor on the thread that draws it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from gputree.arithmetic.bits import mix
from gputree.base.dtypes import Floats, Int32s, Int64s
from gputree.compilation import kernel
from gputree.errors import InputError, warn

# Constants that draws and permutations of rows are hashed with, in addition to the tree's key.
_ROWS = np.uint64(0x626F6F7473747261)
_ORDER = np.uint64(0x7065726D75746174)

WITHOUT_DRAWS = (
    "`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set "
    "`max_sample=None`."
)

# Maximum number of rows that a tree draws: they are counted in 32 bits.
MOST_DRAWS = np.iinfo(np.int32).max


class Strata(NamedTuple):
    """Classes whose rows are drawn apart, and the number of draws of each."""

    rows: Int64s  # (n,) rows of the first class, of the second, ...
    ends: Int64s  # (K + 1,) number of rows of all classes before each, and of all
    draws: Int64s  # (K,)

    @classmethod
    def of(cls, target: Int64s, draws: Int64s) -> Strata:
        """Strata of class codes (n,), with the number of draws of each class."""
        ends = np.cumsum([0, *np.bincount(target, minlength=draws.size)])
        return cls(np.argsort(target, kind="stable"), ends, draws)


class Draws(NamedTuple):
    """Draws of the rows that the trees of a forest are grown on."""

    seed: int
    n: int  # rows of the table
    draws: int | None  # rows drawn for each tree; None where every tree has all rows
    # (n,) rows are drawn in proportion to it; empty where a file has neither it nor `strata`
    weight: Floats | None
    strata: Strata | None = None  # None where rows are not drawn by class


class Origin(NamedTuple):
    """Origin of a tree's rows: the draws of its forest, and its number there."""

    of: Draws
    number: int

    @property
    def key(self) -> tuple[int, int]:
        """Seed and number that the tree's draws are hashed with."""
        return self.of.seed, self.number


@lru_cache(1 << 12)  # used twice for each tree
def tree_key(seed: int, tree: int) -> np.uint64:
    """Key that the draws of a tree are hashed with."""
    with np.errstate(over="ignore"):
        key: np.uint64 = mix(mix(np.uint64(seed)) + np.uint64(tree))
    return key


def tree_seed(seed: int, tree: int) -> int:
    """`random_state` of a tree of the forest."""
    return int(tree_key(seed, tree) >> np.uint64(33))


def bootstrap_counts(
    seed: int, tree: int, n: int, draws: int, weight: Floats | None = None
) -> Int32s:
    """Number of times that each of n rows is drawn, of `draws` with replacement.

    Rows are drawn in proportion to their weights, or evenly where `weight` is None.
    """
    return part_counts(seed, tree, n, draws, (0, n), None if weight is None else ends_of(weight))


def even_counts(seed: int, trees: Sequence[int], n: int, draws: int) -> Int32s:
    """Number of times that each of n rows is drawn evenly, for each tree: of shape (T, n)."""
    counts = np.zeros((len(trees), n), np.int32)
    keys = np.array([tree_key(seed, tree) for tree in trees], np.uint64) ^ _ROWS
    count_draws(keys, draws, n, 0, counts)
    return counts


def class_counts(seed: int, tree: int, strata: Strata) -> Int32s:
    """Number of times that each row is drawn, evenly within its class."""
    counts = np.zeros(strata.rows.size, np.int32)
    with np.errstate(over="ignore"):
        key = tree_key(seed, tree) ^ _ROWS
        for k, draws in enumerate(strata.draws.tolist()):
            rows = strata.rows[strata.ends[k] : strata.ends[k + 1]]
            drawn = np.zeros((1, rows.size), np.int32)
            count_draws(np.array([mix(key + np.uint64(k))]), draws, rows.size, 0, drawn)
            counts[rows] = drawn[0]
    return counts


def count_drawn(seed: int, tree: int, n: int, draws: int) -> int:
    """Number of different rows among uniform draws of n, in memory for the draws alone."""
    with np.errstate(over="ignore"):
        key = tree_key(seed, tree) ^ _ROWS
        hashes = mix(key + np.arange(draws, dtype=np.uint64)) >> np.uint64(32)
        return int(np.unique(hashes * np.uint64(n) >> np.uint64(32)).size)


def ends_of(weight: Floats) -> Floats:
    """Cumulative weights of rows from 0 to 1, of shape (n + 1,)."""
    ends = np.cumsum(weight / weight.sum())
    return np.append(0.0, ends / ends[-1])


def part_counts(
    seed: int,
    tree: int,
    n: int,
    draws: int,
    rows: tuple[int, int],
    ends: Floats | None,
) -> Int32s:
    """Number of times that rows ``begin .. end`` of n are drawn; `ends` are their `ends_of`."""
    counts = np.zeros(rows[1] - rows[0], np.int32)
    key = tree_key(seed, tree) ^ _ROWS
    if ends is None:
        count_draws(np.array([key]), draws, n, rows[0], counts[None])
    elif counts.size:
        count_weighted_draws(key, draws, ends, counts)
    return counts


def permutation(seed: int, tree: int, column: int, n: int) -> Int64s:
    """Draw a permutation of n rows, independently for each tree and column."""
    order = np.arange(n)
    with np.errstate(over="ignore"):
        shuffle(mix((tree_key(seed, tree) ^ _ORDER) + np.uint64(column)), order)
    return order


@kernel
def shuffle(key: np.uint64, order: Int64s) -> None:
    """Permute in place, from the last on: each changes places with one up to it (Durstenfeld)."""
    half = np.uint64(32)
    for i in range(order.size - 1, 0, -1):
        j = np.int64(((mix(key + np.uint64(i)) >> half) * np.uint64(i + 1)) >> half)
        order[i], order[j] = order[j], order[i]


@kernel
def count_draws(keys: NDArray[np.uint64], draws: int, n: int, first: int, counts: Int32s) -> None:
    """Count rows drawn evenly of n: the high half of a hash times their number, by 2**32.

    Each of T `keys` draws for one of T trees; `counts` (T, m) are those of rows from `first` on.
    """
    half = np.uint64(32)
    rows = np.uint64(n)
    for t in range(keys.size):
        for i in range(draws):
            place = np.int64(((mix(keys[t] + np.uint64(i)) >> half) * rows) >> half) - first
            if 0 <= place < counts.shape[1]:
                counts[t, place] += 1


@kernel
def count_weighted_draws(key: np.uint64, draws: int, ends: Floats, counts: Int32s) -> None:
    """Count rows drawn by weight, those that ``ends[i] .. ends[i + 1]`` belong to."""
    for i in range(draws):
        x = np.float64(mix(key + np.uint64(i)) >> np.uint64(11)) * 2.0**-53
        if ends[0] <= x < ends[-1]:
            counts[np.searchsorted(ends, x, "right") - 1] += 1


def draw_count(forest: Any, n: int, total: float) -> int | None:
    """Number of rows that a tree draws of n with the total weight `total`, as in scikit-learn."""
    most = forest.max_samples
    if not forest.bootstrap:
        if most is not None:
            raise InputError(WITHOUT_DRAWS)
        return None
    if most is None:
        return n
    if isinstance(most, bool):
        raise InputError(
            f"max_samples={most} of {type(forest).__name__}: give a number of rows, or a fraction."
        )
    draws = int(most) if isinstance(most, Integral) else max(int(most * total), 1)
    if draws > MOST_DRAWS:
        raise InputError(
            f"{type(forest).__name__} draws {draws:.4g} rows for a tree, with max_samples={most} "
            f"and a total weight of {total:.4g}: at most {MOST_DRAWS} can be drawn."
        )
    if not isinstance(most, Integral) and draws < max(10, n ** (1 / 3)):
        warn(
            f"{type(forest).__name__} draws {draws} rows for a tree, with max_samples={most} as a "
            "fraction of the total weight: give the number of rows, as an integer."
        )
    return draws


def is_by_class(max_samples: Any) -> bool:
    """Return whether rows are drawn by class."""
    return isinstance(max_samples, (str, Mapping))


def class_draws(forest: Any, target: Int64s) -> Int64s:
    """Number of rows that a tree draws of each class."""
    most, name = forest.max_samples, type(forest).__name__
    if not forest.bootstrap:
        raise InputError(WITHOUT_DRAWS)
    labels = forest.classes_.tolist()
    if isinstance(most, str):  # "balanced"
        return np.full(len(labels), np.bincount(target).min())
    if set(most) != set(labels):
        raise InputError(
            f"max_samples of {name} must have a number of rows for each class of y, {labels}, and "
            f"for no other; got {dict(most)}."
        )
    draws = [most[label] for label in labels]
    whole = all(isinstance(d, Integral) and not isinstance(d, bool) for d in draws)
    if not whole or not all(1 <= d <= MOST_DRAWS for d in draws):
        raise InputError(
            f"max_samples of {name} must have numbers of rows by class, integers from 1 on; got "
            f"{dict(most)}."
        )
    return np.array(draws, np.int64)


def seed_of(random_state: Any) -> int:
    """Seed that a forest's draws are hashed with."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
