"""Pessimistic (error-based) pruning (Quinlan 1993, chapter 4): no rows are held out."""

from numbers import Real

from gputree.base.sklearn import Interval, StrOptions
from gputree.errors import InputError
from gputree.pruning.base import Pruner, Rows, TrainingRows
from gputree.pruning.bottom_up import best_pruning
from gputree.pruning.error_limit import Quantile, error_limit, limit_errors
from gputree.tree import Tree

SLACK = 0.1  # a leaf may be this many errors worse than its subtree, in C4.5 and J48 alike


class Pessimistic(Pruner):
    """Pruning by an upper confidence limit of the training errors, as C4.5 does it.

    The errors of each leaf on its training rows are estimated by the upper limit of a binomial
    confidence interval. Bottom-up, a node becomes a leaf, or is replaced by its largest branch, if
    that increases the estimate of its pruned subtree by at most 0.1 errors. Classification only.

    Parameters
    ----------
    confidence : float in (0, 1), default=0.25
        The smaller, the more is pruned. With ``quantile="exact"`` values above
        0.5 add nothing to the observed errors.
    subtree_raising : bool, default=True
        Whether a node may be replaced by its largest branch (subtree raising). The node's training
        rows then go down that branch, so that pruning needs them; False only
        replaces subtrees by leaves, and needs no rows.
    quantile : {"exact", "release8"}, default="exact"
        How a confidence becomes a normal deviate: the exact quantile, or linear interpolation in
        C4.5 Release 8's table, including its formula for leaves with almost no correct row.

    References
    ----------
    J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993.
    Chapter 4.

    Examples
    --------
    >>> from gputree import C45Classifier
    >>> from gputree.datasets import load_golf
    >>> from gputree.pruning import Pessimistic
    >>> X, y = load_golf(return_X_y=True)
    >>> tree = C45Classifier(pruning=None).fit(X, y)
    >>> [Pessimistic(c).prune(tree, X, y).get_n_leaves() for c in (0.25, 0.05)]
    [5, 1]
    """

    takes_training_rows = True

    _parameter_constraints = {  # noqa: RUF012
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "subtree_raising": ["boolean"],
        "quantile": [StrOptions({"exact", "release8"})],
    }

    def __init__(
        self, confidence: float = 0.25, subtree_raising: bool = True, quantile: Quantile = "exact"
    ) -> None:
        self.confidence = confidence
        self.subtree_raising = subtree_raising
        self.quantile = quantile

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """Prune one tree; with subtree raising, `data` are the rows that it was grown on.

        ValueError for a regression tree, or if rows are needed and not given.
        """
        self._validate_params()
        self.check_targets(tree.n_outputs)
        if tree.task != "classification":
            raise InputError(
                "Pessimistic prunes by misclassified rows and needs a classification tree. "
                f"Got a {tree.task} tree."
            )
        limit = error_limit(self.confidence, self.quantile)
        if not self.subtree_raising:
            as_leaf = limit_errors(tree.statistics, limit)
            return tree.collapse(best_pruning(tree, as_leaf, slack=SLACK))
        if not isinstance(data, TrainingRows):
            raise InputError(
                "Pessimistic with subtree_raising=True sends training rows down the raised "
                "branches: pass X and y as used for growing, or set subtree_raising=False."
            )
        from gputree.pruning.subtree_raising import prune_and_raise  # its kernels are many

        return prune_and_raise(tree, data, limit, SLACK)
