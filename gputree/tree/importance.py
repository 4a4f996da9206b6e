"""Importance of columns."""

from collections.abc import Iterable

import numpy as np

from gputree.base.dtypes import Floats
from gputree.tree import Tree


def impurity_importances(tree: Tree, normalize: bool = True) -> Floats:
    """Total decrease of impurity by the splits on each column (Breiman et al. 1984, 5.3.4).

    Normalized, they add up to 1 where there are splits.
    """
    inner = ~tree.is_leaf
    decrease = tree.gain[inner] * tree.weight[inner] / tree.weight[0]
    total = np.zeros(tree.n_features)
    np.add.at(total, tree.feature[inner], decrease)
    whole = total.sum()
    return total / whole if normalize and whole > 0 else total


def mean_importances(trees: Iterable[Tree]) -> Floats:
    """Mean of the normalized importances of trees, normalized again: those without splits add none.

    Zeros where no tree has splits.
    """
    mean: Floats = np.mean([impurity_importances(tree) for tree in trees], axis=0)
    return mean / (mean.sum() or 1.0)
