"""Random trees and the slow, obvious ways to prune them."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
from hand_made_trees import make_tree
from hypothesis import strategies as st

from gputree.base.dtypes import BRANCH_SPLIT, LEAF, NO_CHILD
from gputree.pruning import RoutedRows
from gputree.tree import Tree
from gputree.tree.branches import BranchLists


def tree_of_shape(n_children, statistics, impurity, weight, task="classification") -> Tree:
    """A valid tree with the given breadth-first child counts and node values."""
    n_children = np.asarray(n_children)
    n_nodes, leaf = n_children.size, n_children == 0
    parent = np.repeat(np.arange(n_nodes), n_children)
    first_child = 1 + np.cumsum(n_children) - n_children
    child = np.arange(1, n_nodes)
    weight, impurity = np.asarray(weight, dtype=float), np.asarray(impurity, dtype=float)
    below = np.bincount(parent, (weight * impurity)[1:], minlength=n_nodes)
    gain = (weight * impurity - below) / np.where(weight > 0, weight, 1.0)
    return make_tree(
        n_children,
        task=task,
        criterion="gini" if task == "classification" else "squared_error",
        split_kind=np.where(leaf, LEAF, BRANCH_SPLIT),
        weight=weight,
        statistics=statistics,
        impurity=impurity,
        gain=np.where(leaf, 0.0, gain),
        **BranchLists.of_pairs(n_nodes, child, child - first_child[parent])._asdict(),
    )


def random_shape(rng: np.random.Generator, n_inner: int, max_branches: int) -> np.ndarray:
    """Breadth-first child counts of a random tree with `n_inner` inner nodes."""
    counts, open_nodes = [], 1
    while open_nodes:
        rest = open_nodes - 1
        split = n_inner > 0 and (rest == 0 or rng.random() < 0.6)
        counts.append(int(rng.integers(2, max_branches + 1)) if split else 0)
        n_inner -= split
        open_nodes = rest + counts[-1]
    return np.array(counts)


def random_tree(rng, n_inner, max_branches, n_classes) -> Tree:
    """Random shape, small random class counts (or targets where `n_classes` is 1)."""
    n_children = random_shape(rng, n_inner, max_branches)
    blank = tree_of_shape(
        n_children, np.zeros((n_children.size, 1)), *np.zeros((2, n_children.size))
    )
    if n_classes == 1:
        return _regression_tree(rng, blank)
    counts = rng.integers(0, 4, (blank.n_nodes, n_classes)).astype(float)
    counts[:, 0] += counts.sum(axis=1) == 0
    add_up(blank, counts)
    weight = counts.sum(axis=1)
    gini = 1 - ((counts / weight[:, None]) ** 2).sum(axis=1)
    return tree_of_shape(n_children, counts, gini, weight)


def _regression_tree(rng, blank: Tree) -> Tree:
    # weight, sum and sum of squares of a few targets a leaf
    targets = [rng.integers(0, 5, rng.integers(1, 5)) for _ in range(blank.n_nodes)]
    sums = np.array([[y.size, y.sum(), (y**2).sum()] for y in targets], dtype=float)
    add_up(blank, sums)
    weight, total, squares = sums.T
    mean = total / weight
    variance = squares / weight - mean**2
    return tree_of_shape(blank.n_children, mean[:, None], variance, weight, "regression")


def as_poisson(tree: Tree) -> Tree:
    """A regression tree with positive predictions, as one grown by the Poisson deviance."""
    return replace(tree, criterion="poisson", statistics=tree.statistics + 0.25)


def add_up(tree: Tree, values: np.ndarray) -> None:
    """Set the values of inner nodes to the sums of their children's, in place."""
    for node in reversed(np.flatnonzero(~tree.is_leaf)):
        values[node] = values[list(tree.children(node))].sum(axis=0)


@st.composite
def trees(draw, classes=(1, 2, 3), max_inner=7):
    """Random small trees, binary and multiway, classification and regression."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_inner = draw(st.integers(0, max_inner))
    return random_tree(rng, n_inner, draw(st.integers(2, 4)), draw(st.sampled_from(classes)))


@st.composite
def trees_with_rows(draw, **kwargs):
    """A random tree and a few rows at its nodes, some stopped at inner nodes."""
    tree = draw(trees(**kwargs))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(0, 30))
    target = rng.integers(-1, max(tree.n_classes, 3), n)
    if tree.task == "regression":
        if draw(st.booleans()):
            tree, target = as_poisson(tree), target + 1
        target = target.astype(float)
    rows = RoutedRows(rng.integers(0, tree.n_nodes, n), target, rng.integers(1, 4, n).astype(float))
    return tree, rows


def prunings(tree: Tree, node: int = 0) -> list[frozenset[int]]:
    """Every pruning of the subtree at `node`, each as its set of leaves."""
    below = [prunings(tree, child) for child in tree.children(node)]
    grown = [frozenset().union(*leaves) for leaves in product(*below)] if below else []
    return [frozenset([node]), *grown]


def leaves_after(tree: Tree, pruned: Tree) -> frozenset[int]:
    """Nodes of `tree` that are the leaves of `pruned`, a pruning of it."""
    match, queue = set(), [(0, 0)]
    while queue:
        node, image = queue.pop()
        if pruned.is_leaf[image]:
            match.add(node)
        queue += zip(tree.children(node), pruned.children(image), strict=False)
    return frozenset(match)


def path(tree: Tree, node: int) -> list[int]:
    """`node` and its ancestors, upward."""
    nodes = [node]
    while tree.parent[nodes[-1]] != NO_CHILD:
        nodes.append(int(tree.parent[nodes[-1]]))
    return nodes


def depth_first(tree: Tree, node: int = 0) -> list[int]:
    """The nodes below `node` and itself, each before its children."""
    return [node] + [t for child in tree.children(node) for t in depth_first(tree, child)]


def weakest_link_sequence(tree: Tree, risk: list[int]) -> list[tuple[Fraction, int]]:
    """(alpha, R) of each step by the textbook: collapse the weakest link, look again."""
    leaves = frozenset(np.flatnonzero(tree.is_leaf).tolist())
    steps = [(Fraction(0), sum(risk[t] for t in leaves))]
    while leaves != {0}:
        best = None
        for node in depth_first(tree):
            below = [t for t in leaves if t != node and node in path(tree, t)]
            if not below:
                continue
            g = Fraction(risk[node] - sum(risk[t] for t in below), len(below) - 1)
            if best is None or g < best[0]:
                best = (g, node, below)
        alpha, node, below = best
        leaves = (leaves - set(below)) | {node}
        steps.append((alpha, sum(risk[t] for t in leaves)))
    return steps


def rows_loss(tree: Tree, rows: RoutedRows, leaves: frozenset[int]) -> float:
    """Loss of routed rows when the tree is cut at `leaves`."""
    loss = 0.0
    for node, target, weight in zip(rows.node, rows.target, rows.weight, strict=True):
        above = [t for t in path(tree, int(node)) if t in leaves]
        answer = above[0] if above else int(node)
        if tree.task == "regression":
            loss += weight * row_loss(tree.criterion, target, tree.statistics[answer, 0])
        else:
            loss += weight * (target != tree.statistics[answer].argmax())
    return float(loss)


def row_loss(criterion: str, target: float, answer: float) -> float:
    """Loss of a prediction of a regression tree on a target."""
    if criterion == "poisson":
        events = target * np.log(target / answer) if target > 0 else 0.0
        return events - target + answer
    return (target - answer) ** 2
