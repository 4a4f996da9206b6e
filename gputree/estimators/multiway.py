"""Multiway growth over attribute lists: the base class of ID3 and C4.5, and ID3.

Source of ID3: Quinlan, Induction of decision trees, Machine Learning 1 (1986).
"""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

from numpy.typing import NDArray

from gputree.backends.devices import resolve_device
from gputree.base.dtypes import Weight
from gputree.base.threads import n_threads
from gputree.estimators.arguments import ID3_LACKS, interactions
from gputree.estimators.base import count_rows
from gputree.estimators.classification import TreeClassifier
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.column_warnings import warn_of_quantities
from gputree.estimators.documentation import MULTIWAY_TREE, OF_MULTIWAY_TREES, document
from gputree.estimators.growing_lists import ListOptions, grow_lists
from gputree.estimators.parameters import LabelParameters, MultiwayParameters, keyword_constructor
from gputree.growth.lists import InformationGain
from gputree.inputs.tables import Table
from gputree.tree import Tree


class MultiwayTree(LabelParameters, MultiwayParameters, TreeClassifier):
    """Growth of both multiway classifiers."""

    _order: ClassVar[Literal["C", "F"]] = "F"

    def _grow_tree(self, table: Table, target: NDArray, weight: Weight, n: int) -> Tree:
        options = self._options(n, target.size)

        def grow(device: str) -> Tree:
            self.growth_report_ = {"device": device}
            columns = table.compact().lists(options.n_threads)  # growth uses them up
            return grow_lists(columns, target, weight, options._replace(device=device))

        return table.within_memory(self.device, options.device, grow)

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
        return resolve_device(self.device, bool(self.verbose))


@document(OF_MULTIWAY_TREES, MULTIWAY_TREE)
@keyword_constructor
class ID3Classifier(MultiwayTree):
    """ID3: splits by information gain, one branch per value.

    Every distinct value of a column, numbers and ordered categories included, is a category;
    missing values are one more. A node is a leaf if it is pure, if no column varies in it, or if no
    gain reaches `min_gain`. For a value without a branch the majority class of the node is
    predicted.

    A warning names columns of fractions, and of integers with more than 20 distinct values or
    fewer than two rows per value, unless their type or `categorical_features` declares them
    categorical.

    Parameters
    ----------
    pruning : Pruner, str or None, default=None
        A method of `gputree.pruning`, or its short name.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from gputree import ID3Classifier
    >>> from gputree.datasets import load_golf
    >>> X, y = load_golf(return_X_y=True)
    >>> ID3Classifier().fit(X, y).score(X, y)
    1.0
    """

    _every_nominal: ClassVar[bool] = True
    _lacks = ID3_LACKS

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        fitted = super()._fit_afresh(X, y, sample_weight)
        if not isinstance(X, CodedTable):  # its categorical columns are declared
            warn_of_quantities(self, X)
        return fitted

    def _options(self, n: int, n_weighted: int) -> ListOptions:
        return ListOptions(
            rule=InformationGain(float(self.min_gain)),
            missing_is_category=True,
            every_category=False,
            one_against_rest=False,
            by_gain=True,
            min_branch_weight=0.0,
            cut_share=0.0,
            max_cut_weight=0.0,
            leaves_per_weight=0.0,
            actual_values=False,
            **self._shared_options(n),
        )
