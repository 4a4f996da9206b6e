"""Subtree raising, against the rule written down over nested nodes and single rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pruning_oracles import tree_of_shape
from strategies import examples

from gputree.base.dtypes import (
    BRANCH_SPLIT,
    MISSING_STOPS,
    MISSING_TO_ALL,
    NO_FEATURE,
    NO_THRESHOLD,
    THRESHOLD_SPLIT,
)
from gputree.pruning import Pessimistic, TrainingRows, add_errors, pessimistic
from gputree.tree import Tree
from gputree.tree.branches import BranchLists

N_CATEGORIES = 3


class Node:
    """A node with its class weights and children; `split` is (feature, threshold or None)."""

    def __init__(self, counts, split=None, missing=MISSING_STOPS, children=()):
        self.counts, self.split, self.missing = np.asarray(counts, float), split, missing
        self.children = list(children)
        self.stopped = 0.0  # limit of the errors of the entries that stop here

    def to_tree(self) -> Tree:
        nodes = [self]
        for node in nodes:
            nodes += node.children
        counts = np.array([node.counts for node in nodes])
        weight = counts.sum(axis=1)
        shares = counts / np.where(weight > 0, weight, 1)[:, None]
        gini = np.where(weight > 0, 1 - (shares**2).sum(axis=1), 0.0)
        tree = tree_of_shape([len(node.children) for node in nodes], counts, gini, weight)
        inner = ~tree.is_leaf
        by_threshold = np.array([bool(n.split) and n.split[1] is not None for n in nodes])
        branches = inner & ~by_threshold
        kind = np.where(branches, BRANCH_SPLIT, np.where(inner, THRESHOLD_SPLIT, 0))
        threshold = [
            n.split[1] if t else NO_THRESHOLD for n, t in zip(nodes, by_threshold, strict=True)
        ]
        child = 1 + np.flatnonzero(branches[tree.parent[1:]])
        code = child - tree.first_child[tree.parent[child]]
        return replace(
            tree,
            n_features=2,
            split_kind=kind.astype(np.uint8),
            feature=np.array([n.split[0] if n.split else NO_FEATURE for n in nodes], np.int32),
            threshold=np.array(threshold, float),
            missing_child=np.array([n.missing for n in nodes], np.int32),
            **BranchLists.of_pairs(tree.n_nodes, child, code)._asdict(),
        )


def send(node, X, entries):
    """The entries [(row, weight)] that each child gets."""
    parts = [[] for _ in node.children]
    feature, threshold = node.split
    unknown = []
    for row, weight in entries:
        x = X[row, feature]
        if not np.isnan(x):
            parts[int(x) if threshold is None else int(x > threshold)].append((row, weight))
        elif node.missing == MISSING_TO_ALL:
            unknown.append((row, weight))
        elif node.missing != MISSING_STOPS:
            parts[node.missing].append((row, weight))
    known = [sum(w for _, w in part) for part in parts]
    for part, weight in zip(parts, known, strict=True):
        share = weight / sum(known) if sum(known) else 1 / len(parts)
        part += [(row, w * share) for row, w in unknown if share]
    return parts


def count(y, entries):
    counts = np.zeros(2)
    for row, weight in entries:
        counts[y[row]] += weight
    return counts


def limit(counts):
    errors = counts.sum() - counts.max()
    return errors + float(add_errors(counts.sum(), errors))


def stop(node, X, y, entries):
    """Limit of the errors of entries that stop at an inner node, which predicts its majority."""
    if node.missing != MISSING_STOPS:
        return 0.0
    answer = count(y, entries).argmax()
    stay = [(row, weight) for row, weight in entries if np.isnan(X[row, node.split[0]])]
    weight = sum(w for _, w in stay)
    errors = sum(w for row, w in stay if y[row] != answer)
    return errors + float(add_errors(weight, errors))


def fill(node, X, y, entries):
    node.counts = count(y, entries)
    if node.children:
        for child, part in zip(node.children, send(node, X, entries), strict=True):
            fill(child, X, y, part)


def estimate(node, X, y, entries):
    if not node.children:
        return limit(count(y, entries))
    parts = send(node, X, entries)
    below = sum(estimate(c, X, y, part) for c, part in zip(node.children, parts, strict=True))
    return stop(node, X, y, entries) + below


def standing(node):
    if not node.children:
        return limit(node.counts)
    return node.stopped + sum(map(standing, node.children))


def prune(node, X, y, entries):
    """C4.5's rule; returns how many branches were raised."""
    if not node.children:
        return 0
    parts = send(node, X, entries)
    node.stopped = stop(node, X, y, entries)
    raised = sum(prune(c, X, y, part) for c, part in zip(node.children, parts, strict=True))
    largest = max(
        range(len(node.children)), key=lambda i: (round(node.children[i].counts.sum(), 6), i)
    )
    subtree, leaf = standing(node), limit(node.counts)
    branch = estimate(node.children[largest], X, y, entries)
    if leaf <= subtree + 0.1 and leaf <= branch + 0.1:
        node.split, node.missing, node.children = None, MISSING_STOPS, []
    elif branch <= subtree + 0.1:
        kept = node.children[largest]
        node.split, node.missing, node.children = kept.split, kept.missing, kept.children
        fill(node, X, y, entries)
        return raised + 1 + prune(node, X, y, entries)
    return raised


def grow(rng, X, y, entries, depth, missing) -> Node:
    """A tree of random splits: column 0 is numeric, column 1 has three categories."""
    node = Node(count(y, entries))
    if depth == 0 or len(entries) < 3:
        return node
    node.split = (1, None) if rng.random() < 0.4 else (0, float(rng.integers(0, 6)))
    node.missing = int(rng.integers(0, 2)) if missing == "learned" else missing
    node.children = [Node([0, 0])] * (N_CATEGORIES if node.split[1] is None else 2)
    parts = send(node, X, entries)
    node.children = [grow(rng, X, y, part, depth - 1, missing) for part in parts]
    return node


def random_values(rng, n):
    return np.column_stack([rng.integers(0, 7, n), rng.integers(0, N_CATEGORIES, n)]).astype(float)


@st.composite
def grown(draw):
    """A random tree over random rows, some values missing; and the rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(3, 40))
    X = random_values(rng, n)
    y = ((X[:, 0] > 3) ^ (rng.random(n) < 0.25)).astype(int)
    missing = draw(st.sampled_from([MISSING_TO_ALL, MISSING_STOPS, "learned"]))
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    weight = rng.integers(1, 3, n).astype(float)
    entries = list(enumerate(weight))
    return grow(rng, X, y, entries, 4, missing), TrainingRows(X, y, weight)


def assert_same(tree: Tree, expected: Tree):
    """Equal but for the rounding of sums of shares."""
    tree.check()
    exact = ("first_child", "split_kind", "feature", "threshold", "missing_child", "branch_code")
    for name in exact:
        np.testing.assert_array_equal(getattr(tree, name), getattr(expected, name), name)
    for name in ("weight", "statistics", "impurity", "gain"):
        ours, theirs = getattr(tree, name), getattr(expected, name)
        np.testing.assert_allclose(ours, theirs, atol=1e-9, err_msg=name)


@given(grown())
@examples(200)
def test_tree_follows_the_rule(case):
    root, rows = case
    tree = root.to_tree()
    prune(root, rows.X, rows.target, list(enumerate(rows.weight)))
    assert_same(Pessimistic().prune_tree(tree, rows), root.to_tree())


@given(grown())
def test_pruning_again_changes_nothing(case):
    root, rows = case
    once = Pessimistic().prune_tree(root.to_tree(), rows)
    assert_same(Pessimistic().prune_tree(once, rows), once)


@pytest.mark.parametrize("holes", [(), (0,), (0, 1)])
@pytest.mark.parametrize("seed", range(4))
def test_many_rows_follow_the_rule_however_they_lie(seed, holes, monkeypatch):
    # branches estimated in several portions; columns with missing values above others
    rng = np.random.default_rng(seed)
    n = 400
    X = random_values(rng, n)
    y = ((X[:, 0] > 3) ^ (X[:, 1] == 1) ^ (rng.random(n) < 0.3)).astype(int)
    for column in holes:
        X[rng.random(n) < 0.05, column] = np.nan
    weight = rng.integers(1, 3, n).astype(float)
    entries = list(enumerate(weight))
    root = grow(rng, X, y, entries, 5, MISSING_TO_ALL)
    tree = root.to_tree()
    by_rows, by_columns = (
        Pessimistic().prune_tree(tree, TrainingRows(np.array(X, order=order), y, weight))
        for order in ("C", "F")
    )
    prune(root, X, y, entries)
    assert_same(by_rows, root.to_tree())
    assert by_columns.equals(by_rows)
    monkeypatch.setattr(pessimistic, "FEW_ROWS", 20)  # subtrees that are visited in parallel
    rows = (TrainingRows(X, y, weight, n_threads) for n_threads in (1, 2, 5))
    assert all(Pessimistic().prune_tree(tree, each).equals(by_rows) for each in rows)


def test_the_random_trees_do_raise_branches():
    rng = np.random.default_rng(0)
    raised = 0
    for _ in range(30):
        X = random_values(rng, 40)
        y = (X[:, 0] > 3).astype(int)
        entries = [(i, 1.0) for i in range(40)]
        raised += prune(grow(rng, X, y, entries, 4, MISSING_TO_ALL), X, y, entries)
    assert raised > 10


def _raising_case():
    """A root whose small branch mixes the classes that the large branch separates."""
    X = np.array([[6, 0], [6, 1], *[[1, 0]] * 10, *[[1, 1]] * 10], dtype=float)
    y = np.array([0, 1, *[0] * 10, *[1] * 10])
    by_category = Node([10, 10], (1, None), MISSING_TO_ALL, map(Node, ([10, 0], [0, 10], [0, 0])))
    root = Node([11, 11], (0, 5.0), MISSING_TO_ALL, [by_category, Node([1, 1])])
    return root.to_tree(), TrainingRows(X, y, np.ones(22))


def test_the_larger_branch_takes_its_parents_place():
    tree, rows = _raising_case()
    raised = Pessimistic().prune_tree(tree, rows)
    assert raised.feature.tolist() == [1, NO_FEATURE, NO_FEATURE, NO_FEATURE]
    assert raised.statistics.tolist() == [[11, 11], [11, 0], [0, 11], [0, 0]]
    assert raised.n_rows.tolist() == [22, 11, 11, 0]
    assert raised.gain[0] == pytest.approx(0.5)
    assert Pessimistic(subtree_raising=False).prune_tree(tree).equals(tree)


def test_rows_of_weight_zero_are_not_counted():
    tree, rows = _raising_case()
    X, target = rows.X.repeat(2, axis=0), rows.target.repeat(2)
    more = TrainingRows(X, target, np.tile([1.0, 0.0], rows.target.size))
    assert Pessimistic().prune_tree(tree, more).equals(Pessimistic().prune_tree(tree, rows))


def test_a_tree_without_raising_keeps_every_bit():
    tree, rows = _raising_case()
    grown_smaller = Pessimistic().prune_tree(tree, rows)
    assert Pessimistic().prune_tree(grown_smaller, rows).equals(grown_smaller)


def test_a_value_without_a_branch_is_missing():
    tree, rows = _raising_case()
    X = rows.X.copy()
    X[0, 1] = 7  # no such category: to all branches in parts, 10 to 11
    raised = Pessimistic().prune_tree(tree, replace(rows, X=X))
    np.testing.assert_allclose(raised.statistics[1:3], [[10 + 10 / 21, 0], [11 / 21, 11]])


def test_an_inner_node_without_rows_becomes_a_leaf():
    empty = Node([0, 0], (0, 1.0), MISSING_TO_ALL, [Node([0, 0]), Node([0, 0])])
    empty = Node([0, 0], (0, 2.0), MISSING_TO_ALL, [Node([0, 0]), empty])
    root = Node([3, 2], (0, 5.0), MISSING_TO_ALL, [Node([3, 2]), empty])
    X = np.zeros((5, 2))
    rows = TrainingRows(X, np.array([0, 0, 0, 1, 1]), np.ones(5))
    assert Pessimistic().prune_tree(root.to_tree(), rows).n_leaves == 1
