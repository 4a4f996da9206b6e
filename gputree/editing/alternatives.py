"""The best split of every column at one node, next to the split in use; histograms of columns."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import SUBSET_SPLIT, THRESHOLD_SPLIT, Bools, Floats, Int64s, Weight
from gputree.base.optional import require
from gputree.base.texts import amount, tabled
from gputree.base.threads import even_spans, run
from gputree.estimators.subtrees import Candidate
from gputree.export.describe import describe
from gputree.export.model import model_of
from gputree.tree import Tree

# Sides of a row.
SECOND, FIRST, UNKNOWN = 0, 1, 2

# Rows whose values stay in the cache while every split is looked at.
BLOCK_ROWS = 1 << 12
# Cells that a thread takes at least.
FEW_CELLS = 1 << 16
# Splits compared at a time, which bounds the memory for their sides.
GROUP = 16


class Agreement(NamedTuple):
    """Agreement of a split with the one in use; see `Alternative`."""

    share: float | None = None
    adjusted: float | None = None
    is_reversed: bool = False


def agreements(
    values: NDArray,
    rows: Int64s,
    weight: Weight,
    used: tuple[Tree, int],
    stumps: Sequence[Tree],
    n_threads: int,
) -> list[Agreement]:
    """Agreement of each stump with the split in use, a node of a tree.

    Rows that lack the value of the tested column do not count, those that lack the other value
    disagree. The adjusted agreement is None where the split in use sends all rows to one side, both
    are where one of the splits is not binary.
    """
    found = [Agreement()] * len(stumps)
    if used[0].n_children[used[1]] != 2:
        return found
    (base,) = sides_of(values, rows, [used], n_threads)
    is_known, is_first = base != UNKNOWN, base == FIRST
    total, first = _sum(is_known, weight), _sum(is_first, weight)
    most = max(first, total - first) / total

    def agree(mine: NDArray[np.uint8]) -> Agreement:
        both = is_known & (mine != UNKNOWN)
        same = _sum(both & (mine == base), weight)
        other = _sum(both, weight) - same
        share = max(same, other) / total
        adjusted = (share - most) / (1.0 - most) if most < 1.0 else None
        return Agreement(share, adjusted, other > same)

    binary = [i for i, stump in enumerate(stumps) if stump.n_children[0] == 2]
    for begin in range(0, len(binary), GROUP):
        group = binary[begin : begin + GROUP]
        sides = sides_of(values, rows, [(stumps[i], 0) for i in group], n_threads)
        for i, one in zip(group, run(n_threads, agree, [(s,) for s in sides]), strict=True):
            found[i] = one
    return found


def _sum(is_counted: Bools, weight: Weight) -> float:
    return float(np.count_nonzero(is_counted) if weight is None else weight[is_counted].sum())


def sides_of(
    values: NDArray, rows: Int64s, splits: list[tuple[Tree, int]], n_threads: int
) -> NDArray[np.uint8]:
    """Side of each row by each binary split, a node of a tree: (splits, rows)."""
    out = np.empty((len(splits), rows.size), np.uint8)

    def assign(first: int, last: int) -> None:
        for begin in range(first, last, BLOCK_ROWS):
            part = slice(begin, min(begin + BLOCK_ROWS, last))
            for side, (tree, node) in zip(out[:, part], splits, strict=True):
                column = values[rows[part], tree.feature[node]]
                if tree.split_kind[node] == THRESHOLD_SPLIT:
                    is_first = column <= tree.threshold[node]
                else:
                    is_first = np.isin(column, tree.categories(int(tree.first_child[node])))
                side[:] = np.where(np.isnan(column), UNKNOWN, is_first)

    run(n_threads, assign, even_spans(rows.size, len(splits), n_threads, FEW_CELLS))
    return out


@dataclass(frozen=True)
class Alternative:
    """The best split of one column at a node.

    Attributes
    ----------
    column : str
    condition : str
        That of the first child, such as ``income <= 4000``; of a multiway split, the column.
    threshold : float or None
        None for categories, and where only missing values go to the second child.
    categories : list or None
        Those that go to the first child, where categories are split into two sets; None where each
        has a branch.
    gain : float
        Decrease of impurity per unit of the node's weight.
    gain_ratio : float or None
        By which C4.5 compares columns; None for other trees.
    is_admitted : bool
        False where C4.5's rules exclude the column (the average gain, say).
    is_used : bool
        True for the column that the node tests now.
    rows : list of int
        Training rows of each child.
    statistics : list of lists of float
        Class weights of each child, or its mean target.
    missing : int
        Ordinal of the child that takes missing values; negative where they go to all, or stop.
    agreement : float or None
        Fraction of the weight of the rows, among those with a value of the tested column, that go
        to the same side as by the split in use; None for multiway splits and at leaves.
    adjusted : float or None
        `agreement` relative to that of sending all rows to the larger side, as rpart's ``adj``.
    is_reversed : bool
        True where the agreement is that of the first child with the second one of the split in use.
    """

    column: str
    condition: str
    threshold: float | None
    categories: list[Any] | None
    gain: float
    gain_ratio: float | None
    is_admitted: bool
    is_used: bool
    rows: list[int]
    statistics: list[list[float]]
    missing: int
    agreement: float | None
    adjusted: float | None
    is_reversed: bool


class Alternatives(list[Alternative]):
    """Alternatives of a node: a list that prints as a table, that which growth prefers first."""

    def __init__(self, node: int, found: list[Alternative]) -> None:
        super().__init__(found)
        self.node = node

    def __repr__(self) -> str:  # that a notebook shows
        return str(self)

    def __str__(self) -> str:
        if not self:
            return f"Node {self.node} has no admissible split.\n"
        has_ratio = self[0].gain_ratio is not None
        names = ["split", "gain", *["gain ratio"] * has_ratio, "rows", "agreement", "adjusted", ""]
        lines = [names]
        for one in self:
            agreed = [] if one.agreement is None else [one.agreement, one.adjusted]
            cells = [f"{value:.3f}" for value in agreed if value is not None]
            notes = ["in use"] * one.is_used + ["not admitted"] * (not one.is_admitted)
            notes += ["reversed"] * one.is_reversed
            lines.append(
                [
                    one.condition,
                    f"{one.gain:.4g}",
                    *([f"{one.gain_ratio:.4g}"] if has_ratio else []),
                    " / ".join(map(amount, one.rows)),
                    *cells,
                    *["-"] * (2 - len(cells)),
                    ", ".join(notes),
                ]
            )
        return tabled(lines) + "\n"

    def to_frame(self) -> Any:
        """Return a data frame of pandas, one row for each alternative."""
        pandas = require("pandas", "Alternatives.to_frame")
        names = [field.name for field in fields(Alternative)]
        return pandas.DataFrame([asdict(one) for one in self], columns=names)

    def to_json(self) -> str:
        """Return a JSON list of objects with the fields of `Alternative`."""
        return json.dumps([asdict(one) for one in self], ensure_ascii=False)


def alternative(
    described: Any, candidate: Candidate, agreement: Agreement, in_use: int
) -> Alternative:
    """Describe a candidate; `described` is an estimator whose tree is the candidate's stump.

    `in_use` is the column that the node tests now.
    """
    stump = candidate.stump
    words, model = describe(described), model_of(described, only_shown=True, by_costs=True)
    feature = int(stump.feature[0])
    name = words.feature_names[feature]
    is_cut = stump.split_kind[0] == THRESHOLD_SPLIT
    has_subset = stump.split_kind[0] == SUBSET_SPLIT
    threshold = float(stump.threshold[0])
    return Alternative(
        column=name,
        condition=str(words.condition(1)) if is_cut or has_subset else name,
        threshold=threshold if is_cut and np.isfinite(threshold) else None,
        categories=model.words(feature, stump.categories(1)) if has_subset else None,
        gain=float(stump.gain[0]),
        gain_ratio=candidate.gain_ratio,
        is_admitted=candidate.is_admitted,
        is_used=feature == in_use,
        rows=stump.n_rows[1:].tolist(),
        statistics=stump.statistics[1:].tolist(),
        missing=int(stump.missing_child[0]),
        agreement=agreement.share,
        adjusted=agreement.adjusted,
        is_reversed=agreement.is_reversed,
    )


class Counted(NamedTuple):
    """Rows that are counted."""

    values: NDArray[Any]  # (n,), of one column; NaN where missing
    label: Int64s | None  # (n,); None of targets
    weight: Weight  # (n,); None where each is 1
    n_classes: int  # 1 of targets

    def sums(self, place: Int64s, n_places: int) -> tuple[Floats, float]:
        """Weights of the rows at each place, (n_places, n_classes); of those at place -1."""
        cell = place if self.label is None else place * self.n_classes + self.label
        kept = place >= 0
        weight = None if self.weight is None else self.weight[kept]
        sums = np.bincount(cell[kept], weight, n_places * self.n_classes).astype(np.float64)
        return sums.reshape(n_places, self.n_classes), _sum(~kept, self.weight)


def of_ranges(rows: Counted, bins: int) -> dict[str, Any]:
    """Count rows in ranges of equal width; a value at an edge is below it, as at a threshold."""
    low = float(np.fmin.reduce(rows.values, initial=np.inf))
    high = float(np.fmax.reduce(rows.values, initial=-np.inf))
    edges = np.linspace(low, high, bins + 1) if low <= high else np.zeros(bins + 1)
    place = np.searchsorted(edges, rows.values) - 1
    place = np.where(np.isnan(rows.values), -1, place.clip(0, bins - 1))
    weights, missing = rows.sums(place, bins)
    found = {"edges": edges.tolist(), "weights": weights.tolist()}
    return {**found, "missing": missing, "others": 0.0}


def of_categories(rows: Counted, words: NDArray[Any] | None, most: int) -> dict[str, Any]:
    """Count rows of the categories with the largest weights, in the order of their codes."""
    largest = np.fmax.reduce(rows.values, initial=-1)
    n_codes = int(largest) + 1 if words is None else len(words)
    place = np.where(np.isnan(rows.values), -1.0, rows.values).astype(np.int64)
    weights, missing = rows.sums(place, n_codes)
    heaviest = np.sort(np.argsort(-weights.sum(axis=1), kind="stable")[:most])
    return {
        "categories": heaviest.tolist() if words is None else words[heaviest].tolist(),
        "weights": weights[heaviest].tolist(),
        "missing": missing,
        "others": float(weights.sum() - weights[heaviest].sum()),
    }
