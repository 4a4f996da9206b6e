"""Reduced-error pruning (Quinlan 1987): bottom-up, by errors on validation rows."""

from __future__ import annotations

from gputree.base.texts import fill
from gputree.prediction.losses import node_loss
from gputree.pruning.base import HELD_OUT, Rows, ValidationPruner
from gputree.pruning.bottom_up import best_pruning
from gputree.tree import Tree


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
        """The pruning of `tree` of minimum loss on `data`, the validation rows.

        Raises
        ------
        ValueError
            If `data` is None.
        """
        self._validate_params()
        loss = node_loss(tree, self._require_rows(data))
        return tree.collapse(best_pruning(tree, loss.as_leaf, loss.stopped, loss.slack))
