"""Weakest links of a tree: the order in which its nodes collapse as leaves cost more.

Breiman et al. 1984, chapter 3. R(T) is the sum over the leaves of weight fraction times impurity
(or error rate); the tree of minimum R(T) + alpha * leaves(T) shrinks as alpha grows.

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

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import NODE, Bools, Floats, Int32s, Int64s
from gputree.compilation import inner, kernel
from gputree.tree.tree import Tree

Risk = Literal["impurity", "error"]


@dataclass(frozen=True)
class WeakestLinks:
    """Alphas at which the nodes of a tree collapse, and the resulting sequence."""

    alpha: Floats  # (N,): alpha from which on the node is no longer split; infinity at leaves
    risk_increase: Floats  # (N,): increase of R at that step
    leaves_lost: Int64s  # (N,): decrease of the number of leaves at that step
    # (n_links,): the nodes that collapse by themselves, not with an ancestor, by alpha.
    # Ties in depth-first order, which is scikit-learn's lowest node index
    order: NDArray[np.intp]


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
    """R of each node as a leaf, times the weight of the tree: weighted impurity or errors.

    With several targets, it is the mean over the targets.
    """
    if risk == "impurity" or tree.task == "regression":
        return tree.weight * tree.impurity
    if tree.n_outputs > 1:
        parts = [node_risk(tree.of_target(j), risk) for j in range(tree.n_outputs)]
        errors: Floats = np.mean(parts, axis=0)
        return errors
    correct = tree.statistics[np.arange(tree.n_nodes), tree.answers.argmax(axis=1)]
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
    return as_leaf - tree.sum_over_children(as_leaf)


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
