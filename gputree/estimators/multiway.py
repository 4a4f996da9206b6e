"""Base class of ID3 and C4.5: multiway growth over attribute lists."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from gputree.backends.devices import resolve_device
from gputree.base.threads import n_threads
from gputree.estimators.base import count_rows
from gputree.estimators.classification import TreeClassifier
from gputree.estimators.growing_lists import ListOptions, grow_lists
from gputree.estimators.interaction_groups import interactions
from gputree.estimators.parameters import LabelParameters, MultiwayParameters
from gputree.inputs.tables import Table
from gputree.tree import Tree


class MultiwayTree(LabelParameters, MultiwayParameters, TreeClassifier):
    """Growth of both multiway classifiers."""

    _order: ClassVar[Literal["C", "F"]] = "F"

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
            "interactions": interactions(self, self.columns_.nominal.size),
        }

    def _device(self) -> str:
        """Device on which the tree is grown: "cpu" or "cuda"."""
        return resolve_device(self.device, bool(self.verbose))
