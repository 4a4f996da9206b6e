"""Base class of ID3 and C4.5: multiway growth over attribute lists."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree._sklearn import Interval, StrOptions, fit_context
from gputree.backends.devices import resolve_device
from gputree.estimators.arguments import explained
from gputree.estimators.base import BaseDecisionTree, count_rows
from gputree.estimators.classification import CLASSES, TreeClassifier
from gputree.estimators.growing_lists import ListOptions, grow_lists
from gputree.tables import Table
from gputree.threads import n_threads
from gputree.tree import Tree


class MultiwayTree(TreeClassifier):
    """Parameters and growth of both multiway classifiers."""

    max_depth: int | None
    min_samples_split: float
    min_gain: float
    device: str
    max_device_memory: int | None
    n_jobs: int | None
    verbose: int

    _order: ClassVar[Literal["C", "F"]] = "F"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseDecisionTree._parameter_constraints,
        "max_device_memory": [Interval(Integral, 1, None, closed="left"), None],
        "min_gain": [Interval(Real, 0.0, None, closed="left")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "classes": CLASSES,
        "misclassification_costs": ["array-like", dict, None],
    }

    @explained
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow and prune the tree.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_rows, n_features)
            Numbers and categories; None, NaN or NA where missing.
        y : array-like of shape (n_rows,)
            Class labels: integers, strings or booleans.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative weights; rows of weight zero take no part.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _grow_tree(
        self, table: Table, target: NDArray, weight: NDArray[np.float64] | None, n: int
    ) -> Tree:
        options = self._options(n, target.size)
        self.growth_report_ = {"device": options.device}
        columns = table.compact().lists(options.n_threads)
        return grow_lists(columns, target, weight, options)

    @abstractmethod
    def _options(self, n: int, n_weighted: int) -> ListOptions:
        """Resolve the parameters for a table of n rows, `n_weighted` of them with weight."""

    def _shared_options(self, n: int) -> dict[str, Any]:
        """Options that mean the same to both."""
        return {
            "n_classes": self.n_classes_,
            "nominal": self.columns_.nominal,
            "n_categories": self.columns_.n_categories,
            "max_depth": self.max_depth,
            "min_samples_split": max(count_rows(self.min_samples_split, n), 2),
            "device": self._device(),
            "max_device_memory": self.max_device_memory,
            "n_threads": n_threads(self.n_jobs),
            "verbose": bool(self.verbose),
        }

    def _device(self) -> str:
        """Device on which the tree is grown: "cpu" or "cuda"."""
        return resolve_device(self.device, bool(self.verbose))
