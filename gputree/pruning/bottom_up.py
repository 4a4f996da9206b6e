"""Pruning in one pass over the nodes: mostly bottom-up, a choice between a subtree and a leaf.

Collapse of subtrees that save no training error, as C4.5 and J48 do before they prune.
"""

from numbers import Real

import numpy as np

from gputree.base.dtypes import Bools, Floats, Int32s
from gputree.base.sklearn import Interval
from gputree.base.texts import fill
from gputree.compilation import kernel
from gputree.criteria import node_entropies
from gputree.errors import InputError
from gputree.inputs.targets import forbid_targets
from gputree.prediction.losses import node_loss
from gputree.pruning.base import HELD_OUT, Pruner, Rows, ValidationPruner
from gputree.tree import Tree
from gputree.tree.branches import add_up


def best_pruning(
    tree: Tree, leaf_cost: Floats, stopped_cost: Floats | float = 0.0, slack: float = 0.0
) -> Bools:
    """Inner nodes to collapse for the minimum total cost of the leaves.

    Dynamic programming from the last node to the first: a node becomes a leaf unless its subtree,
    itself pruned best, costs less by more than `slack`. `leaf_cost` is the cost of each node as a
    leaf, `stopped_cost` the cost of rows that stop at an inner node. With no slack the result has
    the minimum cost of all prunings of the tree and, as ties prune, it is the smallest of those.
    """
    cost = leaf_cost.astype(np.float64)
    stopped = np.broadcast_to(np.float64(stopped_cost), cost.shape)
    collapse = np.zeros(tree.n_nodes, dtype=np.bool_)
    _prune(tree.first_child, tree.n_children, stopped, slack, cost, collapse)
    return collapse


@kernel
def _prune(
    first_child: Int32s,
    n_children: Int32s,
    stopped: Floats,
    slack: float,
    cost: Floats,
    collapse: Bools,
) -> None:
    """Mark the nodes that cost no more as leaves; `cost` becomes the one of the pruned subtrees."""
    for node in range(cost.size - 1, -1, -1):  # children before parents
        if n_children[node] == 0:
            continue
        first = first_child[node]
        others = 0.0
        for child in range(first + 1, first + n_children[node]):
            others += cost[child]
        subtree = stopped[node] + (cost[first] + others)
        collapse[node] = cost[node] <= subtree + slack
        if not collapse[node]:
            cost[node] = subtree


LEAST_SAVING = 1e-3  # a subtree must save more errors than this, in C4.5 and J48 alike


def collapse_splits(tree: Tree) -> Tree:
    """The tree without subtrees that reduce no training errors.

    A subtree whose leaves make as many training errors as its root would as a leaf, less at
    most 0.001, becomes a leaf. Every subtree is evaluated as grown, as in J48; C4.5 Release 8
    evaluates it with those below it collapsed, so that the 0.001 adds up.

    Parameters
    ----------
    tree : Tree
        Classification tree.

    Returns
    -------
    Tree
        Renumbered breadth-first.

    Raises
    ------
    ValueError
        If `tree` is a regression tree.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993.
    """
    if tree.task != "classification":
        raise InputError(
            "collapse_splits counts misclassified rows and needs a classification tree. "
            f"Got a {tree.task} tree."
        )
    forbid_targets(tree.n_outputs, "collapse_splits", "Prune by CostComplexity.")
    errors = tree.weight - tree.statistics.max(axis=1)
    of_leaves = add_up(tree.parent, np.where(tree.is_leaf, errors, 0.0))
    return tree.collapse(of_leaves >= errors - LEAST_SAVING)


@fill(held_out=HELD_OUT)
class ReducedError(ValidationPruner):
    """The smallest pruning with the minimum loss on validation rows.

    Bottom-up, a node becomes a leaf if its loss on the validation rows is at most that of its
    pruned subtree. The loss is the weight of misclassified rows, the
    sum of squared errors, or half the Poisson deviance where the tree was grown by
    that. Nodes that no validation row reaches become leaves.

    Parameters
    ----------
    {held_out}

    References
    ----------
    J. R. Quinlan. Simplifying decision trees. International Journal of
    Man-Machine Studies 27 (1987), 221-234.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.pruning import ReducedError
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier().fit(X[::2], y[::2])
    >>> pruned = ReducedError().prune(tree, X[1::2], y[1::2])
    >>> tree.get_n_leaves(), pruned.get_n_leaves()
    (6, 4)
    """

    _takes_targets = True

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """The pruning of `tree` of minimum loss on `data`, the validation rows."""
        self._validate_params()
        loss = node_loss(tree, self._require_rows(data))
        return tree.collapse(best_pruning(tree, loss.as_leaf, loss.stopped, loss.slack))


class PenalizedLoss(Pruner):
    """The pruning of minimum C_alpha(T) = sum of N_t H_t + alpha * leaves(T).

    N_t is the weight and H_t the entropy of leaf t in bits, whatever the criterion the tree was
    grown by; for regression N_t H_t is the leaf's sum of squared errors, or half its Poisson
    deviance where the tree was grown by that. Where a leaf costs no more than its subtree, the
    subtree is pruned. The minimum of all prunings is found in one bottom-up pass.

    A tree grown and pruned by entropy with scikit-learn's ``ccp_alpha = alpha /
    N``, N the weight of all rows, is the same tree.

    Parameters
    ----------
    alpha : float, default=1.0
        Cost per leaf, in bits times weight (classification) or in units of the
        impurity times weight (regression).

    References
    ----------
    Li Hang. Statistical Learning Methods, 2nd ed. Tsinghua University Press,
    2019. Equation 5.11 and algorithm 5.4.

    Examples
    --------
    >>> from gputree import ID3Classifier
    >>> from gputree.datasets import load_loan
    >>> from gputree.pruning import PenalizedLoss
    >>> X, y = load_loan(return_X_y=True)
    >>> tree = ID3Classifier().fit(X, y)
    >>> [PenalizedLoss(alpha).prune(tree).get_n_leaves() for alpha in (1, 10)]
    [3, 1]
    """

    _parameter_constraints = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, None, closed="left")]
    }

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """The pruning of `tree` with the minimum penalised loss; `data` is not used."""
        self._validate_params()
        self.check_targets(tree.n_outputs)
        return tree.collapse(best_pruning(tree, training_loss(tree) + self.alpha))


def training_loss(tree: Tree) -> Floats:
    """N_t H_t of each node in bits, or of its targets by the criterion it was grown by."""
    if tree.task == "regression":
        return tree.weight * tree.impurity
    weight = tree.statistics.sum(axis=1)
    entropies = node_entropies(np.where(weight[:, None] > 0, tree.statistics, 1.0))
    return weight * entropies


@fill(held_out=HELD_OUT)
class ValidationPrePruning(ValidationPruner):
    """Keep a split only if its children, as leaves, have a lower validation loss.

    A split is kept if it reduces the loss on the validation rows: the weight of misclassified rows,
    the sum of squared errors, or half the Poisson deviance where the tree was grown by that.
    Everything below a split that does not is never reached. Unlike `ReducedError` it looks at one
    split at a time, so it misses splits that reduce the loss only together with those below them.

    The check runs over the fully grown tree. This gives the tree that growing
    with the check would give: which split a node gets depends on the node's own
    training rows alone, so the nodes are independent.

    Parameters
    ----------
    {held_out}

    References
    ----------
    Zhou Zhihua. Machine Learning. Springer, 2021. Section 4.3.1.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.pruning import ValidationPrePruning
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(pruning=ValidationPrePruning(0.3, random_state=0)).fit(X, y)
    >>> tree.unpruned_tree_.n_leaves, tree.get_n_leaves()
    (7, 4)
    """

    _takes_targets = True

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """`tree` without the splits that do not improve on `data`, the validation rows."""
        self._validate_params()
        loss = node_loss(tree, self._require_rows(data))
        split = tree.sum_over_children(loss.as_leaf) + loss.stopped
        return tree.collapse(split >= loss.as_leaf - loss.slack)
