"""Nodes of a tree of CART as rpart's ``summary`` describes them, surrogate splits included."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.backends.binning import midpoint
from gputree.base.dtypes import Bools, Floats
from gputree.base.texts import tabled
from gputree.editing.alternatives import FIRST, UNKNOWN, sides_of
from gputree.editing.editor import TreeEditor
from gputree.errors import InputError
from gputree.estimators.subtrees import CartSubtrees, ancestors
from gputree.export.describe import describe
from gputree.tree.weakest_links import Risk, root_risk, weakest_links

# A threshold, or the categories that go to the first child.
_Cut = tuple[float | None, NDArray[np.integer] | None]

# Minimum number of rows on either side of a surrogate, as in rpart.
FEW_ROWS = 2


@dataclass(frozen=True)
class Surrogate:
    """The split of another column that agrees most with that of a node."""

    condition: str  # rows that satisfy it agree with those that go to the first child
    agree: float  # fraction of the weight with a value of the tested column, to the same side
    adj: float  # the same relative to sending all rows to the larger side


@dataclass(frozen=True)
class NodeSummary:
    """A node that is split."""

    number: int  # by which `TreeEditor` knows it
    path: list[str]  # conditions from the root
    # complexity parameter from which on it is pruned, as a fraction of the root's risk: errors, or
    # the sum of squares
    complexity: float
    summary: dict[str, Any]  # `TreeEditor.summary` of the node
    children: list[tuple[int, int]]  # (number, rows)
    # (condition, improve, missing) of the split in use and the best of other columns: the decrease
    # of impurity times the weight of classes, and the fraction of the impurity of targets; rows
    # that lack the column
    primary: list[tuple[str, float, int]]
    surrogates: list[Surrogate]  # that agree more than sending all rows to the larger side

    def __str__(self) -> str:
        known, (left, right) = self.summary, self.children
        figures = " ".join(f"{value:.6g}" for value in known["statistics"])
        primary = [[c, f"improve={i:.6g}", f"({m} missing)"] for c, i, m in self.primary]
        lines = [
            f"Node {self.number}: {known['rows']} rows, complexity {self.complexity:.6g}",
            f"  {' and '.join(self.path) or 'all rows'}",
            f"  prediction {known['prediction']}, impurity {known['impurity']:.6g}, of {figures}",
            f"  children {left[0]} ({left[1]} rows) and {right[0]} ({right[1]} rows)",
            "  Primary splits:",
            *(f"    {line}" for line in tabled(primary).splitlines()),
        ]
        if self.surrogates:
            cells = [
                [s.condition, f"agree={s.agree:.3f}", f"adj={s.adj:.3f}"] for s in self.surrogates
            ]
            lines += [
                "  Surrogate splits:",
                *(f"    {line}" for line in tabled(cells).splitlines()),
            ]
        return "\n".join(lines) + "\n"


def node_summaries(editor: TreeEditor, most: int = 5) -> Iterator[NodeSummary]:
    """Yield the summary of every node that is split, breadth-first, of a tree of CART.

    There are up to `most` surrogates, and primary splits in addition to the one in use.
    """
    if not isinstance(editor._subtrees, CartSubtrees):
        kind = type(editor.estimator).__name__
        raise InputError(f"rpart's summary is of binary trees of CART, not {kind}.")
    tree, numbers, words = editor.estimator.tree_, editor.numbers, describe(editor.estimator)
    risk: Risk = "error" if tree.task == "classification" else "impurity"
    alpha = weakest_links(tree, risk).alpha / root_risk(tree, risk)
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        number, child = int(numbers[node]), int(tree.first_child[node])
        rows = editor._subtrees.rows(tree, node)
        missing = np.isnan(editor._subtrees.values[rows]).sum(axis=0)
        # a forced split may be of a node that has no impurity
        unit = tree.weight[node] if risk == "error" else 1.0 / (tree.impurity[node] or 1.0)
        names = [*words.feature_names]
        others = [one for one in editor.alternatives(number) if not one.is_used][:most]
        primary = [(str(words.condition(child)), float(tree.gain[node]), int(tree.feature[node]))]
        primary += [(one.condition, one.gain, names.index(one.column)) for one in others]
        yield NodeSummary(
            number=number,
            path=editor.path(number),
            complexity=float(alpha[[*ancestors(tree, node), node]].min()),
            summary=editor.summary(number),
            children=[(int(numbers[c]), int(tree.n_rows[c])) for c in (child, child + 1)],
            primary=[(text, gain * unit, int(missing[f])) for text, gain, f in primary],
            surrogates=_surrogates(editor, node)[:most],
        )


def _surrogates(editor: TreeEditor, node: int) -> list[Surrogate]:
    """The best surrogate of each column, by their agreement."""
    subtrees, tree = editor._subtrees, editor.estimator.tree_
    rows = subtrees.rows(tree, node)
    (side,) = sides_of(subtrees.values, rows, [(tree, node)], subtrees.n_threads)
    weight = np.ones(rows.size) if editor._weight is None else editor._weight[rows]
    is_known, is_first = side != UNKNOWN, side == FIRST
    total, first = weight[is_known].sum(), weight[is_first].sum()
    most, found = max(first, total - first), []
    for f in range(tree.n_features):
        values = subtrees.values[rows, f].astype(np.float64)
        both = is_known & ~np.isnan(values)
        if f == tree.feature[node] or not both.any():
            continue
        signed = np.where(is_first, weight, -weight)[both]
        search = _by_categories if subtrees.table.columns.nominal[f] else _by_threshold
        same, is_reversed, cut = search(values[both], signed)
        if same > most:
            stump = subtrees.split(tree, node, f, *cut)
            condition = describe(editor._with_tree(stump, [])).condition(1 + is_reversed)
            adj = (same - most) / (total - most)
            found.append(Surrogate(str(condition), float(same / total), float(adj)))
    return sorted(found, key=lambda one: -one.agree)


def _by_threshold(values: Floats, signed: Floats) -> tuple[float, bool, _Cut]:
    """The weight that agrees by the best threshold, its direction, and the threshold.

    `signed` is the weight of rows of the first child, and minus that of those of the second.
    """
    order = np.argsort(values, kind="stable")
    ordered, sums = values[order], np.cumsum(signed[order])
    first, second = signed[signed > 0].sum(), -signed[signed < 0].sum()
    straight, other = second + sums[:-1], first - sums[:-1]
    place = np.arange(1, values.size)  # rows on the left
    admitted: Bools = (ordered[1:] > ordered[:-1]) & (place >= FEW_ROWS)
    admitted &= values.size - place >= FEW_ROWS
    agreed = np.where(admitted, np.maximum(straight, other), -np.inf)
    if not admitted.any():
        return -np.inf, False, (0.0, None)
    best = int(agreed.argmax())
    cut = float(midpoint(ordered[best], ordered[best + 1]))
    return float(agreed[best]), bool(other[best] > straight[best]), (cut, None)


def _by_categories(values: Floats, signed: Floats) -> tuple[float, bool, _Cut]:
    """Likewise, with each category on the side of most of its weight."""
    codes = values.astype(np.int64)
    balance, rows = np.bincount(codes, signed), np.bincount(codes)
    is_left = balance > 0
    left = int(rows[is_left].sum())
    if min(left, values.size - left) < FEW_ROWS:
        return -np.inf, False, (None, codes[:0])
    same = (np.abs(signed).sum() + np.abs(balance).sum()) / 2.0
    return float(same), False, (None, np.flatnonzero(is_left))
