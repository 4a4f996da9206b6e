"""Interaction constraints as a user writes them: groups of columns that may be used together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.interactions import Interactions, interactions_of, pairs_of
from gputree.base.texts import hint
from gputree.errors import InputError


def interactions(estimator: Any, d: int) -> Interactions | None:
    """The sets of columns that splits of an estimator lead to; None without constraints.

    Parameters
    ----------
    estimator : estimator whose table of d columns is checked
        Its ``interaction_cst`` is None, "pairwise", "no_interactions" or a sequence of groups of
        indices or names of columns. Columns in no group are one more.

    Raises
    ------
    ValueError
        Groups are no sequences, or have other than indices and names of columns.
    """
    if isinstance(estimator.interaction_cst, str):
        return _named(estimator.interaction_cst, d)
    groups = _groups(estimator, d)
    return None if groups is None else interactions_of(groups)


@lru_cache(maxsize=8)  # pairs are many, and every tree of a forest has the same
def _named(name: str, d: int) -> Interactions:
    """The sets of columns of groups that have a name."""
    if name == "pairwise":
        return pairs_of(d)
    return interactions_of(tuple(frozenset({f}) for f in range(d)))


def _groups(estimator: Any, d: int) -> tuple[frozenset[int], ...] | None:
    given = estimator.interaction_cst
    if given is None:
        return None
    names = {name: f for f, name in enumerate(getattr(estimator, "feature_names_in_", ()))}
    if not all(map(_is_group, given)):
        raise InputError(
            "Interaction constraints must be a sequence of tuples or lists, got: "
            f"{estimator.interaction_cst!r}."
        )
    groups = [frozenset(names.get(f, f) for f in group) for group in given]
    for f in chain(*given):
        if isinstance(f, (bool, np.bool_)) and f not in names:
            raise InputError(
                f"Interaction constraints have {f!r}: a group lists columns by name or index, and "
                "is no mask of booleans."
            )
    for f in chain(*groups):
        if not (isinstance(f, Integral) and 0 <= int(f) < d):
            raise InputError(
                f"Interaction constraints have {f!r}, which is no column: groups are of names or "
                f"of indices from 0 to {d - 1}.{hint(str(f), map(str, names))}"
            )
    rest = frozenset(range(d)).difference(*groups)
    return (*groups, rest) if rest else tuple(groups)


def _is_group(group: Any) -> bool:
    iterable = isinstance(group, Iterable) and not isinstance(group, str)
    return iterable and all(isinstance(f, Hashable) for f in group)


def within(estimator: Any, d: int, columns: NDArray[np.intp]) -> list[list[int]] | str | None:
    """The groups of an estimator over d columns, as places in some `columns` of these."""
    if isinstance(estimator.interaction_cst, str):
        return str(estimator.interaction_cst)  # of some columns, the same groups are all pairs
    groups = _groups(estimator, d)
    if groups is None:
        return None
    return [np.flatnonzero(np.isin(columns, list(group))).tolist() for group in groups]
