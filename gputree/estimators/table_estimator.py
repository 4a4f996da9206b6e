"""Base class of estimators over tables: parameters, reading, fits that are whole or none.

Callbacks are those of scikit-learn 1.9 and newer: progress, scores and early stops of a fit by its
parts. A fit is a task; the trees of a forest and the trials of boosting are its subtasks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.util import find_spec
from inspect import signature
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.metaestimators import available_if

from gputree.backends.devices import InfinityError
from gputree.base.dtypes import Floats, Weight
from gputree.base.sklearn import InvalidParameterError, fit_context, validate_parameter_constraints
from gputree.columns.cells import as_table
from gputree.columns.options import declared_nominal
from gputree.compilation.waits import on_screen, waiting
from gputree.errors import InputError
from gputree.estimators.arguments import advise, explained, forbid_values, require_pruner
from gputree.estimators.coded_table import CodedTable, learn_table
from gputree.estimators.column_warnings import (
    Identifier,
    find_identifiers,
    have_few_categories,
    warn_of_excluded,
    warn_of_identifiers,
    warn_of_mixed_columns,
)
from gputree.estimators.descent import Descending
from gputree.inputs.tables import Table
from gputree.inputs.targets import target_columns, target_names
from gputree.inputs.validation import check_table, check_target_numbers, check_targets
from gputree.pruning import Pruner, get_pruner

# Takes a function that returns the attributes fitted so far; True if a callback ends the fit.
EndOfPart = Callable[[Callable[[], dict[str, Any]]], bool]

# The whole fit's context, and callbacks that are to be torn down: scikit-learn reads them when a
# fit has ended, by an error, too.
_DURING_FIT = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")


def _supported(estimator: Any) -> bool:
    """Return whether the scikit-learn that is installed has callbacks."""
    return find_spec("sklearn.callback") is not None


class CallbackSupport:
    """Mixin of estimators whose fit, and each part of it, calls callbacks at its start and end."""

    _part: ClassVar[str] = ""  # name of a part; empty where there is none
    _fit_arguments: dict[str, Any]

    @available_if(_supported)
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks of the fits that follow, in place of earlier ones.

        They are called when a fit and its parts, the trees of a forest or the trials of boosting,
        begin and end. A part that ends has the estimator of the parts so far, ready to predict;
        where a callback returns True at the end of one, it is the last. Trees that are grown at
        once begin together. Needs scikit-learn 1.9 or newer.

        Parameters
        ----------
        *callbacks : objects of `sklearn.callback`, or of its protocol `FitCallback`
            Such as ``ProgressBar()`` and ``ScoringMonitor(scoring="accuracy")``.

        Returns
        -------
        self
        """
        from sklearn.callback import CallbackSupportMixin

        returned: Self = CallbackSupportMixin.set_callbacks(self, *callbacks)
        return returned

    def _most_parts(self) -> int:
        return 0

    @property
    def _has_callbacks(self) -> bool:
        """True if callbacks are set, or those of an estimator that fits this one may be."""
        return hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")

    @contextmanager
    def _called_back(self, X: Any, y: Any, sample_weight: Any) -> Iterator[None]:
        """Call callbacks at the start and the end of a fit."""
        if not self._has_callbacks:
            yield
            return
        from sklearn.callback import CallbackSupportMixin

        context = CallbackSupportMixin._init_callback_context(self, max_subtasks=self._most_parts())
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        arguments = {"X": X, "y": y, "metadata": metadata}
        self._fit_arguments = arguments
        context.call_on_fit_task_begin(estimator=self, **arguments)
        try:
            yield
        finally:
            self.__dict__.pop("_fit_arguments", None)
        context.call_on_fit_task_end(estimator=self, reconstruction_attributes=dict, **arguments)

    def _begin_part(self) -> EndOfPart:
        """Call callbacks at the start of a part; return what to call at its end."""
        root: Any = getattr(self, "_callback_fit_ctx", None)
        if root is None:
            return lambda fitted: False
        context = root.subcontext(task_name=self._part)
        arguments = self._fit_arguments
        context.call_on_fit_task_begin(estimator=self, **arguments)

        def end(fitted: Callable[[], dict[str, Any]]) -> bool:
            stops = context.call_on_fit_task_end(
                estimator=self, reconstruction_attributes=fitted, **arguments
            )
            return bool(stops)

        return end


# Criteria of trees of several targets.
OF_SEVERAL_TARGETS = ("gini", "entropy", "log_loss", "squared_error", "poisson")

# Attributes that reading a table and its target leaves, some of them for some estimators.
LEARNED = (
    "columns_", "n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "n_classes_",
    "target_names_in_", "costs_", "missing_marks_", "reading_",
)  # fmt: skip


class TableEstimator(Descending, CallbackSupport, BaseEstimator):
    """Parameters and tables; subclasses say what is fitted on them."""

    pruning: Pruner | str | None
    verbose: int
    n_features_in_: int

    # Parameters, and values of parameters, that other trees have and this one has not: what to
    # write instead.
    _lacks: ClassVar[dict[str, str]] = {}
    _refuses: ClassVar[dict[tuple[str, str], str]] = {}

    # True if y may have several columns.
    _takes_targets: ClassVar[bool] = False

    # Whether a table on a CUDA device is grown on where it is.
    _grows_on_device: ClassVar[bool] = False

    # Whether the values of numeric columns are categories, too.
    _every_nominal: ClassVar[bool] = False

    # Whether a column of text that is nearly one of numbers is worth a warning: not in folds of
    # rows of which all were read before.
    _warns_of_columns: bool = True

    # Name of the estimator that fits this one as a part, for warnings.
    _caller: str | None = None

    # Order of the table in memory that growth reads fastest.
    _order: ClassVar[Literal["C", "F"]] = "C"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    @explained
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from the rows of a table. After an error the estimator is as before.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or CodedTable of shape (n_rows, n_features)
            Numbers and categories; None, NaN or NA where missing. float32 and float64 keep
            their precision.
        y : array-like of shape (n_rows,)
            Class labels: integers, strings or booleans. Of regressors, finite targets. Trees of
            CART and random forests take several targets, of shape (n_rows, n_outputs), too.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative weights; rows of weight zero take no part. A forest with `bootstrap` draws
            rows in proportion to them, which count as often as they are drawn. Boosting has them
            in its first trial.

        Returns
        -------
        self
        """
        before = vars(self).copy()
        try:
            shown = waiting(on_screen if self.verbose else None)
            with shown, self._called_back(X, y, sample_weight):
                try:
                    self._name_targets(X, y)
                    X = as_table(X, sparse=self._order == "C")
                    return self._fit_afresh(X, y, sample_weight)
                except InfinityError as error:
                    raise error.named(getattr(self, "feature_names_in_", None)) from error
        except BaseException:
            during = {name: vars(self)[name] for name in _DURING_FIT if name in vars(self)}
            self.__dict__.clear()
            self.__dict__.update(before, **during)
            raise

    def _name_targets(self, X: Any, y: Any) -> None:
        """Keep the names of several targets, if they, or the batches that had them, have some."""
        self.__dict__.pop("target_names_in_", None)
        of_batches = isinstance(X, CodedTable) and y is not None and y is X._target
        names = X._target_names if of_batches else target_names(y)
        if self._takes_targets and names is not None:
            self.target_names_in_ = names

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        raise NotImplementedError

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        """Class codes, or targets, of `n_rows` rows, of shape (n,) or (n, n_outputs).

        Classes are learned.
        """
        raise NotImplementedError

    def _combine_weights(self, weight: Weight, target: NDArray[Any]) -> Weight:
        """Weights of rows in growth, from sample weights and class codes or targets."""
        return weight

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of a pruner given by name (``pruning__confidence``), too.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self

        Raises
        ------
        ValueError
            An unknown parameter, or one of a pruner while `pruning` is None.
        """
        for name in params:
            if name in self._lacks:
                kind = type(self).__name__
                raise InputError(f"{kind} has no parameter {name!r}: {advise(self, name)}")
        pruning = params.get("pruning", self.pruning)
        nested = [name for name in params if name.startswith("pruning__")]
        if nested and pruning is None:
            require_pruner(self, nested)
        if nested and isinstance(pruning, str):
            params["pruning"] = get_pruner(pruning, given=nested)
        return super().set_params(**params)

    def _validate_params(self) -> None:
        """Check the parameters, but for those left as they are by default: once is enough."""
        forbid_values(self)
        kind: Any = type(self)
        given = {
            name: value
            for name, valid in _valid_defaults(kind).items()
            if (value := getattr(self, name)) is not valid
        }
        validate_parameter_constraints(self._parameter_constraints, given, kind.__name__)

    @property
    def _called(self) -> str:
        """Name in warnings; includes the class that the user called."""
        kind = type(self).__name__
        return kind if self._caller is None else f"{self._caller} (by {kind})"

    def _learn_table(self, X: Any) -> Table:
        """Read a table to grow on; its columns are learned."""
        if isinstance(X, CodedTable):
            return learn_table(self, X._table)
        table = check_table(self, X, reset=True, order=self._order)
        if self._warns_of_columns:
            table.mixed = self._warn_of_mixed_columns(table.count_categories, X)
        return table

    def _take_learned(self, other: Any) -> None:
        """Copy the columns and classes of another estimator that is fitted on the same table."""
        for name in LEARNED:
            if name in vars(other):
                setattr(self, name, vars(other)[name])

    def _warn_of_mixed_columns(self, count: Callable[[int], NDArray], X: Any) -> list[int]:
        """Warn of columns of text that are nearly numbers, with `count` rows of each category."""
        names = getattr(self, "feature_names_in_", None)
        listed = getattr(self, "categorical_features", "auto")
        declared = partial(declared_nominal, X, listed, self.columns_.nominal.size)
        return warn_of_mixed_columns(self._called, self.columns_, names, listed, count, declared)

    def _warn_of_identifiers(self, table: Table, weight: NDArray | None) -> list[Identifier]:
        """Warn about identifiers and excluded columns; the identifiers that are not excluded."""
        columns, kind = self.columns_, self._called
        names = getattr(self, "feature_names_in_", None)
        excluded = np.zeros(columns.nominal.size, np.bool_)
        if getattr(self, "exclude_high_cardinality", False):
            n = table.shape[0] if weight is None else int(np.count_nonzero(weight))
            excluded = ~have_few_categories(columns, n)
            warn_of_excluded(columns, excluded, n, names, kind)
        count, every = table.count_categories, self._every_nominal
        found = find_identifiers(columns, count, names, every, table.mixed)
        found = [column for column in found if not excluded[column.feature]]
        warn_of_identifiers(found, kind)
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        plain = getattr(self, "splitter", "exact") in ("exact", "best")
        plain = plain and getattr(self, "criterion", None) in OF_SEVERAL_TARGETS
        tags.target_tags.multi_output = self._takes_targets and plain
        return tags


class TableRegressor(RegressorMixin, TableEstimator):
    """A regressor on tables."""

    criterion: Any

    def _check_target(self, y: Any, n_rows: int) -> Floats:
        columns = target_columns(y) if self._takes_targets else None
        if columns is not None:
            return check_target_numbers(self, columns, n_rows, self.criterion)
        return check_targets(self, y, n_rows, self.criterion)

    def predict(self, X: Any) -> Floats:
        """Mean target of the leaf of each row; of a forest, the mean over its trees.

        The median or the quantile in place of the mean, as the criterion says.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        targets : float64 array of shape (n_rows,), or (n_rows, n_outputs) of several targets
        """
        raise NotImplementedError


@cache
def _valid_defaults(kind: Any) -> dict[str, Any]:
    """Map parameters to their defaults if valid, else to an object that is no argument."""
    found = {}
    parameters = signature(kind).parameters
    for name in kind._get_param_names():
        default = parameters[name].default
        try:
            given = {name: default}
            validate_parameter_constraints(kind._parameter_constraints, given, kind.__name__)
            found[name] = default
        except InvalidParameterError:  # a subclass has another default
            found[name] = object()
    return found
