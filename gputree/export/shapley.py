r"""Shapley values of a row's prediction: the contribution of each column, exact for every tree.

The players are the columns. A column that takes part sends the row to the child for its value; one
that does not sends it down all branches, by the weights of the training rows ("path-dependent").
The prediction of a leaf is then multiplied by one factor for each column on its path: o where the
column takes part (the fraction of the row that goes this way: 1 or 0, or less where a missing value
goes to several), and z where it does not (the fraction of the weights). For a product game the
Shapley value is an integral over the chance t that a column takes part (Owen's multilinear
extension):

    phi_j = sum over leaves of value * integral from 0 to 1 of
            (o_j - z_j) * product over other columns i on the path of (t o_i + (1 - t) z_i) dt

The integrand is a polynomial of t of a degree below the number of columns on the path, so that half
as many points of Gauss and Legendre integrate it exactly; all products are of numbers that are not
negative, so that nothing cancels. Products are made from the root down and sums from the leaves up,
once for all columns: time is proportional to nodes times points, not to leaves times depth squared.

    node      product P of the factors above it at each point, times the factor of its edge
    edge      g = (o - z) / (t o + (1 - t) z): times the sum below, the part of the edge's column;
              less the g of the nearest edge above of the same column, whose factor it replaces

References
----------
G. Owen. Multilinear Extensions of Games. Management Science 18, 1972.
S. Lundberg et al. From Local Explanations to Global Understanding with Explainable AI for
Trees. Nature Machine Intelligence 2, 2020. Algorithm 1 (the game).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Int32s
from gputree.base.memory import require_memory
from gputree.base.threads import run
from gputree.compilation import inner, kernel
from gputree.export.model import averaged, forbid_soft_thresholds, require_estimator, tree_of
from gputree.prediction.answers import Before, ChildShares, Descent, portions
from gputree.prediction.descent import packed, step
from gputree.prediction.sparse import SparseRows
from gputree.tree import Tree

# Nodes times points times rows between two checks of the clock and of Ctrl-C: some 50 ms.
_BLOCK = 1 << 24


class Game(NamedTuple):
    """Data of the game that do not depend on rows; arrays of shape (N,)."""

    tested: Int32s  # the column that each node tests; -1 at leaves
    parent: Int32s
    # the nearest node, from a node up to the root, that is reached by a test of the column that the
    # node tests; 0, the root, if there is none
    same: Int32s
    without: Floats  # z of the edge to each node, with those above of its column; 1 at the root
    ends: Floats  # z of stopping at an inner node, which has no weight below
    # (Q,): nodes and weights of the quadrature of the integral from 0 to 1
    point: Floats
    weight: Floats


def game_of(tree: Tree, parts: ChildShares) -> Game:
    """Return the game of a tree."""
    tested = np.where(tree.is_leaf, -1, tree.feature).astype(np.int32)
    same, columns = _same(tested, tree.parent)
    without = np.ones(tree.n_nodes)
    for level in tree.levels()[1:]:
        without[level] = parts.portion[level] * without[same[tree.parent[level]]]
    below = np.zeros(tree.n_nodes)
    np.add.at(below, tree.parent[1:], tree.weight[1:])
    point, weight = np.polynomial.legendre.leggauss(max(1, -(-int(columns.max()) // 2)))
    ends = np.where(~tree.is_leaf & (below == 0), 1.0, 0.0)
    return Game(tested, tree.parent, same, without, ends, (point + 1) / 2, weight / 2)


def expected_answer(tree: Tree) -> Floats:
    """Prediction without any column, shape (K,): the weighted mean of the leaves."""
    parts = portions(tree)
    reach = np.ones(tree.n_nodes)
    for level in tree.levels()[1:]:
        reach[level] = reach[tree.parent[level]] * parts.portion[level]
    stops = tree.is_leaf | (game_of(tree, parts).ends > 0)
    return reach[stops] @ tree.predictions[stops]


def shapley_values(
    tree: Tree, values: NDArray | SparseRows, n_threads: int = 1, before: Before = None
) -> Floats:
    """Shapley values of the predictions of rows, of shape (n_rows, n_features, K); see `apply`.

    With `expected_answer` they add up to `class_distributions`, except for rounding.
    """
    shape = values.shape[0], tree.n_features, tree.n_classes
    require_memory(
        8.0 * np.prod(shape, dtype=float), "The Shapley values", "Pass fewer rows at a time."
    )
    if isinstance(values, SparseRows):
        values = np.concatenate(list(values.blocks()))  # no more cells than the result
    descent = Descent(values, packed(tree, values.dtype), portions(tree), None)
    game = game_of(tree, descent.parts)
    predictions = np.ascontiguousarray(tree.predictions)
    out = np.zeros(shape)
    size = max(1, _BLOCK // (tree.n_nodes * game.point.size))
    size = min(size, -(-values.shape[0] // n_threads)) or 1

    def block(begin: int) -> None:
        end = min(begin + size, values.shape[0])
        if before is not None:
            before(begin, end)
        _shapley(descent, begin, end, game, predictions, out)

    run(n_threads, block, [(begin,) for begin in range(0, values.shape[0], size)])
    return out


@kernel
def _same(tested: Int32s, parent: Int32s) -> tuple[Int32s, Int32s]:
    """`Game.same`, and the number of columns that are tested at each node and above it."""
    same, columns = np.zeros(tested.size, np.int32), np.zeros(tested.size, np.int32)
    for node in range(tested.size):
        if node > 0:
            columns[node] = columns[parent[node]]
        if tested[node] < 0:
            continue
        ancestor = node
        while ancestor > 0 and tested[parent[ancestor]] != tested[node]:
            ancestor = parent[ancestor]
        same[node] = ancestor
        columns[node] += ancestor == 0
    return same, columns


@inner
def _factor(t: float, present: float, missing: float) -> float:
    return t * present + (1.0 - t) * missing


@inner
def _slope(t: float, present: float, missing: float) -> float:
    """(o - z) over the factor; 0 where the factor is."""
    factor = t * present + (1.0 - t) * missing
    return (present - missing) / factor if factor > 0.0 else 0.0


@kernel
def _shapley(
    descent: Descent, begin: int, end: int, game: Game, predictions: Floats, out: Floats
) -> None:
    """Add the Shapley values of rows ``begin .. end`` to `out` (n, d, K)."""
    n_nodes, n_points, parts = game.tested.size, game.point.size, descent.parts
    present, stays = np.ones(n_nodes), np.zeros(n_nodes)
    product, total = np.ones((n_nodes, n_points)), np.empty((n_nodes, n_points))
    for row in range(begin, end):
        # From the root down: the fraction of the row on each edge, and the products at each node.
        for node in range(n_nodes):
            if game.tested[node] < 0:
                continue
            same = game.same[node]
            below = step(descent.values, row, descent.tree, node)
            spreads = below == node and parts.spreads[node]
            stays[node] = 1.0 if below == node and not spreads else 0.0
            first = parts.first_child[node]
            for child in range(first, first + parts.n_children[node]):
                share = 1.0 if child == below else 0.0
                if spreads:
                    share = parts.portion[child]
                present[child] = share * present[same]
                for q in range(n_points):
                    t = game.point[q]
                    above = _factor(t, present[same], game.without[same])
                    factor = _factor(t, present[child], game.without[child])
                    product[child, q] = product[node, q] * (factor / above) if above > 0.0 else 0.0
        # From the leaves up: predictions below each node, and the parts of each edge's column.
        for k in range(predictions.shape[1]):
            total[:] = 0.0
            for node in range(n_nodes - 1, -1, -1):
                column = game.tested[node]
                if column < 0:
                    for q in range(n_points):
                        total[node, q] = predictions[node, k] * product[node, q]
                elif stays[node] + game.ends[node] > 0.0:
                    same = game.same[node]
                    o, z = stays[node] * present[same], game.ends[node] * game.without[same]
                    for q in range(n_points):
                        t = game.point[q]
                        above = _factor(t, present[same], game.without[same])
                        if above == 0.0:
                            continue
                        term = predictions[node, k] * product[node, q] * (_factor(t, o, z) / above)
                        turn = _slope(t, o, z) - _slope(t, present[same], game.without[same])
                        out[row, column, k] += game.weight[q] * term * turn
                        total[node, q] += term
                if node == 0:
                    continue
                over = game.parent[node]
                column, same = game.tested[over], game.same[over]
                for q in range(n_points):
                    t = game.point[q]
                    turn = _slope(t, present[node], game.without[node])
                    turn -= _slope(t, present[same], game.without[same])
                    out[row, column, k] += game.weight[q] * total[node, q] * turn
                    total[over, q] += total[node, q]


class ShapValues(NamedTuple):
    """Shapley values of some rows.

    Attributes
    ----------
    values : float64 array of shape (n_rows, n_features), or (n_rows, n_features, n_classes)
        Contribution of each column to the mean target, or to the probability of each class. Of
        several targets the last axis has the targets, or the classes of one after the other.
    base_values : float64, or array of shape (n_classes,)
        The prediction where no column is known; of several targets an array as long as that axis.
    """

    values: Floats
    base_values: Any


def shap_values(estimator: Any, X: Any) -> ShapValues:
    """Exact Shapley values of a fitted tree's predictions, for every kind of tree.

    ``values.sum(axis=1) + base_values`` is `predict` of a regressor and `predict_proba` of a
    classifier, but for rounding. For an unknown column a row goes to all children, in proportion to
    the training weights: the "tree_path_dependent" game of the shap package, here also for multiway
    splits, categories, rows that stop at a node, and missing values that are sent down all branches
    with fractional weights (where they have a value of exactly 0).

    Parameters
    ----------
    estimator : fitted estimator
        One of a tree, or a forest, whose values are the mean over its trees.
    X : array-like of shape (n_rows, n_features)
        As in `predict`.

    Returns
    -------
    ShapValues

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        It is none of gputree's.
    ValueError
        X is not a table as in `fit`.
    MemoryError
        The values do not fit the memory.

    Notes
    -----
    The time is proportional to rows x nodes x half the number of columns on the longest path.
    `export_lightgbm` gives the same numbers for binary trees whose weights are integers, by
    ``Booster.predict(X, pred_contrib=True)``; `to_sklearn` those of trees without categories, by
    ``shap.TreeExplainer``.

    References
    ----------
    S. Lundberg et al. From Local Explanations to Global Understanding with Explainable AI for
    Trees. Nature Machine Intelligence 2, 2020.
    G. Owen. Multilinear Extensions of Games. Management Science 18, 1972.

    Examples
    --------
    >>> from gputree import C45Classifier
    >>> from gputree.datasets import load_golf
    >>> from gputree.export import shap_values
    >>> golf = load_golf()
    >>> tree = C45Classifier().fit(golf.data, golf.target)
    >>> found = shap_values(tree, [["sunny", "mild", "high", "weak"]])
    >>> found.values[0, :, 0].round(3)  # what speaks for "no": outlook, ..., humidity, wind
    array([ 0.443,  0.   ,  0.271, -0.071])
    """
    if members := averaged(estimator):
        each = [shap_values(member, X) for member in members]
        means = [sum(parts) / len(members) for parts in zip(*each, strict=True)]
        return ShapValues(*means)
    tree = tree_of(estimator)
    forbid_soft_thresholds(tree)
    require_estimator(estimator, "shap_values")
    values = estimator._descend(shapley_values, X)
    base = expected_answer(tree)
    if tree.task == "regression" and tree.n_outputs == 1:
        return ShapValues(values[:, :, 0], base[0])
    return ShapValues(values, base)
