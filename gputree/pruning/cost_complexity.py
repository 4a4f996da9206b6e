"""Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3).

R(T) is the sum over the leaves of weight fraction times impurity (or error rate). Of all prunings
of a tree, T(alpha) is the smallest that minimises R(T) + alpha * leaves(T).
As alpha grows, whole subtrees collapse, one weakest link after the other.

The textbook method recomputes g of all ancestors after each collapse, which costs the depth of the
tree each time. Here the alpha at which a node collapses is computed once, bottom-up. Let G be the
increase of R when a node's branches become one leaf and L the leaves lost. Descendants that
collapse before the node change its G and L; those that would collapse after it never do. So start
from G and L of the node's split and, as long as the strongest link below has a higher or equal
alpha, merge it:

    alpha(t) = G / L        G += G(strongest),  L += L(strongest)

Links below wait in a heap that is melded upward; each is inserted and removed once: O(n log n) for
n nodes of any depth. Links left in the root's heap are the steps of the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NODE, Bools, Floats, Int32s, Int64s
from gputree.base.sklearn import Interval, InvalidParameterError, StrOptions
from gputree.compilation import inner, kernel
from gputree.pruning.base import Pruner, Rows, majority_class, require_tree
from gputree.pruning.bottom_up import sum_over_children
from gputree.pruning.complexity_table import CP_TABLE, CPTable
from gputree.tree import Tree

Risk = Literal["impurity", "error"]

# Alphas closer than this (relative) are one step of the sequence: the sums behind
# them have been seen to differ by 1e-12.
ROUNDING = 1e-10


class CostComplexityPath(NamedTuple):
    """Steps of the weakest-link sequence, from the full tree to the root.

    Attributes
    ----------
    ccp_alphas : float64 array of shape (n_steps,)
        Alpha at which each tree of the sequence begins to be the best one.
    impurities : float64 array of shape (n_steps,)
        R of each tree: risk summed over its leaves by fraction of the weight.
    """

    ccp_alphas: Floats
    impurities: Floats


@dataclass(frozen=True)
class WeakestLinks:
    """Alphas at which the nodes of a tree collapse, and the resulting sequence."""

    alpha: Floats  # (N,): alpha from which on the node is no longer split; infinity at leaves
    risk_increase: Floats  # (N,): increase of R at that step
    leaves_lost: Int64s  # (N,): decrease of the number of leaves at that step
    # (n_links,): the nodes that collapse by themselves, not with an ancestor, by alpha.
    # Ties in depth-first order, which is scikit-learn's lowest node index
    order: NDArray[np.intp]


class CostComplexity(Pruner):
    """Cost-complexity pruning for a given alpha.

    Parameters
    ----------
    alpha : float, default=0.0
        Complexity parameter: cost per leaf in units of risk (of the whole tree, so that the root's
        risk is the largest useful value). Links with g <= alpha are collapsed;
        0 collapses the splits that gain nothing.
    risk : {"impurity", "error"}, default="impurity"
        The risk R: the impurity the tree was grown by, as in scikit-learn, or the fraction of
        misclassified weight, as in Breiman et al. and rpart. The same for regression: the impurity.
    cp : float or None, default=None
        rpart's complexity parameter, instead of `alpha`: the cost per leaf as a fraction of the
        root's risk; with 1 only the root remains. rpart's classification is
        ``CostComplexity(cp=0.01, risk="error")``.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone. Classification and Regression
    Trees. Wadsworth, 1984. Section 3.3.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.pruning import CostComplexity
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier().fit(X, y)
    >>> tree.get_n_leaves(), CostComplexity(0.02).prune(tree).get_n_leaves()
    (9, 4)
    """

    _parameter_constraints = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, None, closed="left")],
        "risk": [StrOptions({"impurity", "error"})],
        "cp": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self, alpha: float = 0.0, risk: Risk = "impurity", cp: float | None = None
    ) -> None:
        self.alpha = alpha
        self.risk = risk
        self.cp = cp

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.cp is not None and self.alpha != 0.0:
            raise InvalidParameterError(
                "The 'cp' parameter of CostComplexity must be None where alpha is given: both "
                f"are the price of a leaf. Got cp={self.cp!r} and alpha={self.alpha!r} instead."
            )

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """T(alpha) of `tree`; `data` is not used."""
        self._validate_params()
        alpha = weakest_links(tree, self.risk).alpha
        if self.cp is None:
            return tree.collapse(alpha <= self.alpha)
        if self.cp >= 1:  # gains and risks have different rounding errors
            return tree.collapse(np.ones(tree.n_nodes, np.bool_))
        return tree.collapse(alpha / root_risk(tree, self.risk) <= self.cp)


def cost_complexity_path(tree: Tree, risk: Risk = "impurity") -> CostComplexityPath:
    """The effective alphas of a tree and R of the tree at each.

    Parameters
    ----------
    tree : Tree
        Binary or multiway, classification or regression.
    risk : {"impurity", "error"}, default="impurity"
        As in `CostComplexity`.

    Returns
    -------
    CostComplexityPath
        One entry for the full tree (alpha 0) and one for each collapse, as in
        scikit-learn's ``cost_complexity_pruning_path``.
    """
    links = weakest_links(tree, risk)
    full = node_risk(tree, risk)[tree.is_leaf].sum() / tree.weight[0]
    steps = np.concatenate([[full], links.risk_increase[links.order]])
    return CostComplexityPath(
        ccp_alphas=np.concatenate([[0.0], links.alpha[links.order]]), impurities=np.cumsum(steps)
    )


class NestedSequence(NamedTuple):
    """The nested trees, from the full one to the root: where each begins, its size and R."""

    alphas: Floats
    n_leaves: Int64s
    n_splits: Int64s
    risk: Floats

    def table(self, tree: Tree, risk: Risk) -> CPTable:
        """One row a tree of the sequence of `tree`, the smallest first; without xerror and xstd."""
        table = np.empty(self.alphas.size, dtype=CP_TABLE)
        table["xerror"] = table["xstd"] = np.nan
        table["alpha"] = self.alphas
        table["cp"] = self.alphas / root_risk(tree, risk)
        table["n_leaves"], table["nsplit"] = self.n_leaves, self.n_splits
        table["relative_error"] = self.risk / (self.risk[-1] or 1.0)
        return CPTable(table[::-1].copy(), risk)


def nested_sequence(tree: Tree, risk: Risk) -> NestedSequence:
    """Steps of the path, those that tie taken together."""
    links = weakest_links(tree, risk)
    path = cost_complexity_path(tree, risk)
    lost = np.concatenate([[0], np.cumsum(links.leaves_lost[links.order])])
    alphas = np.maximum(path.ccp_alphas, 0.0)  # gains of nothing may round below 0
    last = np.append(alphas[1:] > alphas[:-1] * (1 + ROUNDING), True)
    collapse = np.minimum(links.alpha, tree.over_ancestors(np.minimum, links.alpha, np.inf))
    ends = np.sort(collapse[~tree.is_leaf])
    n_splits = ends.size - np.searchsorted(ends, alphas[last], side="right")
    return NestedSequence(
        alphas[last], (tree.n_leaves - lost)[last], n_splits, path.impurities[last]
    )


def cp_table(estimator_or_tree: Any, risk: Risk = "error") -> CPTable:
    """The cost-complexity sequence of a fitted tree, as rpart's ``printcp`` prints it.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of one tree, or Tree
        Of an estimator, the tree as it was grown.
    risk : {"error", "impurity"}, default="error"
        As in `CostComplexity`; rpart's is the error.

    Returns
    -------
    CPTable of shape (n_trees,)
        As `CostComplexityCV.cp_table_`, but that ``xerror`` and ``xstd``, which need
        cross-validation, are NaN, and are not printed.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        It has several trees.
    ValueError
        There is no such risk.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.pruning import cp_table
    >>> print(cp_table(DecisionTreeClassifier(max_depth=2).fit(*load_iris(return_X_y=True))))
         CP  nsplit  rel error
    1  0.50       0       1.00
    2  0.44       1       0.50
    3  0.00       2       0.06
    """
    if risk not in get_args(Risk):
        raise InvalidParameterError(
            f"The 'risk' parameter of cp_table must be a str among {set(get_args(Risk))}. Got "
            f"{risk!r} instead."
        )
    tree = estimator_or_tree
    if not isinstance(tree, Tree):
        require_tree(tree)
        tree = getattr(tree, "unpruned_tree_", tree.tree_)
    return nested_sequence(tree, risk).table(tree, risk)


def weakest_links(tree: Tree, risk: Risk = "impurity") -> WeakestLinks:
    """The alpha at which each node collapses, in O(n log n)."""
    risk_increase = _increase_by_split(tree, risk)
    leaves_lost = tree.n_children.astype(np.int64) - 1
    alpha = np.full(tree.n_nodes, np.inf)
    is_link = ~tree.is_leaf
    _link_alphas(tree.parent, tree.n_children, risk_increase, leaves_lost, alpha, is_link)
    links = np.flatnonzero(is_link)
    depth_first = _depth_first_rank(tree.parent, tree.first_child)
    order = links[np.lexsort((depth_first[links], alpha[links]))]
    # Divided by the weight last: sums of misclassified rows are exact until then.
    total = tree.weight[0]
    # A gain of nothing may be rounded below 0; alphas are not negative.
    return WeakestLinks(np.maximum(alpha / total, 0.0), risk_increase / total, leaves_lost, order)


def node_risk(tree: Tree, risk: Risk) -> Floats:
    """R of each node as a leaf, times the weight of the tree: weighted impurity or errors."""
    if risk == "impurity" or tree.task == "regression":
        return tree.weight * tree.impurity
    correct = tree.statistics[np.arange(tree.n_nodes), majority_class(tree)]
    return tree.weight - correct


def root_risk(tree: Tree, risk: Risk) -> float:
    """R of the root as a leaf, by which rpart's cp divides alphas; 1 where it is 0."""
    return float(node_risk(tree, risk)[0] / tree.weight[0]) or 1.0


def _increase_by_split(tree: Tree, risk: Risk) -> Floats:
    """Decrease of the weighted risk by each node's split."""
    if tree.task == "regression":
        # The gain was computed from the difference of means. The difference of the nodes' variances
        # has lost the digits of small gains: alphas had relative errors of up to 1e-9.
        return tree.weight * tree.gain
    as_leaf = node_risk(tree, risk)
    return as_leaf - sum_over_children(tree, as_leaf)


@inner
def _meld(a: int, b: int, key: Floats, left: Int32s, right: Int32s) -> int:
    """Top-down melding of two skew heaps with the largest key at the root."""
    root, tail = -1, -1
    while a >= 0 and b >= 0:
        if key[b] > key[a]:
            a, b = b, a
        if tail < 0:
            root = a
        else:
            left[tail] = a
        tail, following = a, right[a]
        right[a] = left[a]
        a = following
    rest = a if a >= 0 else b
    if tail < 0:
        return rest
    left[tail] = rest
    return root


@kernel
def _link_alphas(
    parent: Int32s,
    n_children: Int32s,
    risk_increase: Floats,
    leaves_lost: Int64s,
    alpha: Floats,
    is_link: Bools,
) -> None:
    """Fill in `alpha`; remove links that collapse with an ancestor from `is_link`."""
    n_nodes = parent.size
    heap = np.full(n_nodes, -1, dtype=NODE)  # links below each node
    left = np.full(n_nodes, -1, dtype=NODE)
    right = np.full(n_nodes, -1, dtype=NODE)
    for node in range(n_nodes - 1, -1, -1):  # children before parents
        if n_children[node] == 0:
            continue
        below = heap[node]
        while below >= 0 and alpha[below] >= risk_increase[node] / leaves_lost[node]:
            risk_increase[node] += risk_increase[below]
            leaves_lost[node] += leaves_lost[below]
            is_link[below] = False
            below = _meld(left[below], right[below], alpha, left, right)
        alpha[node] = risk_increase[node] / leaves_lost[node]
        below = _meld(below, node, alpha, left, right)
        if node > 0:
            above = parent[node]
            heap[above] = _meld(heap[above], below, alpha, left, right)


@kernel
def _depth_first_rank(parent: Int32s, first_child: Int32s) -> Int32s:
    """Rank of each node when a subtree is numbered before its next sibling."""
    n_nodes = parent.size
    size = np.ones(n_nodes, dtype=NODE)
    for node in range(n_nodes - 1, 0, -1):
        size[parent[node]] += size[node]
    rank = np.zeros(n_nodes, dtype=NODE)
    for node in range(1, n_nodes):
        above = parent[node]
        if node == first_child[above]:
            rank[node] = rank[above] + 1
        else:
            rank[node] = rank[node - 1] + size[node - 1]
    return rank
