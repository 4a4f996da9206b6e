"""Random forests (Breiman 2001) and extremely randomized trees (Geurts, Ernst, Wehenkel 2006)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gputree.backends.devices import to_host
from gputree.base.dtypes import Floats
from gputree.base.threads import n_threads
from gputree.ensemble.base import Forest
from gputree.ensemble.draws import Strata, class_draws, is_by_class
from gputree.ensemble.trees import Weight
from gputree.errors import InputError
from gputree.estimators.arguments import FOREST_LACKS, REGRESSOR_LACKS, explained, refuses
from gputree.estimators.cart import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.estimators.classification import TableClassifier
from gputree.estimators.documentation import (
    FOREST_OF_CLASSES,
    FOREST_OF_TARGETS,
    OF_CLASS_FORESTS,
    OF_TARGET_FORESTS,
    document,
)
from gputree.estimators.parameters import (
    BALANCED_SUBSAMPLE,
    SEARCH_PARAMETERS,
    ForestClassificationParameters,
    ForestRegressionParameters,
    ForestSearchParameters,
    keyword_constructor,
)
from gputree.estimators.table_estimator import TableRegressor
from gputree.inputs.tables import Table
from gputree.inputs.targets import ends_of, labels_of_codes, listed, padded, target_columns
from gputree.inputs.validation import check_labels, check_target_labels
from gputree.prediction.forest import mean_answers
from gputree.prediction.quantiles import LeafTargets, quantiles_of_targets

DRAWN_CUTS_LACK = dict.fromkeys(
    SEARCH_PARAMETERS, "cuts are drawn, on the CPU. Leave it out, or use a random forest."
)


class ForestClassifier(ForestClassificationParameters, TableClassifier, Forest):
    """A forest that averages the trees' class probabilities."""

    classes = None
    misclassification_costs = None

    _tree_class = DecisionTreeClassifier
    _lacks = FOREST_LACKS | {
        "quantreg": "classes have no quantiles; of numbers regressors know them."
    }

    @property
    def _balances_subsamples(self) -> bool:
        is_name = isinstance(self.class_weight, str)
        return is_name and self.class_weight == BALANCED_SUBSAMPLE

    def _joined(self, X: Any) -> Floats:
        return self._descend(mean_answers, X)

    def _strata(self, rows: Any) -> Strata | None:
        if not is_by_class(self.max_samples):
            return None
        draws = class_draws(self, rows.target)
        if rows.weight is not None:
            raise InputError(
                f"{type(self).__name__} draws the rows of a class evenly with max_samples by "
                "class: leave out sample_weight and class_weight."
            )
        return Strata.of(rows.target, draws)

    def _known_target(self, y: Any) -> NDArray:
        columns = target_columns(y) if self._has_targets else None
        check: Any = check_labels if columns is None else check_target_labels
        classes, codes = check(self, y if columns is None else columns, self._draws.n)
        if listed(classes) != listed(self.classes_):
            raise InputError(
                f"y must have the classes of fit: {listed(self.classes_)}; got {listed(classes)}."
            )
        return codes

    def _score_out_of_bag(self, table: Table, target: NDArray) -> None:
        found = self.oob_decision_function_ = self._out_of_bag(table)
        if self._has_targets:  # of shape (n_rows, most classes, n_outputs), as in scikit-learn
            self.oob_decision_function_ = padded(found, ends_of(self.classes_))
        predicted = ~np.isnan(found[:, 0])
        pairs = labels_of_codes(self.classes_, target[predicted]), self._answer(found[predicted])
        score = self.oob_score if callable(self.oob_score) else _accuracy
        self.oob_score_ = float(score(*pairs)) if predicted.any() else np.nan


def _accuracy(labels: NDArray[Any], found: NDArray[Any]) -> float:
    """Fraction of rows of which all labels are predicted."""
    return float((labels == found).reshape(len(labels), -1).all(axis=1).mean())


class ForestRegressor(ForestRegressionParameters, TableRegressor, Forest):
    """A forest that averages the trees' predictions."""

    _tree_class = DecisionTreeRegressor
    _lacks = FOREST_LACKS | REGRESSOR_LACKS

    _leaf_targets: list[LeafTargets]  # one a target

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state; pickles of older builds hold the targets of leaves without a list."""
        found = state.get("_leaf_targets")
        if isinstance(found, LeafTargets):
            state = state | {"_leaf_targets": [found]}
        super().__setstate__(state)

    @explained
    def predict(self, X: Any) -> Floats:
        found = self._descend(mean_answers, X)
        return found if self.n_outputs_ > 1 else found[:, 0]

    @explained
    def predict_quantiles(self, X: Any = None, quantiles: ArrayLike = (0.1, 0.5, 0.9)) -> Floats:
        """Conditional quantiles of the training targets, weighted by leaves that they share with x.

        The weight of a training row is its fraction of the weight of the leaf that x reaches, in
        the mean over the trees; as in the paper, all training rows of a leaf count, by their sample
        weights, whether the tree has drawn them or not. A quantile is the smallest target at which
        the sum of the weights of targets up to it reaches the level; there is no interpolation.
        Time increases with the number of training rows in leaves. Needs a forest fitted with
        ``quantreg=True``.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or None, default=None
            None for the training rows, out of the bag: each by the trees that have not drawn it,
            and without its own target; NaN where all have drawn it, or it has no weight.
        quantiles : float or array-like of float, default=(0.1, 0.5, 0.9)
            From 0 to 1.

        Returns
        -------
        targets : float64 array of shape (n_rows, n_quantiles); (n_rows,) for one float
            Of several targets, of shape (n_rows, n_outputs, n_quantiles), or (n_rows, n_outputs).

        Raises
        ------
        ValueError
            The forest was fitted without ``quantreg=True``, a quantile is not in [0, 1], or X is
            None and trees have all rows (``bootstrap=False``).

        References
        ----------
        N. Meinshausen. Quantile regression forests. Journal of Machine Learning Research 7,
        983-999, 2006.
        """
        check_is_fitted(self)
        if not hasattr(self, "_leaf_targets"):
            raise InputError(
                f"This {type(self).__name__} has not kept the targets that quantiles are made of: "
                "fit it with quantreg=True."
            )
        levels = np.atleast_1d(np.asarray(quantiles, np.float64))
        if levels.ndim != 1 or not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise InputError(f"Quantiles must be in the range [0, 1]; got {quantiles!r}.")
        order = np.argsort(levels)
        if X is None:
            found = self._out_of_bag_quantiles(levels[order])
        else:
            descent = partial(quantiles_of_targets, self._leaf_targets, levels=levels[order])
            found = self._descend(descent, X)
        out = np.empty_like(found)
        out[..., order] = found
        out = out if self.n_outputs_ > 1 else out[:, 0]
        return out if np.ndim(quantiles) else out[..., 0]

    def _out_of_bag_quantiles(self, levels: Floats) -> Floats:
        self._require_rows(self._draws.n, "predict_quantiles without X")
        threads = n_threads(self.n_jobs)
        drawn = [self._drawn(t) for t in range(len(self._trees))]
        trees = self._trees.packed(np.float64, threads)
        found = [of.out_of_bag(trees, drawn, threads, levels) for of in self._leaf_targets]
        return np.stack(found, axis=1)

    def _keep_targets(self, table: Table, target: NDArray, weight: Weight) -> None:
        values, threads = to_host(table.given), n_threads(self.n_jobs)
        trees = self._trees.packed(values.dtype, threads)
        self._leaf_targets = LeafTargets.of(trees, values, target, weight, threads)

    def _known_target(self, y: Any) -> NDArray:
        found = self._check_target(y, self._draws.n)
        counts = self.n_outputs_, 1 if found.ndim == 1 else found.shape[1]
        if counts[0] != counts[1]:
            raise InputError(f"y must have {counts[0]} targets, as in fit; got {counts[1]}.")
        return found

    def _score_out_of_bag(self, table: Table, target: NDArray) -> None:
        found = self._out_of_bag(table)
        predicted = ~np.isnan(found[:, 0])
        found = self.oob_prediction_ = found if self.n_outputs_ > 1 else found[:, 0]
        score = self.oob_score if callable(self.oob_score) else r2_score
        self.oob_score_ = (
            float(score(target[predicted], found[predicted])) if predicted.any() else np.nan
        )


_RANDOM_FORESTS = """Each tree is grown on rows drawn with replacement, and each node looks at some
    columns, drawn for it. Cuts are exact, categories and missing values are taken as they are, and
    the forest is the same, bit for bit, for any number of threads.

    {sections}

    References
    ----------
    L. Breiman. Random forests. Machine Learning 45, 5-32, 2001."""

_EXTRA_TREES = """In each node one cut of each drawn column is drawn evenly between the minimum and
    the maximum there (of categories, a subset; missing values go to a drawn side), and the best of
    these cuts is taken. The forest is the same, bit for bit, for any number of threads. It is grown
    on the CPU, from a table in memory.

    {sections}

    References
    ----------
    P. Geurts, D. Ernst, L. Wehenkel. Extremely randomized trees. Machine Learning 63, 3-42,
    2006."""


@document(OF_CLASS_FORESTS, FOREST_OF_CLASSES, forest=_RANDOM_FORESTS)
@keyword_constructor
class RandomForestClassifier(ForestSearchParameters, ForestClassifier):
    """A random forest for classification: exact trees on drawn rows and drawn columns.

    {forest}

    Examples
    --------
    >>> from gputree import RandomForestClassifier
    >>> from gputree.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> len(forest.estimators_), forest.predict(X[:2]).tolist()
    (20, ['setosa', 'setosa'])
    """

    _refuses: ClassVar[dict[tuple[str, str], str]] = {
        **refuses("RandomForestClassifier"),
        ("splitter", "random"): "ExtraTreesClassifier draws cuts.",
    }


@document(OF_TARGET_FORESTS, FOREST_OF_TARGETS, forest=_RANDOM_FORESTS)
@keyword_constructor
class RandomForestRegressor(ForestSearchParameters, ForestRegressor):
    """A random forest for regression: exact trees on drawn rows and drawn columns.

    {forest}

    Examples
    --------
    >>> import numpy as np
    >>> from gputree import RandomForestRegressor
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> forest = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, 2 * X[:, 0])
    >>> len(forest.estimators_), forest.predict(X[:1]).shape
    (20, (1,))
    """

    _refuses: ClassVar[dict[tuple[str, str], str]] = {
        **refuses("RandomForestRegressor"),
        ("splitter", "random"): "ExtraTreesRegressor draws cuts.",
    }


@document(OF_CLASS_FORESTS, FOREST_OF_CLASSES, forest=_EXTRA_TREES)
@keyword_constructor
class ExtraTreesClassifier(ForestClassifier):
    """Extremely randomized trees for classification: of each drawn column, one cut drawn at random.

    {forest}

    Examples
    --------
    >>> from gputree import ExtraTreesClassifier
    >>> from gputree.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = ExtraTreesClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> len(forest.estimators_), forest.predict(X[:2]).tolist()
    (20, ['setosa', 'setosa'])
    """

    bootstrap: bool = False

    _draws_cuts = True
    device = "cpu"
    _lacks = ForestClassifier._lacks | DRAWN_CUTS_LACK
    _refuses = refuses("ExtraTreesClassifier")


@document(OF_TARGET_FORESTS, FOREST_OF_TARGETS, forest=_EXTRA_TREES)
@keyword_constructor
class ExtraTreesRegressor(ForestRegressor):
    """Extremely randomized trees for regression: of each drawn column, one cut drawn at random.

    {forest}

    Examples
    --------
    >>> import numpy as np
    >>> from gputree import ExtraTreesRegressor
    >>> X = np.arange(20.0).reshape(-1, 1)
    >>> forest = ExtraTreesRegressor(n_estimators=20, random_state=0).fit(X, 2 * X[:, 0])
    >>> len(forest.estimators_), forest.predict(X[:1]).shape
    (20, (1,))
    """

    bootstrap: bool = False

    _draws_cuts = True
    device = "cpu"
    _lacks = ForestRegressor._lacks | DRAWN_CUTS_LACK
    _refuses = refuses("ExtraTreesRegressor")
