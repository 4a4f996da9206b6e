"""Conversion of a tree and its rows to an ordered set of rules (Quinlan 1993, chapter 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree import prediction
from gputree.compilation import kernel
from gputree.dtypes import Floats, Int32s, Int64s
from gputree.pruning.error_limit import ErrorLimit
from gputree.rules.conditions import Rules, rules_of_leaves
from gputree.rules.coverage import Coverage, coverage
from gputree.rules.description_length import rule_bits
from gputree.rules.ordering import default_class, harmless, order_classes
from gputree.rules.selection import select
from gputree.rules.simplification import WeightedRows, simplify
from gputree.subtrees import add_up
from gputree.tree import Tree


class LearningOptions(NamedTuple):
    """Options of learning rules; see `gputree.rules.C45Rules`."""

    limit: ErrorLimit
    rule_weight: float
    redundancy: float
    n_threads: int


class Learned(NamedTuple):
    """R rules in the order in which they are tried."""

    rules: Rules
    confidence: Floats  # (R,): one minus the pessimistic error rates
    class_weights: Floats  # (R, K): weight of the training rows that each rule covers, by class
    default: int  # code of the class of rows without a rule
    # (R + 1, K): weight of the training rows that each rule decides, by class, and last of those
    # that no rule covers
    decided_weights: Floats


def learn(
    tree: Tree, rows: WeightedRows, n_categories: Int64s, options: LearningOptions
) -> Learned:
    """Learn the rules of a tree and its rows: simplify, choose class by class, order.

    `n_categories` are the numbers of categories of each column, 0 for numbers.
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
    return Learned(rules, 1.0 - error[order], covered, default, decided)


def _by_leaf(tree: Tree, rows: WeightedRows, n_threads: int) -> WeightedRows:
    """Sort the rows by leaf, so that those of a rule are next to each other."""
    reached = prediction.apply(tree, rows.values, n_threads=n_threads)
    order = np.argsort(_from_the_left(tree)[reached], kind="stable")
    weight = rows.weight[order] if rows.weight.size else rows.weight
    return rows._replace(values=rows.values[order], label=rows.label[order], weight=weight)


def _from_the_left(tree: Tree) -> Int64s:
    """Number of leaves to the left of each node's leaves, shape (n_nodes,)."""
    leaves = add_up(tree.parent, tree.is_leaf.astype(np.int64))
    before = np.cumsum(leaves) - leaves
    found = np.zeros(tree.n_nodes, np.int64)
    _place(tree.parent, tree.first_child, before, found)
    return found


@kernel
def _place(parent: Int32s, first_child: Int32s, before: Int64s, found: Int64s) -> None:
    """Number siblings one after the other, from parents to children."""
    for node in range(1, parent.size):
        up = parent[node]
        found[node] = found[up] + before[node] - before[first_child[up]]


def _by_class(
    rule: NDArray[np.integer], rows: WeightedRows, places: NDArray[np.integer], n_rules: int
) -> Floats:
    """Weight by rule and class of some rows, each with a rule; shape (n_rules, K)."""
    cell = rule.astype(np.int64) * rows.n_classes + rows.label[places]
    units = np.bincount(cell, rows.weights[places], minlength=n_rules * rows.n_classes)
    return np.asarray(units * rows.unit, np.float64).reshape(n_rules, rows.n_classes)


def _by_confidence(rules: Rules, error: Floats, covers: Coverage, rows: WeightedRows) -> Int64s:
    """Order rules by their error rates; ties by weight, then by the number of conditions."""
    weights = rows.weights
    weight = np.array([weights[covers.of(r)].sum() for r in range(error.size)], np.int64)
    return np.lexsort((rules.sizes, -weight, error))


def _chosen(
    rules: Rules,
    covers: Coverage,
    rows: WeightedRows,
    n_categories: Int64s,
    options: LearningOptions,
) -> Int64s:
    """Choose the rules that describe their classes in the smallest number of bits."""
    bits = rule_bits(rules, rows, n_categories, options.redundancy)
    found = [np.empty(0, np.int64)]
    for label in np.unique(rules.label).tolist():
        of_label = np.flatnonzero(rules.label == label)
        of_class = rows.label == label
        chosen, _ = select(
            covers.take(of_label),
            rows,
            of_class,
            bits[of_label],
            options.rule_weight,
            options.n_threads,
        )
        found.append(of_label[chosen])
    return np.sort(np.concatenate(found))
