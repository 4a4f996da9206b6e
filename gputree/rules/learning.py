"""From a tree and its training rows to an ordered set of rules (Quinlan 1993, chapter 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree import prediction
from gputree.compilation import kernel
from gputree.pruning.error_limit import ErrorLimit
from gputree.rules.conditions import Rules, rules_of_leaves
from gputree.rules.coverage import Coverage, coverage
from gputree.rules.description_length import rule_bits
from gputree.rules.ordering import default_class, harmless, order_classes
from gputree.rules.selection import select
from gputree.rules.simplification import Rows, simplify
from gputree.subtrees import add_up
from gputree.tree import Tree


class Options(NamedTuple):
    """How rules are learned; see `gputree.rules.C45Rules`."""

    limit: ErrorLimit
    rule_weight: float
    redundancy: float
    n_threads: int


class Learned(NamedTuple):
    """R rules in the order in which they are tried.

    Attributes
    ----------
    rules : Rules
    error : float64 array of shape (R,)
        Pessimistic error rates.
    class_weights : float64 array of shape (R, K)
        Weight of the training rows that each rule covers, by class.
    default : int
        Code of the class of rows without a rule.
    decided_weights : float64 array of shape (R + 1, K)
        Weight of the training rows that each rule decides, and last those of no rule, by class.
    """

    rules: Rules
    error: NDArray[np.float64]
    class_weights: NDArray[np.float64]
    default: int
    decided_weights: NDArray[np.float64]


def learn(tree: Tree, rows: Rows, n_categories: NDArray[np.int64], options: Options) -> Learned:
    """The rules of a tree: simplified, chosen class by class, ordered.

    Parameters
    ----------
    tree : Tree
        Of classes.
    rows : Rows
        The rows that the tree was grown on.
    n_categories : int64 array of shape (d,)
        Categories of each column; 0 for numbers.
    options : Options
    """
    leaves = rules_of_leaves(tree)
    rows = _by_leaf(tree, rows, options.n_threads)
    rules, error = simplify(leaves, rows, options.limit, options.n_threads)
    covers = coverage(rules, rows.values)
    chosen = _chosen(rules, covers, rows, n_categories, options)
    rules, error, covers = rules.take(chosen), error[chosen], covers.take(chosen)
    order = _by_confidence(rules, error, covers, rows)
    rules, error, covers = rules.take(order), error[order], covers.take(order)
    places = {c: i for i, c in enumerate(order_classes(covers, rules.label, rows))}
    order = np.argsort([places[c] for c in rules.label.tolist()], kind="stable")
    default = default_class(covers, rows)
    left = harmless(covers.take(order), rules.label[order], default, rows)
    order = order[left]
    rules, covers = rules.take(order), covers.take(order)
    covered = _by_class(covers.rules_of_pairs, rows, covers.rows, order.size)
    decided = _by_class(covers.first_rules, rows, np.arange(rows.label.size), order.size + 1)
    return Learned(rules, error[order], covered, default, decided)


def _by_leaf(tree: Tree, rows: Rows, n_threads: int) -> Rows:
    """The rows in the order of the leaves, so that those of a rule lie side by side."""
    reached = prediction.apply(tree, rows.values, n_threads=n_threads)
    order = np.argsort(_from_the_left(tree)[reached], kind="stable")
    weight = rows.weight[order] if rows.weight.size else rows.weight
    return rows._replace(values=rows.values[order], label=rows.label[order], weight=weight)


def _from_the_left(tree: Tree) -> NDArray[np.int64]:
    """How many leaves are left of each node's, shape (n_nodes,)."""
    leaves = add_up(tree, tree.is_leaf.astype(np.int64))
    before = np.cumsum(leaves) - leaves
    found = np.zeros(tree.n_nodes, np.int64)
    _place(tree.parent, tree.first_child, before, found)
    return found


@kernel
def _place(
    parent: NDArray[np.int32],
    first_child: NDArray[np.int32],
    before: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """From parents to children; siblings are numbered one after the other."""
    for node in range(1, parent.size):
        up = parent[node]
        found[node] = found[up] + before[node] - before[first_child[up]]


def _by_class(
    rule: NDArray[np.integer], rows: Rows, places: NDArray[np.integer], n_rules: int
) -> NDArray[np.float64]:
    """Weight by rule and class of some rows, each with a rule; shape (n_rules, K)."""
    cell = rule.astype(np.int64) * rows.n_classes + rows.label[places]
    units = np.bincount(cell, rows.weights[places], minlength=n_rules * rows.n_classes)
    return np.asarray(units * rows.unit, np.float64).reshape(n_rules, rows.n_classes)


def _by_confidence(
    rules: Rules, error: NDArray[np.float64], covers: Coverage, rows: Rows
) -> NDArray[np.int64]:
    """Rules by their error rates; ties by weight, then by the number of conditions."""
    weights = rows.weights
    weight = np.array([weights[covers.of(r)].sum() for r in range(error.size)], np.int64)
    return np.lexsort((rules.sizes, -weight, error))


def _chosen(
    rules: Rules,
    covers: Coverage,
    rows: Rows,
    n_categories: NDArray[np.int64],
    options: Options,
) -> NDArray[np.int64]:
    """The rules that describe their classes in the smallest number of bits."""
    bits = rule_bits(rules, rows, n_categories, options.redundancy)
    found = [np.empty(0, np.int64)]
    for label in np.unique(rules.label).tolist():
        own = np.flatnonzero(rules.label == label)
        of_class = rows.label == label
        chosen, _ = select(
            covers.take(own), rows, of_class, bits[own], options.rule_weight, options.n_threads
        )
        found.append(own[chosen])
    return np.sort(np.concatenate(found))
