"""Base class of estimators over partitions: client, reading, lazy predictions, scores."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from itertools import pairwise
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gputree.backends.sharded.tasks import Tasks
from gputree.base.dtypes import Floats
from gputree.base.optional import require
from gputree.distributed import reading
from gputree.distributed.reading import Known, Look, ReadingOptions
from gputree.errors import InputError
from gputree.estimators.classification import TableClassifier, declare_classes
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.column_warnings import Identifier, find_identifiers, warn_of_identifiers
from gputree.estimators.growing_parts import Rowsets
from gputree.estimators.parameters import keyword_constructor
from gputree.estimators.table_estimator import TableEstimator
from gputree.evaluation import Report
from gputree.inputs.tables import TableReader
from gputree.inputs.targets import ends_of, labels_of_codes
from gputree.inputs.validation import check_target_range

Method = TypeVar("Method", bound=Callable[..., Any])


_ANSWERED = """

Parameters
----------
X : dask array or data frame of shape (n_rows, n_features), or as elsewhere

Returns
-------
{}
    A dask array, not computed yet, where X is a collection.
"""


def lazy(returns: str) -> Callable[[Method], Method]:
    """The method of the plain estimator, lazily mapped over the partitions of a collection.

    The decorated method returns the dtype of predictions, and their number of columns or None;
    `returns` documents them.
    """

    def decorated(method: Method) -> Method:
        name = method.__name__

        @wraps(method)
        def answer(self: Any, X: Any) -> Any:
            if not reading.is_collection(X):
                return getattr(self._plain, name)(self, X)
            dtype, width = method(self, X)
            return reading.mapped(_Answer(name, width), self._model(), X, dtype, width)

        if method.__doc__:  # python -OO has none
            answer.__doc__ = inspect.cleandoc(method.__doc__) + _ANSWERED.format(returns)
        return cast("Method", answer)

    return decorated


@keyword_constructor
class ClientParameters:
    """The client of Dask, in addition to the parameters of the plain estimator."""

    client: Any = None


class OverPartitions(ClientParameters, TableEstimator):
    """Reading of partitions, and lazy predictions; the plain estimator has the rest."""

    _plain: ClassVar[type]
    _is_classifier: ClassVar[bool]
    _keeps_all: ClassVar[bool] = False  # rows of weight zero, too

    categorical_features: Any
    ordered_categories: Any

    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit over partitions; of several targets, on the client."""
        if getattr(y, "ndim", 1) == 2 and y.shape[1] > 1:
            return self._fit_gathered(X, y, sample_weight)
        return self._fit_partitions(X, y, sample_weight)

    def _fit_partitions(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return super()._fit_afresh(X, y, sample_weight)

    def _fit_gathered(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Fit the plain estimator to all rows; their values are in a file of the client."""
        caller, tasks = type(self).__name__, Tasks(self._client())
        tables = [table for table, *_ in reading.partitions(caller, X, y, sample_weight)]
        parts = tasks.client.compute(tables)
        y, sample_weight = (
            None if given is None else tasks.fetch(tasks.client.compute([given]))[0]
            for given in (y, sample_weight)
        )
        reader = TableReader(caller, self.categorical_features, self.ordered_categories)
        table = CodedTable._of_batches(lambda: (tasks.fetch([part])[0] for part in parts), reader)
        plain = self.to_local()
        parameters = plain.get_params(deep=False)
        plain._fit_afresh(table, y, sample_weight)
        plain._name_targets(X, y)
        self.__dict__.update({k: v for k, v in vars(plain).items() if k not in parameters})
        return self

    def _learn_target(self, found: Look) -> None:
        """Learn the classes, or check the targets."""
        raise NotImplementedError

    def _by_class(self, found: Look) -> Floats | None:
        """Weight of each class; None where classes have none."""
        raise NotImplementedError

    def _read(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Tasks, Look, Rowsets, list[Identifier]]:
        """Learn the columns and the target; return the rows, and columns of identifiers."""
        for name in ("missing_marks_", "reading_"):  # of the file that a former fit read
            self.__dict__.pop(name, None)
        caller = type(self).__name__
        if ":" in getattr(self, "device", ""):
            raise InputError(
                f"{caller} takes no number of a device: a worker counts on the first one that it "
                "sees. Start one worker per GPU, as `dask cuda worker` does, and pass "
                f"device='cuda'. Got device={self.device!r}."
            )
        tasks = Tasks(self._client())
        partitions = reading.partitions(caller, X, y, sample_weight)
        options = ReadingOptions(
            caller, self.categorical_features, self.ordered_categories, self._is_classifier
        )
        found = reading.look_at(tasks, partitions, options)
        self._learn(found)
        schema = Known(
            options, found.columns, found.names, found.dtype,
            getattr(self, "classes_", None), self._by_class(found), self._keeps_all,
        )  # fmt: skip
        rowsets = reading.read_all(tasks, partitions, schema)
        counts = reading.category_counts(tasks, rowsets)
        # the types are those of a frame without rows
        mixed = self._warn_of_mixed_columns(counts, getattr(X, "_meta", X))
        identifiers = find_identifiers(
            self.columns_, counts, found.names, self._every_nominal, mixed
        )
        warn_of_identifiers(identifiers, caller)
        return tasks, found, rowsets, identifiers

    def _client(self) -> Any:
        """The client that is given, or the current one."""
        if self.client is not None:
            return self.client
        distributed = require("distributed", "gputree.distributed")
        try:
            return distributed.get_client()
        except ValueError as error:
            raise InputError(
                f"{type(self).__name__} grows on the workers of a client of Dask, and there is "
                "none: make one, distributed.Client(...), or pass it as 'client'."
            ) from error

    def _learn(self, found: Look) -> None:
        """Learn the columns, and of labels the classes."""
        self.columns_ = found.columns
        self.n_features_in_ = found.columns.nominal.size
        if found.names is not None:
            self.feature_names_in_ = found.names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_outputs_ = 1
        self._learn_target(found)

    def to_local(self) -> Any:
        """The same fitted model as the plain estimator of one machine.

        To be saved, exported, or pruned by rows in memory.
        """
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "client"}
        plain = self._plain(**parameters)
        learned = {k: v for k, v in vars(self).items() if k not in parameters and k != "client"}
        vars(plain).update(learned)
        return plain

    def _model(self) -> Any:
        """The plain estimator, as tasks have it: one thread each."""
        return self.to_local().set_params(n_jobs=1)

    def report(self, X: Any, y: Any, sample_weight: Any = None) -> Report:
        """Report as the plain estimator does; rows of collections are gathered for it."""
        dask = require("dask", "gputree.distributed")
        return self.to_local().report(*dask.compute(X, y, sample_weight))

    def _score_sums(self, X: Any, y: Any, sample_weight: Any) -> Floats:
        """Sums over all partitions that a score is made of."""
        dask = require("dask", "gputree.distributed")
        partitions = reading.partitions(type(self).__name__, X, y, sample_weight)
        model = dask.delayed(self._model(), pure=False)
        call = dask.delayed(_score_block, pure=False)
        sums = [call(model, *partition) for partition in partitions]
        if self.client is not None:
            found = self.client.gather(self.client.compute(sums))
        else:
            found = dask.compute(*sums)
        return np.sum(found, axis=0)

    def __sklearn_clone__(self) -> Any:
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        return type(self)(client=client, **{k: clone(v, safe=False) for k, v in parameters.items()})

    def __getstate__(self) -> Any:
        return {**dict(super().__getstate__()), "client": None}


class ClassifierOverPartitions(OverPartitions, TableClassifier):
    """Classes, and lazy labels and probabilities."""

    _is_classifier = True

    def _learn_target(self, found: Look) -> None:
        assert found.classes is not None
        self.classes_ = found.classes
        if self.classes is not None:
            every = np.arange(found.classes.size)
            self.classes_, _ = declare_classes(self, None, found.classes, every)
        self.n_classes_ = self.classes_.size

    def _by_class(self, found: Look) -> Floats | None:
        if self.class_weight is None:
            return None
        assert found.counts is not None
        assert found.classes is not None
        if isinstance(self.class_weight, str):  # balanced
            weight = np.zeros(self.n_classes_)
            weight[np.searchsorted(self.classes_, found.classes)] = found.n_rows / (
                found.counts.size * found.counts.astype(np.float64)
            )
            return weight
        every = np.arange(self.n_classes_)
        return self._combine_weights(None, every)

    @lazy("labels : array of shape (n_rows,), or (n_rows, n_outputs)")
    def predict(self, X: Any) -> Any:
        """Label of the most probable class of each row; of equals, the first."""
        if not self._has_targets:
            return self.classes_.dtype, None
        first = np.zeros((1, self.n_outputs_), np.intp)
        return labels_of_codes(self.classes_, first).dtype, self.n_outputs_

    @lazy("probabilities : float64 array of shape (n_rows, n_classes)")
    def _joined(self, X: Any) -> Any:
        """Probability of each class, those of one target after the other."""
        return np.float64, int(np.sum(self.n_classes_))

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class; see the plain estimator. Lazy where X is a collection."""
        if not (self._has_targets and reading.is_collection(X)):
            return super().predict_proba(X)
        joined = self._joined(X)
        return [joined[:, begin:end] for begin, end in pairwise(ends_of(self.classes_))]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy, of all labels together, partition by partition; see the plain estimator."""
        if not reading.is_collection(X):
            return super().score(X, y, sample_weight)
        weight, _, _, wrong = self._score_sums(X, y, sample_weight)[:, 0]
        return float(1.0 - wrong / weight)


class RegressorOverPartitions(OverPartitions):
    """Targets, and their lazy predictions."""

    _is_classifier = False
    criterion: Any

    def _learn_target(self, found: Look) -> None:
        check_target_range(*found.ends, self.criterion)

    def _by_class(self, found: Look) -> None:
        """Targets have no classes."""

    @lazy("targets : float64 array of shape (n_rows,), or (n_rows, n_outputs)")
    def predict(self, X: Any) -> Any:
        """Mean target of each row's leaf; of a forest, the mean over the trees."""
        return np.float64, self.n_outputs_ if self.n_outputs_ > 1 else None

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2, of targets on average, computed partition by partition; see the plain estimator."""
        if not reading.is_collection(X):
            return super().score(X, y, sample_weight)
        weight, total, squares, residual = self._score_sums(X, y, sample_weight)
        spread = squares - total * total / weight
        constant = np.where(residual == 0.0, 1.0, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.where(spread == 0.0, constant, 1.0 - residual / spread).mean())


class _Answer:
    """A method of a fitted estimator on a block, which may have no rows."""

    def __init__(self, method: str, width: int | None) -> None:
        self.method, self.width = method, width

    def __call__(self, model: Any, block: Any) -> NDArray:
        if block.shape[0] == 0:
            return np.empty((0,) if self.width is None else (0, self.width))
        return getattr(model, self.method)(block)


def _score_block(model: Any, X: Any, y: Any, sample_weight: Any) -> Floats:
    """Sums of weights, targets, their squares and errors of a block; targets less a root's.

    Errors are counted for classes, squared for targets, of which each has a column.
    """
    n, k = X.shape[0], 1 if hasattr(model, "classes_") else model.n_outputs_
    if n == 0:
        return np.zeros((4, k))
    y = np.asarray(y).reshape(n, -1)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, np.float64)
    predictions = model.predict(X).reshape(n, -1)
    whole = np.full(k, weight.sum())
    if hasattr(model, "classes_"):
        wrong = weight @ (predictions != y).any(axis=1)
        return np.array([whole, np.zeros(1), np.zeros(1), [wrong]])
    tree = model.tree_ if hasattr(model, "tree_") else model.estimators_[0].tree_
    centered = y - tree.answers[0]
    sums = weight @ centered, weight @ centered**2, weight @ (y - predictions) ** 2
    return np.array([whole, *sums])
