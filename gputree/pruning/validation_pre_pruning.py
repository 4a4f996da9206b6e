"""Pre-pruning by validation rows: top-down, a split is kept only if it improves the loss."""

from __future__ import annotations

from gputree.base.texts import fill
from gputree.prediction.losses import node_loss
from gputree.pruning.base import HELD_OUT, Rows, ValidationPruner
from gputree.tree import Tree


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
