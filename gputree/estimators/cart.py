"""CART: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees (1984)."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from gputree.backends.devices import resolve_device, to_host
from gputree.base.dtypes import Floats, Int32s, Weight
from gputree.base.threads import n_threads
from gputree.errors import InputError
from gputree.estimators.arguments import (
    CART_LACKS,
    REGRESSOR_LACKS,
    explained,
    interactions,
    monotonic_signs,
    refuses,
)
from gputree.estimators.base import BaseDecisionTree, count_rows
from gputree.estimators.classification import TreeClassifier
from gputree.estimators.documentation import (
    OF_CLASSES,
    OF_TARGETS,
    TREE_OF_CLASSES,
    TREE_OF_TARGETS,
    document,
)
from gputree.estimators.forced_splits import grow_forced
from gputree.estimators.growing import UNLIMITED_DEPTH, Options, grow_tree
from gputree.estimators.growing_forests import grow_stacked_trees, grow_whole_trees
from gputree.estimators.growing_ranked import grow_ranked, grow_targets, is_ranked
from gputree.estimators.parameters import (
    ClassificationParameters,
    LabelParameters,
    RegressionParameters,
    TreeParameters,
    keyword_constructor,
)
from gputree.estimators.table_estimator import TableRegressor
from gputree.growth.assembly import WholeTrees
from gputree.inputs.tables import Table
from gputree.inputs.targets import forbid_targets
from gputree.pruning import CostComplexity, cost_complexity_path
from gputree.tree import Tree


class Cart(TreeParameters, BaseDecisionTree):
    """Parameters, growth and the pruning path of both CART estimators."""

    _grows_on_device = True
    _takes_targets = True
    growth_report_: dict[str, Any]

    _shares_codes = True
    _draws_cuts = False  # as forests may, which refuse some criteria then
    quantile = 0.5
    _warns = True  # of weights or targets that fixed point is too coarse for
    _lacks = CART_LACKS

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._forbid_two_prunings()
        return super()._fit_afresh(X, y, sample_weight)

    def _forbid_two_prunings(self) -> None:
        if self.ccp_alpha > 0.0 and self.pruning is not None:
            raise InputError(
                f"{type(self).__name__} takes 'ccp_alpha' or 'pruning', not both; got "
                f"ccp_alpha={self.ccp_alpha!r} and pruning={self.pruning!r}."
            )

    def _cut_back(self) -> None:
        if self.ccp_alpha > 0.0:
            self.tree_ = CostComplexity(self.ccp_alpha).prune_tree(self.tree_)

    def _grow_tree(self, table: Table, target: NDArray, weight: Weight, n: int) -> Tree:
        signs = monotonic_signs(self, table.columns)
        options = self._options(n, table.shape[1], table.device)._replace(signs=signs)
        of_sums = grow_tree if target.ndim == 1 else grow_targets
        search = grow_ranked if is_ranked(self) else of_sums
        if self.forced_splits is not None:
            kind = type(self).__name__
            forbid_targets(self.n_outputs_, f"forced_splits of {kind}", "Leave it out.")
            self.growth_report_ = {"device": "cpu"}
            return grow_forced(self, table, target, weight, options)

        def grow(device: str) -> Tree:
            labels = to_host(target) if device == "cpu" else target
            grown = search(table, labels, weight, options._replace(device=device))
            self.growth_report_ = {"device": device, **grown.report}
            return grown.tree

        return table.within_memory(self.device, options.device, grow)

    def _grows_whole(self, table: Table) -> bool:
        """Return True if trees on the rows of a table need no more than `grow_whole_trees` does."""
        plain = self.ccp_alpha == 0.0 and not table.columns.nominal.any()
        plain = plain and self.max_leaf_nodes is None
        plain = plain and monotonic_signs(self, table.columns) is None
        return plain and self._grows_stacked(table)

    def _grows_stacked(self, table: Table) -> bool:
        """Return True if trees need no more than `grow_stacked_trees` does."""
        of_sums = not is_ranked(self) and getattr(self, "n_outputs_", 1) == 1
        return of_sums and table.sharding is None

    def _grow_stacked(
        self, table: Table, target: NDArray, drawn: Iterable[Any], trees: list[Any]
    ) -> None:
        """Grow the trees of copies of this estimator on a device, with their `drawn` weights."""
        signs, shape = monotonic_signs(self, table.columns), (len(target), table.shape[1])
        options = [tree._options(*shape, table.device)._replace(signs=signs) for tree in trees]
        grown = grow_stacked_trees(table, target, drawn, options)
        for tree, found in zip(trees, grown, strict=True):
            tree.tree_ = found
            tree._cut_back()

    def _grow_whole(
        self, table: Table, target: NDArray, drawn: Int32s | None, seeds: list[int]
    ) -> list[WholeTrees] | None:
        """Grow trees that differ in `drawn` rows and in seeds; None where they need levels."""
        d = table.shape[1]
        options = self._options(len(target), d, table.device)._replace(warns=False)
        draws = options.max_features < d or options.draws_cuts or options.random_ties
        keys = np.array([_column_key(seed, draws) for seed in seeds], np.uint64)
        return grow_whole_trees(table, target, drawn, options, keys)

    @property
    def _formula(self) -> str:
        """The criterion by the name that trees have."""
        return "entropy" if self.criterion == "log_loss" else self.criterion

    def _options(self, n: int, d: int, device: str | None) -> Options:
        """The parameters' meaning for a table of n rows and d columns."""
        max_features = column_count(self.max_features, d)
        draws_cuts, random_ties = self.splitter == "random", self.ties == "random"
        n_classes: int | list[int] = getattr(self, "n_classes_", 0)
        return Options(
            criterion=self._formula,
            n_classes=n_classes if isinstance(n_classes, int) else sum(n_classes),
            target_classes=() if isinstance(n_classes, int) else tuple(n_classes),
            max_depth=None if self.max_depth is None else min(int(self.max_depth), UNLIMITED_DEPTH),
            min_samples_split=max(count_rows(self.min_samples_split, n), 2),
            min_samples_leaf=count_rows(self.min_samples_leaf, n),
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            min_impurity_decrease=self.min_impurity_decrease,
            max_features=max_features,
            max_leaf_nodes=self.max_leaf_nodes,
            exact=self.splitter != "binned",
            draws_cuts=draws_cuts,
            random_ties=random_ties,
            max_bins=int(self.max_bins),
            device=device if device and ":" not in self.device else self._device(),
            max_device_memory=self.max_device_memory,
            n_threads=n_threads(self.n_jobs),
            key=_column_key(self.random_state, max_features < d or draws_cuts or random_ties),
            verbose=bool(self.verbose),
            categorical_split=self.categorical_split,
            warns=self._warns,
            interactions=interactions(self, d),
            quantile=self.quantile if self._formula == "quantile" else None,
        )

    def _device(self) -> str:
        """Device of growth: "auto" is the CPU where that alone finds such trees."""
        on_cpu = self.splitter == "random" or is_ranked(self) or self.forced_splits is not None
        on_cpu = on_cpu or getattr(self, "n_outputs_", 1) > 1
        if on_cpu and self.device == "auto":
            return "cpu"
        return resolve_device(self.device, bool(self.verbose))

    def cost_complexity_pruning_path(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Bunch:
        """Effective alphas of cost-complexity pruning, and the impurity of the remaining leaves.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or CodedTable of shape (n_rows, n_features)
            As for `fit`.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        path : Bunch
            ``ccp_alphas`` and ``impurities``, float64 arrays.
        """
        grown = type(self)(**{**self.get_params(deep=False), "ccp_alpha": 0.0, "pruning": None})
        path = cost_complexity_path(grown.fit(X, y, sample_weight).tree_)
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities)


_of_thread = threading.local()  # .generator


def _column_key(random_state: Any, drawn: bool) -> int:
    """Seed of the draws at nodes, 0 without any; a shared generator advances in any case."""
    if not isinstance(random_state, Integral):
        generator = check_random_state(random_state)
    elif drawn:
        generator = _generator()
        generator.seed(int(random_state))
    else:
        return 0
    return int(generator.randint(np.iinfo(np.int32).max))


def _generator() -> np.random.RandomState:
    """One of this thread, to be seeded: that takes 3 microseconds, and to make one takes 90."""
    if not hasattr(_of_thread, "generator"):
        _of_thread.generator = np.random.RandomState(0)
    found: np.random.RandomState = _of_thread.generator
    return found


def column_count(max_features: Any, d: int) -> int:
    """Number of columns to draw at a node."""
    if max_features is None:
        return d
    if max_features == "sqrt":
        return max(1, int(np.sqrt(d)))
    if max_features == "log2":
        return max(1, int(np.log2(d)))
    if isinstance(max_features, Integral):
        return min(int(max_features), d)
    return max(1, int(max_features * d))


@document(OF_CLASSES, TREE_OF_CLASSES)
@keyword_constructor
class DecisionTreeClassifier(ClassificationParameters, LabelParameters, Cart, TreeClassifier):
    """A CART decision tree for classification.

    Numeric columns are split at the threshold of the largest impurity decrease, and categorical
    ones into two subsets of categories; missing values (None, NaN, NA) go to the child with the
    larger impurity decrease. The same data give the same tree, bit for
    bit, for any number of threads and any order of rows.

    Categories unseen in a node go where missing values go; without missing values in training, to
    the child of the larger weight.

    {sections}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gputree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> tree.get_n_leaves(), round(tree.score(X, y), 3)
    (3, 0.96)
    """

    _refuses = refuses("DecisionTreeClassifier")


@document(OF_TARGETS, TREE_OF_TARGETS)
@keyword_constructor
class DecisionTreeRegressor(RegressionParameters, TableRegressor, Cart):
    """A CART decision tree for regression.

    Numeric columns are split at the threshold of the largest impurity decrease, and categorical
    ones into two subsets of categories; missing values (None, NaN, NA) go to the child with the
    larger impurity decrease. The same data give the same tree, bit for
    bit, for any number of threads and any order of rows.

    Categories unseen in a node go where missing values go; without missing values in training, to
    the child of the larger weight.

    Targets are rounded to fixed point, with an error of at most 2**-52 of their range or, on many
    rows, 2**-60 of rows x range.

    {sections}

    Examples
    --------
    >>> import numpy as np
    >>> from gputree import DecisionTreeRegressor
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> DecisionTreeRegressor().fit(X, [1, 1, 1, 5, 5, 5]).predict([[0.5], [4.5]])
    array([1., 5.])
    """

    _lacks = REGRESSOR_LACKS
    _refuses = refuses("DecisionTreeRegressor")

    @explained
    def predict(self, X: Any) -> Floats:
        check_is_fitted(self, "tree_")
        answers = self.tree_.answers
        return self._take(answers[:, 0] if self.tree_.n_outputs == 1 else answers, X)
