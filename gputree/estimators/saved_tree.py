"""A fitted tree as its model file has it: for those that show it, without an estimator's class.

An estimator needs scikit-learn, which takes longer to import than a tree to read and show.
"""

from __future__ import annotations

import os
from typing import Any

from gputree.costs import weighs_errors
from gputree.estimators.header_values import algorithm_of, completed, decode, field_of, refusing
from gputree.estimators.model_file import rebuild_several, unlisted
from gputree.persistence import read_contents
from gputree.tree import Tree


class SavedTree:
    """What a fitted estimator of one tree knows; its own class has the name of the estimator's.

    Parameters
    ----------
    tree : Tree
    misclassification_costs : object
        The parameter.
    """

    costs_ = None

    def __init__(self, tree: Tree, misclassification_costs: Any) -> None:
        self.tree_ = tree
        self.misclassification_costs = misclassification_costs

    @property
    def _weighs_errors(self) -> bool:
        return weighs_errors(self.costs_)


def read_saved(path: str | os.PathLike[str]) -> Any:
    """A `SavedTree`; of a file of several trees or rules the estimator.

    Parameters that a tree was grown by, which are not shown, are not looked at.

    Raises
    ------
    OSError, ValueError
        As `gputree.load_model`.
    """
    contents = read_contents(path)
    header, tree = contents.header, contents.trees[0]
    if "trees" in header:
        return rebuild_several(str(path), contents)
    columns = unlisted(path, contents)
    with refusing(str(path), header):
        kind = type(algorithm_of(header, tree), (SavedTree,), {})
        costs = field_of(header, "params", dict).get("misclassification_costs")
        return completed(kind(tree, decode(costs)), header, [tree], columns)
