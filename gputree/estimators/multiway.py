"""What ID3 and C4.5 share: multiway growth over attribute lists."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from gputree.estimators.base import BaseDecisionTree, count_rows, n_threads
from gputree.estimators.classification import TreeClassifier
from gputree.estimators.growing_lists import ListOptions, grow_lists
from gputree.tree import Tree

PARAMETERS = """max_depth : int, default=None
        Greatest depth of the tree; None for no limit.
    min_samples_split : int or float, default=2
        Fewest rows of a node that may be split; a float is a share of all rows.
    min_gain : float, default=0.0
        Least information gain of a split, in bits.
    categorical_features : "auto", None or array-like, default="auto"
        Columns of categories: by dtype (text, categoricals, booleans), or their names, indices
        or a mask. Text is always categorical.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, multiplied into the sample weights.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that a pruner holds out, if it has no random state of its own.
        Growth is not random.
    device : "auto", "cpu" or "cuda", default="auto"
        Where the tree is grown; the tree is the same everywhere.
    n_jobs : int, default=None
        Threads; None for all. The tree does not depend on it.
    verbose : int, default=0
        Show a progress bar where standard error is a terminal."""

ATTRIBUTES = """classes_ : array of shape (n_classes_,)
        Class labels, ascending.
    n_classes_ : int
    tree_ : Tree
        The tree, after pruning, as arrays.
    unpruned_tree_ : Tree
        The tree as it was grown.
    columns_ : Columns
        What each column holds; the categories of those that have any.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where X has string names.
    n_outputs_ : int
        1."""


def document(cls: type) -> type:
    """Fill the shared parts of a class docstring."""
    if cls.__doc__:  # python -OO has none
        cls.__doc__ = cls.__doc__.replace("{parameters}", PARAMETERS).replace(
            "{attributes}", ATTRIBUTES
        )
    return cls


class MultiwayTree(TreeClassifier):
    """Parameters and growth of both multiway classifiers."""

    max_depth: int | None
    min_samples_split: float
    min_gain: float
    device: str
    n_jobs: int | None
    verbose: int

    _order: ClassVar[Literal["C", "F"]] = "F"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseDecisionTree._parameter_constraints,
        "min_gain": [Interval(Real, 0.0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def _grow_tree(
        self, values: NDArray, target: NDArray, weight: NDArray[np.float64] | None, n: int
    ) -> Tree:
        return grow_lists(values, target, weight, self._options(n, target.size))

    @abstractmethod
    def _options(self, n: int, n_weighted: int) -> ListOptions:
        """The parameters' meaning for a table of n rows, of which so many have weight."""

    def _shared_options(self, n: int) -> dict[str, Any]:
        """Options that mean the same to both."""
        return {
            "n_classes": self.n_classes_,
            "nominal": self.columns_.nominal,
            "n_categories": self.columns_.n_categories,
            "max_depth": self.max_depth,
            "min_samples_split": max(count_rows(self.min_samples_split, n), 2),
            "device": self.device,
            "n_threads": n_threads(self.n_jobs),
            "verbose": bool(self.verbose),
        }
