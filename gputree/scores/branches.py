"""Branches of each column of a table: one per category, or per range between cuts of numbers.

kind of column              numeric=         branches
categories                                   one a category
numbers                     "threshold"      x <= t and x > t, for the t of the highest gain
                            "mdl"            the ranges between the cuts that pay for themselves
                            "distinct"       one a value
rows without a value                         one more, in every case
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from gputree.backends.arrays import missing_columns, take_column
from gputree.backends.devices import resolve_device
from gputree.base.dtypes import Bools, Floats, Values
from gputree.base.threads import n_threads, run
from gputree.columns import Columns
from gputree.discretization.cut_points import MdlRule, cut_values, new_mdl_task
from gputree.errors import InputError
from gputree.estimators.coded_table import read_whole
from gputree.inputs.labels import Codes
from gputree.inputs.tables import Table
from gputree.scores.targets import Labels, Target

Numeric = Literal["threshold", "mdl", "distinct"]


class Branched(NamedTuple):
    """A column's branches: statistics of the target, cuts, and number of missing values."""

    parts: Any
    cuts: Floats  # none for categories
    missing: int  # rows


class ScoredTable(NamedTuple):
    """The rows that are scored, and the device and threads for that."""

    rows: Table
    missing: Bools  # (d,): columns that may have missing values
    device: str
    n_threads: int

    @property
    def nominal(self) -> Bools:
        """Columns of categories."""
        return self.rows.columns.nominal

    def of(self, target: Target) -> ScoredTable:
        """Return the rows that `target` has."""
        n = self.rows.shape[0]
        if target.given != n:
            raise InputError(
                f"Found input variables with inconsistent numbers of samples: [{n}, {target.given}]"
            )
        taken = target.rows
        return self if taken is None else self._replace(rows=self.rows.take(taken))


def read_table(
    caller: str, X: Any, categorical_features: Any, device: str, n_jobs: int | None
) -> ScoredTable:
    """Read a table as the estimators do; `caller` is named in errors."""
    threads = n_threads(n_jobs)
    rows = read_whole(caller, X, categorical_features, device)
    missing = missing_columns(rows.stored, threads)
    return ScoredTable(rows, missing, rows.device or resolve_device(device), threads)


def scores_of(
    table: ScoredTable, target: Target, numeric: Numeric, score: Callable[[Any], float]
) -> Floats:
    """Apply `score` to the statistics of the target in the branches of each column."""
    return np.array([score(column.parts) for column in branch_columns(table, target, numeric)])


def branch_columns(table: ScoredTable, target: Target, numeric: Numeric) -> list[Branched]:
    """Return the branches of every column, over the rows that the target has."""
    table, d = table.of(target), table.rows.shape[1]
    side_by_side = table.device == "cpu" and d >= table.n_threads
    columns = [(table._replace(n_threads=1) if side_by_side else table, f) for f in range(d)]
    return run(
        table.n_threads if side_by_side else 1,
        lambda column, f: _branch(column, f, target, numeric),
        columns,
    )


def _branch(table: ScoredTable, f: int, target: Target, numeric: Numeric) -> Branched:
    """Return the branches of column f."""
    none = np.empty(0)
    if table.nominal[f]:
        code, missing = _last_if_missing(table.rows.column(f))
        return Branched(target.by_branch(code), none, missing)
    if numeric == "threshold":
        return _by_threshold(table, f, target)
    column = table.rows.column(f)
    if numeric == "distinct":
        codes = np.unique(column, return_inverse=True)[1]
        return Branched(target.by_branch(codes), none, int(np.isnan(column).sum()))
    assert isinstance(target, Labels)
    rule = MdlRule(by_kononenko=False, counts_cuts=False)
    task = new_mdl_task(target.code, target.weight, target.n_labels, rule)
    cuts = cut_values(column, task)
    ranges = np.searchsorted(cuts, column).astype(np.float64)
    ranges[np.isnan(column)] = np.nan
    code, missing = _last_if_missing(ranges)
    return Branched(target.by_branch(code), cuts, missing)


def _last_if_missing(code: Values) -> tuple[Codes, int]:
    """Codes as integers, missing values behind all others, and the number of those."""
    is_missing = np.isnan(code)
    missing = int(np.count_nonzero(is_missing))
    if missing == 0:
        return code.astype(np.int64), 0
    last = np.nanmax(code) + 1 if missing < code.size else 0
    return np.where(is_missing, last, code).astype(np.int64), missing


def _by_threshold(table: ScoredTable, f: int, target: Target) -> Branched:
    """The best cut of a column: the split of a tree of two leaves grown on that column only."""
    rows = table.rows
    alone = Table(take_column(rows.stored, f), Columns.numeric(1), device=rows.device)
    present = without = None
    if table.missing[f]:
        missing = np.isnan(rows.column(f))
        present, without = np.flatnonzero(~missing), np.flatnonzero(missing)
        if present.size == 0:
            whole = target.by_branch(np.zeros(target.size, np.int64))
            return Branched(whole, np.empty(0), without.size)
    alone.rows = rows.rows
    tree = target.grow(alone, present, table.device, table.n_threads)
    cut = tree.threshold[:1] if tree.n_nodes > 1 else np.empty(0)
    return Branched(target.of_cut(tree, without), cut, 0 if without is None else without.size)
