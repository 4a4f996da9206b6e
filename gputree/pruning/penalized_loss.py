"""Pruning by a penalised loss (Li Hang, Statistical Learning Methods, section 5.4)."""

from __future__ import annotations

from numbers import Real

import numpy as np

from gputree.base.dtypes import Floats
from gputree.base.sklearn import Interval
from gputree.criteria import node_entropies
from gputree.pruning.base import Pruner, Rows
from gputree.pruning.bottom_up import best_pruning
from gputree.tree import Tree


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
