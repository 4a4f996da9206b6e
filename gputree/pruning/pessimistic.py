r"""Pessimistic (error-based) pruning (Quinlan 1993, chapter 4): no rows are held out.

Bottom-up, each inner node has three options, by the upper limit of their errors:

    stay as it is           become a leaf           give way to its largest branch

          t                       t                        b
        / | \                                            / \
       a  b  c                                           .   .
         / \
        .   .

The rows of a and c then go down b's tests, and the nodes they reach there are pruned again.
"""

from dataclasses import replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from gputree.arithmetic.fixed_point import fix_weights
from gputree.base.dtypes import (
    MISSING_TO_ALL,
    NO_CHILD,
    NODE,
    ROW,
    THRESHOLD_SPLIT,
    Bools,
    Floats,
    Int32s,
    Values,
)
from gputree.base.sklearn import Interval, StrOptions
from gputree.base.threads import SPANS_PER_THREAD, even_spans, run, spans
from gputree.criteria.named import class_impurity
from gputree.errors import InputError
from gputree.prediction.descent import pack_alike
from gputree.pruning.base import Pruner, Rows, TrainingRows
from gputree.pruning.bottom_up import best_pruning
from gputree.pruning.error_limit import ErrorLimit, Quantile, error_limit, limit_errors
from gputree.pruning.raising_routing import (
    ENTRY,
    FRAME,
    NODE_STATE,
    RaisingRows,
    SortScratch,
    Walk,
    route_all,
    sort_all,
)
from gputree.pruning.raising_walk import find_tops, make_ready, number, settle, visit
from gputree.tree import Tree

FEW_ROWS = 1 << 12  # rows that are not worth another thread


def prune_and_raise(tree: Tree, data: TrainingRows, limit: ErrorLimit, slack: float) -> Tree:
    """Replace subtrees by leaves, or by their largest branch, at up to `slack` more errors by
    `limit`.

    ValueError if the total weight of the rows is not that of those the tree was grown on.
    """
    if not np.isclose(data.weight.sum(), tree.weight[0]):
        raise InputError(
            "Subtree raising needs the rows that the tree was grown on, with their weights. "
            f"The tree has a weight of {tree.weight[0]:g}; got rows of {data.weight.sum():g}."
        )
    nodes = _as_grown(tree, limit)
    settle(nodes, slack)
    if nodes["settled"][0]:
        return _rebuild(tree, nodes, tree.statistics)
    rows = _rows(tree, data.X)
    make_ready(rows, nodes)
    weight, label = np.asarray(data.weight, np.float64), np.asarray(data.target)
    taking_part: NDArray[np.integer] = np.arange(weight.size, dtype=ROW)
    if not weight.all():
        taking_part = np.flatnonzero(weight)
        weight, label = weight[taking_part], label[taking_part]
    weights = fix_weights(weight, taking_part.size, fractions=True)
    unit = weights.unit * weights.scale
    entries = np.empty(weight.size, ENTRY)
    entries["row"], entries["label"], entries["units"] = taking_part, label, weights.weight
    scratch = _scratch(nodes, tree.n_classes, entries)
    units, moved = np.zeros((2, nodes.size, tree.n_classes), np.int64)
    no_frames = np.empty(0, FRAME)
    walk = Walk(rows, nodes, units, moved, entries, no_frames, scratch, unit, limit, slack)
    visit_nodes(walk, data.n_threads)
    refilled = (units + moved) * unit
    return _rebuild(tree, nodes, np.where(nodes["refilled"][:, None], refilled, tree.statistics))


def visit_nodes(walk: Walk, n_threads: int) -> int:
    """Visit every node after its children; again, after a branch was raised.

    Subtrees without fractional entries are visited in parallel. Changes `walk`, whose entries end
    in any order. Returns the maximum number of entries in memory at a time.
    """
    nodes, scratch, n = walk.nodes, walk.scratch, walk.entries.size
    nodes["begin"][0], nodes["end"][0] = 0, n
    routed = even_spans(n, 1, n_threads, FEW_ROWS)
    run(n_threads, route_all, [(walk, *span) for span in routed])
    walk = walk._replace(entries=np.empty(n, ENTRY))
    sort_all(walk)

    def visit_from(tops: Int32s) -> int:
        sizes = nodes["end"][tops] - nodes["begin"][tops]
        scratch = _scratch(nodes, walk.units.shape[1], np.empty(sizes.max(), ENTRY))
        # On the stack are nodes of the walk, and of one estimate below the topmost.
        frames = np.empty(2 * nodes.size + 1, FRAME)
        return visit(walk._replace(frames=frames, scratch=scratch), tops)

    most_held = 0
    for most in _rounds(n, n_threads):
        tops = scratch.nodes[: find_tops(nodes, most, scratch.nodes)]
        sizes = nodes["end"][tops] - nodes["begin"][tops]
        parts = [(tops[a:b],) for a, b in spans(sizes, n_threads, FEW_ROWS)] if tops.size else []
        most_held = max(most_held, sum(run(n_threads, visit_from, parts)))
        nodes["settled"][tops] = True
    return n + most_held


def _rounds(n: int, n_threads: int) -> list[int]:
    """Sizes of the subtrees that are visited in parallel: first small ones, then all of n rows.

    Before the root, its children, which have about half of the rows each.
    """
    if n_threads == 1 or n < FEW_ROWS:
        return [n]
    return [n // (n_threads * SPANS_PER_THREAD), n // 2, n]


def _scratch(nodes: NDArray, n_classes: int, entries: NDArray) -> SortScratch:
    n_children = int(nodes["n_children"].max())
    return SortScratch(
        ordinal=np.empty(entries.size, np.int32),
        entries=entries,
        place=np.empty(n_children + 1, np.int64),
        units=np.empty(n_classes, np.int64),
        weights=np.empty(n_classes),
        nodes=np.empty(nodes.size, np.int32),
        free=np.empty(nodes.size, np.int32),
        before=np.empty((nodes.size, n_classes), np.int64),
    )


def _rows(tree: Tree, X: Values) -> RaisingRows:
    """Pack the tree's splits and the rows for the walk."""
    n, d = X.shape
    packed = pack_alike(tree)
    if X.flags.f_contiguous:
        return RaisingRows(packed, X.reshape(-1, order="F"), 1, n)
    return RaisingRows(packed, np.ascontiguousarray(X).reshape(-1), d, 1)


def _as_grown(tree: Tree, limit: ErrorLimit) -> NDArray:
    """Make the state of every node with its training rows."""
    nodes = np.zeros(tree.n_nodes, NODE_STATE)
    nodes["spreads"] = tree.missing_child == MISSING_TO_ALL
    sent_on = (tree.split_kind == THRESHOLD_SPLIT) & (tree.missing_child >= 0)
    nodes["settled"] = tree.is_leaf | nodes["spreads"] | sent_on
    for name in ("first_child", "n_children", "n_rows", "weight"):
        nodes[name] = getattr(tree, name)
    nodes["as_leaf"] = limit_errors(tree.statistics, limit)
    return nodes


def _rebuild(tree: Tree, state: NDArray, statistics: Floats) -> Tree:
    """Rebuild the tree from the remaining nodes, numbered breadth-first."""
    nodes, parent, depth = np.empty((3, tree.n_nodes), NODE)
    n = number(state, nodes, parent, depth)
    nodes, parent, depth = nodes[:n], parent[:n].copy(), depth[:n].copy()
    # a record has more than is used
    taken = {name: state[name][nodes] for name in ("split_of", "n_children", "weight", "n_rows")}
    tree = _renumbered(tree, taken, statistics[nodes], parent, depth)
    return _measure(tree, state["refilled"][nodes])


def _renumbered(
    old: Tree, nodes: dict[str, NDArray], statistics: Floats, parent: NDArray, depth: NDArray
) -> Tree:
    """Make the tree of `nodes`, each with the split it has now."""
    split, count = nodes["split_of"], nodes["n_children"]
    leaf = count == 0
    # children have the branches of the split that their parent carries
    above = parent[1:]
    branch = np.arange(1, parent.size) - (1 + np.cumsum(count) - count)[above]
    lists = old.branch_lists.take(np.append(0, old.first_child[split[above]] + branch))

    first = np.where(leaf, NO_CHILD, 1 + np.cumsum(count) - count)
    return old._carried(
        split,
        leaf,
        first_child=first.astype(NODE),
        n_children=count,
        parent=parent,
        depth=depth,
        weight=nodes["weight"],
        n_rows=nodes["n_rows"],
        statistics=statistics,
        **lists._asdict(),
    )


def _measure(tree: Tree, refilled: Bools) -> Tree:
    """`tree` with impurity and gain of refilled nodes computed anew; empty ones have impurity 0."""
    if not refilled.any():
        return tree
    filled = refilled & (tree.weight > 0)
    impurity = np.where(refilled, 0.0, tree.impurity)
    impurity[filled] = class_impurity(tree.criterion, tree.statistics[filled])
    children = tree.sum_over_children(tree.weight * impurity)
    gain = impurity - children / np.where(tree.weight > 0, tree.weight, 1.0)
    renewed = refilled & ~tree.is_leaf
    return replace(tree, impurity=impurity, gain=np.where(renewed, gain, tree.gain))


SLACK = 0.1  # a leaf may be this many errors worse than its subtree, in C4.5 and J48 alike


class Pessimistic(Pruner):
    """Pruning by an upper confidence limit of the training errors, as C4.5 does it.

    The errors of each leaf on its training rows are estimated by the upper limit of a binomial
    confidence interval. Bottom-up, a node becomes a leaf, or is replaced by its largest branch, if
    that increases the estimate of its pruned subtree by at most 0.1 errors. Classification only.

    Parameters
    ----------
    confidence : float in (0, 1), default=0.25
        The smaller, the more is pruned. With ``quantile="exact"`` values above
        0.5 add nothing to the observed errors.
    subtree_raising : bool, default=True
        Whether a node may be replaced by its largest branch (subtree raising). The node's training
        rows then go down that branch, so that pruning needs them; False only
        replaces subtrees by leaves, and needs no rows.
    quantile : {"exact", "release8"}, default="exact"
        How a confidence becomes a normal deviate: the exact quantile, or linear interpolation in
        C4.5 Release 8's table, including its formula for leaves with almost no correct row.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993.
    Chapter 4.

    Examples
    --------
    >>> from gputree import C45Classifier
    >>> from gputree.datasets import load_golf
    >>> from gputree.pruning import Pessimistic
    >>> X, y = load_golf(return_X_y=True)
    >>> tree = C45Classifier(pruning=None).fit(X, y)
    >>> [Pessimistic(c).prune(tree, X, y).get_n_leaves() for c in (0.25, 0.05)]
    [5, 1]
    """

    takes_training_rows = True

    _parameter_constraints = {  # noqa: RUF012
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "subtree_raising": ["boolean"],
        "quantile": [StrOptions({"exact", "release8"})],
    }

    def __init__(
        self, confidence: float = 0.25, subtree_raising: bool = True, quantile: Quantile = "exact"
    ) -> None:
        self.confidence = confidence
        self.subtree_raising = subtree_raising
        self.quantile = quantile

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """Prune one tree; with subtree raising, `data` are the rows that it was grown on.

        ValueError for a regression tree, or if rows are needed and not given.
        """
        self._validate_params()
        self.check_targets(tree.n_outputs)
        if tree.task != "classification":
            raise InputError(
                "Pessimistic prunes by misclassified rows and needs a classification tree. "
                f"Got a {tree.task} tree."
            )
        limit = error_limit(self.confidence, self.quantile)
        if not self.subtree_raising:
            as_leaf = limit_errors(tree.statistics, limit)
            return tree.collapse(best_pruning(tree, as_leaf, slack=SLACK))
        if not isinstance(data, TrainingRows):
            raise InputError(
                "Pessimistic with subtree_raising=True sends training rows down the raised "
                "branches: pass X and y as used for growing, or set subtree_raising=False."
            )
        return prune_and_raise(tree, data, limit, SLACK)
