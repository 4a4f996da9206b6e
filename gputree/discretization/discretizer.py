"""The supervised discretizer, as an estimator of scikit-learn."""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gputree.backends.devices import missing_columns, to_host
from gputree.base.dtypes import Bools, Floats, Values
from gputree.base.progress import new_bar
from gputree.base.sklearn import StrOptions, check_array, fit_context
from gputree.base.threads import even_spans, n_threads, run
from gputree.columns.categories import count_codes
from gputree.compilation.waits import on_screen, waiting
from gputree.discretization.cut_points import MdlRule, MdlTask, cut_values, new_mdl_task
from gputree.errors import InputError
from gputree.estimators.column_warnings import claim, conversion, mixed_column
from gputree.estimators.parameters import keyword_constructor
from gputree.inputs.validation import check_labels, check_table, check_weight_range, check_weights

TRANSFORMED = 1 << 18  # cells that one thread transforms at a time


@keyword_constructor
class MDLPDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Supervised discretization of numeric columns by minimum description length.

    Each column is cut at the largest information gain, then each part again, as long as the gain
    exceeds the description length of the cut. Uninformative columns
    get no cut: all their values are one bin.

    Parameters
    ----------
    criterion : "fayyad_irani" or "kononenko", default="fayyad_irani"
        The acceptance criterion of cuts: that of Fayyad and Irani (1993), as in Weka's supervised
        `Discretize`, or that of Kononenko (1995), its option ``-K``.
    cut_cost : "rows" or "cuts", default="rows"
        The description length of a cut of N rows: log2 of N - 1, as published, or of the cuts there
        are between different values (Weka's ``-E``), which are fewer where values repeat.
    missing : "keep" or "bin", default="keep"
        Missing values stay NaN, or are a separate last bin of their column. `fit` ignores missing
        values.
    n_jobs : int, default=None
        Threads; None for all. Cuts do not depend on it.
    verbose : int, default=0
        Show a progress bar on a terminal or in a notebook, and say when kernels are compiled.

    Attributes
    ----------
    cut_points_ : list of `n_features_in_` float64 arrays
        Cut points of each column, ascending: midpoints between two of its values. Bin j has the
        values ``cut[j - 1] < x <= cut[j]``.
    bin_edges_ : list of `n_features_in_` float64 arrays
        The cut points between the minimum and the maximum value seen in `fit`, as
        `KBinsDiscretizer` has them; NaN for a column without values.
    n_bins_ : int64 array of shape (`n_features_in_`,)
        Number of bins of each column, without that of missing values.
    classes_ : array of shape (n_classes,)
        Labels seen in `fit`.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : array of shape (`n_features_in_`,)
        Their names, where X has string names.

    See Also
    --------
    gputree.information_gain : With ``numeric="mdl"``, the information gain of these bins.

    References
    ----------
    U. M. Fayyad and K. B. Irani, "Multi-interval discretization of continuous-valued attributes
    for classification learning", IJCAI 1993, 1022-1027.

    I. Kononenko, "On biases in estimating multi-valued attributes", IJCAI 1995, 1034-1040.

    Examples
    --------
    >>> from gputree import MDLPDiscretizer
    >>> from gputree.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bins = MDLPDiscretizer().fit(X, y)
    >>> [cuts.round(2).tolist() for cuts in bins.cut_points_]
    [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]
    >>> bins.transform(X[:2])
    array([[0., 2., 0., 0.],
           [0., 1., 0., 0.]])
    """

    criterion: Literal["fayyad_irani", "kononenko"] = "fayyad_irani"
    cut_cost: Literal["rows", "cuts"] = "rows"
    missing: Literal["keep", "bin"] = "keep"
    n_jobs: int | None = None
    verbose: int = 0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"fayyad_irani", "kononenko"})],
        "cut_cost": [StrOptions({"rows", "cuts"})],
        "missing": [StrOptions({"keep", "bin"})],
    }
    _lacks: ClassVar[dict[str, str]] = {}

    # As `check_table` requires: numbers alone, on the host.
    _grows_on_device: ClassVar[bool] = False
    categorical_features: ClassVar[str] = "auto"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the cut points of every column.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)
            Numbers, NaN or None where missing.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative: a weight of two stands for two rows of weight one.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Columns of categories, infinite values, continuous or missing labels, wrong shapes,
            or invalid weights.
        MemoryError
            Sparse input is too large for a dense array.
        """
        before = vars(self).copy()
        try:
            with waiting(on_screen if self.verbose else None):
                return self._fit(X, to_host(y), to_host(sample_weight))
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        threads = n_threads(self.n_jobs)
        values = check_table(self, X, reset=True, order="F").stored
        self._forbid_categories(values)
        missing_columns(values, threads)  # forbids infinite values
        self.classes_, target = check_labels(self, y, values.shape[0])
        weight = check_weights(sample_weight, values)
        check_weight_range(weight)
        if weight is not None and not weight.all():
            rows = np.flatnonzero(weight)
            values, target, weight = np.asfortranarray(values[rows]), target[rows], weight[rows]
        rule = MdlRule(self.criterion == "kononenko", self.cut_cost == "cuts")
        task = new_mdl_task(target, weight, self.classes_.size, rule)
        self.cut_points_ = _cut_columns(values, task, threads, bool(self.verbose))
        self.bin_edges_ = [
            np.concatenate([[np.fmin.reduce(column)], cuts, [np.fmax.reduce(column)]])
            for cuts, column in zip(self.cut_points_, values.T, strict=True)
        ]
        self.n_bins_ = np.array([cuts.size + 1 for cuts in self.cut_points_])
        return self

    def _forbid_categories(self, values: Values) -> None:
        columns = self.columns_
        categorical = np.flatnonzero(columns.nominal | columns.ordered).tolist()
        if not categorical:
            return
        f = categorical[0]
        name = getattr(self, "feature_names_in_", range(self.n_features_in_))[f]
        size = int(columns.n_categories[f])
        mixed = mixed_column(columns.categories[f], lambda: count_codes(values[:, f], size))
        if mixed is not None:
            raise InputError(
                f"Column {name!r} of X {claim(mixed)}, and {type(self).__name__} cuts columns of "
                f"numbers. {conversion(mixed)}."
            )
        raise InputError(
            f"{type(self).__name__} cuts columns of numbers, and column {name!r} holds categories. "
            "Leave it to another transformer by a ColumnTransformer with "
            "make_column_selector(dtype_include='number')."
        )

    def transform(self, X: Any) -> Values:
        """Bin of each value.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, n_features)

        Returns
        -------
        bins : float32 or float64 array of shape (n_rows, n_features)
            ``0 .. n_bins_[f]``, how many cut points are less than the value. A missing value
            is NaN, or `n_bins_[f]` with ``missing="bin"``. Values beyond those of `fit` are in
            the outer bins.
        """
        check_is_fitted(self, "cut_points_")
        threads = n_threads(self.n_jobs)
        values = check_table(self, X, reset=False, order="F").stored
        missing = missing_columns(values, threads)
        out = np.empty(values.shape, values.dtype, order="F")
        parts = even_spans(values.shape[0], values.shape[1], threads, TRANSFORMED)
        run(threads, self._transform_rows, [(values, missing, a, b, out) for a, b in parts])
        return out

    def _transform_rows(
        self, values: NDArray, missing: Bools, begin: int, end: int, out: NDArray
    ) -> None:
        for f, cuts in enumerate(self.cut_points_):
            column = values[begin:end, f]
            out[begin:end, f] = np.searchsorted(cuts, column)
            if missing[f]:
                code = np.nan if self.missing == "keep" else self.n_bins_[f]
                out[begin:end, f][np.isnan(column)] = code

    def inverse_transform(self, X: ArrayLike) -> Floats:
        """A value for each bin: the middle of its edges.

        The outer bins reach to the minimum and the maximum value seen in `fit`.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Bins, as `transform` returns them.

        Returns
        -------
        values : float64 array of shape (n_rows, n_features)
            NaN for missing values.

        Raises
        ------
        ValueError
            Another number of columns, or an invalid bin.
        """
        check_is_fitted(self, "cut_points_")
        bins = check_array(
            X, dtype=np.float64, ensure_all_finite="allow-nan", estimator=self, input_name="X"
        )
        if bins.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {bins.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        out = np.empty(bins.shape)
        for f in range(self.n_features_in_):
            out[:, f] = self._values_of_bins(bins[:, f], f)
        return out

    def _values_of_bins(self, bins: Floats, f: int) -> Floats:
        edges, n_bins = self.bin_edges_[f], int(self.n_bins_[f])
        missing = np.isnan(bins)
        code = np.where(missing, n_bins, bins)
        most = n_bins - 1 if self.missing == "keep" else n_bins
        wrong = ~missing & ((code < 0) | (code > most) | (code % 1 != 0))
        if wrong.any():
            raise InputError(
                f"{type(self).__name__}.inverse_transform takes integers from 0 to {most}, or "
                f"NaN, in column {f}. Got {bins[wrong][0]:g}."
            )
        middles = np.append(0.5 * edges[:-1] + 0.5 * edges[1:], np.nan)  # last: no value
        return middles[code.astype(np.int64)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _cut_columns(values: NDArray, task: MdlTask, threads: int, verbose: bool) -> list[Floats]:
    bar = new_bar(values.shape[1], verbose, desc="cutting columns")

    def cut(f: int) -> Floats:
        found = cut_values(values[:, f], task)
        if bar is not None:
            bar.update()
        return found

    try:
        return run(threads, cut, [(f,) for f in range(values.shape[1])])
    finally:
        if bar is not None:
            bar.close()
