"""Forests: trees on drawn rows and columns, whose predictions are averaged.

Trees are grown in threads, one tree each, over one coded table that all of them share. What is
random is hashed from the forest's seed, the tree's number and the node's path, and sums over trees
are in their order, so that a forest depends neither on threads nor on which tree is grown first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import copy
from inspect import signature
from numbers import Integral
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree._memory import require_memory
from gputree._sklearn import Interval, RealNotInt, StrOptions, fit_context
from gputree._warnings import warn
from gputree.backends.arrays import to_host
from gputree.backends.devices import resolve_device
from gputree.backends.encoding import forbid_infinity
from gputree.backends.inspection import Inspection, missing_columns
from gputree.columns import Columns
from gputree.ensemble.compact import CompactTree, LazySequence, Trees
from gputree.ensemble.draws import Draws, Origin, bootstrap_counts, tree_seed
from gputree.ensemble.joining import OUT_OF_BAG, cut, join
from gputree.ensemble.out_of_bag import out_of_bag_means, permutation_importances
from gputree.errors import InputError
from gputree.estimators.arguments import explained
from gputree.estimators.cart import Cart, column_count
from gputree.estimators.coded_table import CodedTable, known_table
from gputree.estimators.monotonic import monotonic_signs
from gputree.estimators.reporting import Reporting
from gputree.estimators.table_estimator import TableEstimator
from gputree.growth.progress import new_bar
from gputree.growth.stopping import FEWEST_ROWS
from gputree.importance import mean_importances
from gputree.prediction.forest import leaves
from gputree.tables import Table
from gputree.threads import n_threads, run
from gputree.validation import check_weight_range, check_weights, compare_columns

Weight = NDArray[np.float64] | None

WITHOUT_BOOTSTRAP = "Out of bag estimation only available if bootstrap=True"


class Forest(Reporting, TableEstimator):
    """Parameters, growth and prediction of forests; subclasses say what the target is."""

    n_estimators: int
    bootstrap: bool
    max_samples: float | None
    oob_score: Any
    warm_start: bool
    random_state: Any
    n_jobs: int | None
    pruning = None
    quantreg = False
    columns_: Columns
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _trees: Trees
    _draws: Draws  # of the last fit, which more trees are drawn with
    _origins: list[Origin]  # one a tree

    _grows_on_device = True

    _tree_class: ClassVar[type[Cart]]
    _averages: ClassVar[bool] = True  # what its trees predict, all alike
    # Whether trees draw their cuts, too.
    _draws_cuts: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Cart._parameter_constraints,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "bootstrap": ["boolean"],
        "max_samples": [
            Interval(RealNotInt, 0.0, None, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "oob_score": ["boolean", callable],
        "splitter": [StrOptions({"exact", "binned", "best"})],
        "warm_start": ["boolean"],
    }
    del _parameter_constraints["pruning"], _parameter_constraints["ties"]

    @explained
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or CodedTable of shape (n_rows, n_features)
            Numbers and categories; None, NaN or NA where missing.
        y : array-like of shape (n_rows,)
            Class labels, or targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Non-negative weights. With `bootstrap` rows are drawn in proportion to them, and count
            as often as they are drawn; rows of weight zero take no part.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    # ----------------------------------------------------------- growth
    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        if self.oob_score and not self.bootstrap:
            raise InputError(WITHOUT_BOOTSTRAP)
        before = copy(self)
        view = self._learn_table(X)
        n = view.shape[0]
        target = self._check_target(to_host(y), n)
        weight = check_weights(to_host(sample_weight), target)
        balanced = self._balances_subsamples
        whole = weight if balanced else self._combine_weights(weight, target)
        check_weight_range(whole)
        self.n_outputs_ = 1
        monotonic_signs(self, self.columns_)  # its errors, before those of a tree
        self._warn_of_identifiers(view, whole)
        known = self._known_trees(before, X)
        if len(known) == self.n_estimators:
            return self._measure(view, target, whole)
        self._set_draws(known, n, None if whole is None else float(whole.sum()), whole)
        grower = self._grower(view)

        def grow(t: int) -> CompactTree:
            counts = self._counts(t)
            drawn = whole if counts is None else counts
            if balanced:
                drawn = self._balanced(target, drawn)
            return _grow_tree(of_tree(grower, self._origins[t]), view, target, drawn)

        threads = n_threads(self.n_jobs)
        at_once = 1 if grower.device == "cuda" else min(threads, self.n_estimators - len(known))
        grower.n_jobs = threads // at_once
        self._grow_trees(known, grow, at_once)
        return self._measure(view, target, whole)

    def _measure(self, view: Table, target: NDArray, whole: Weight) -> Self:
        """Score rows out of the bag, and keep targets for quantiles, as parameters require."""
        if self.oob_score:
            self._score_out_of_bag(view, target)
        if self.quantreg:
            self._keep_targets(view, target, whole)
        return self

    def _known_trees(self, before: Forest, X: Any) -> list[CompactTree]:
        """The trees of the fit before, which stay with `warm_start`."""
        known = list(before._trees) if self.warm_start and hasattr(before, "_trees") else []
        if known:
            before._require_columns(X)
            self._require_same(before)
        if len(known) > self.n_estimators:
            raise InputError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(known)} when warm_start==True"
            )
        if len(known) == self.n_estimators:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
        return known

    def _set_draws(
        self, known: list[CompactTree], n: int, total: float | None, weight: Weight
    ) -> None:
        """Choose the rows of each tree, of n with the total weight `total`, n without weights."""
        # of a file, or of a former fit
        for name in ("missing_marks_", "reading_", "_leaf_targets", *OUT_OF_BAG):
            self.__dict__.pop(name, None)
        draws = _draw_count(self, n, float(n) if total is None else total)
        seed = self._draws.seed if known else _seed(self.random_state)
        self._draws = Draws(seed, n, draws, None if draws is None else weight)
        before = self._origins if known else []
        first = 1 + max((origin.number for origin in before if origin.of.seed == seed), default=-1)
        more = range(first, first + self.n_estimators - len(known))
        self._origins = [*before, *(Origin(self._draws, number) for number in more)]

    def _grow_trees(
        self, known: list[CompactTree], grow: Callable[[int], CompactTree], at_once: int
    ) -> None:
        """Grow new trees, `at_once` at a time, and append them to `known`."""
        numbers = range(len(known), self.n_estimators)
        bar = new_bar(len(numbers), bool(self.verbose), desc="trees", unit="tree")

        def grown(t: int) -> CompactTree:
            tree = grow(t)
            if bar is not None:
                bar.update()
            return tree

        with nullcontext() if bar is None else bar:
            self._trees = Trees([*known, *run(at_once, grown, [(t,) for t in numbers])])

    def _require_columns(self, X: Any) -> None:
        """Refuse a table with other columns than that of fit, as `predict` does."""
        if isinstance(X, CodedTable):
            known_table(self, X._table)
        else:
            compare_columns(self, X)

    def _require_same(self, before: Forest) -> None:
        """Refuse to add trees to those of a fit on other categories or classes.

        Names of columns stay where the second table has none.
        """
        if hasattr(before, "feature_names_in_"):
            self.feature_names_in_ = before.feature_names_in_
        if not self.columns_.same_as(before.columns_):
            raise InputError(
                "X must have the columns and the categories of the fit before when "
                "warm_start==True; pass both as one data type, or a CodedTable."
            )
        if not np.array_equal(getattr(self, "classes_", 0), getattr(before, "classes_", 0)):
            raise InputError(
                f"y must have the classes of the fit before when warm_start==True: "
                f"{before.classes_.tolist()}; got {self.classes_.tolist()}."
            )

    @property
    def _draws_anything(self) -> bool:
        """Return whether trees differ; then they also differ in which of equal cuts they take.

        Most cuts of two rows are equal. If all trees took the first of the columns, the others
        would be less important than they are.
        """
        d = self.n_features_in_
        return self.bootstrap or self._draws_cuts or column_count(self.max_features, d) < d

    @property
    def _balances_subsamples(self) -> bool:
        """Return whether classes are balanced in the rows of each tree."""
        return False

    def _balanced(self, target: NDArray, weight: NDArray | None) -> NDArray[np.float64]:
        """Balance the classes of rows with weights."""
        weight = np.ones(target.size) if weight is None else weight
        found: NDArray[np.float64] = weight * balancing(np.bincount(target, weight))[target]
        return found

    def _counts(self, t: int) -> NDArray[np.int32] | None:
        """Number of times that tree t has drawn each row; None where it has all once."""
        (seed, n, draws, weight), number = self._origins[t]
        if weight is not None and weight.size < n:
            raise InputError(
                f"Which rows the trees of this {type(self).__name__} have drawn is not known: they "
                "were drawn in proportion to weights, which neither files nor forests that were "
                "grown over partitions hold."
            )
        return None if draws is None else bootstrap_counts(seed, number, n, draws, weight)

    def _grower(self, view: Table) -> Any:
        """Estimator that grows a tree, on the forest's classes."""
        device, threads = "cpu", n_threads(self.n_jobs)
        if not self._draws_cuts:
            device = view.device or resolve_device(self.device, bool(self.verbose))
        grower = self._new_tree(device=device, verbose=0)
        table = view.on(device, threads)
        if view.shape[0] > FEWEST_ROWS and not self._draws_cuts:
            drawn = column_count(self.max_features, view.shape[1])
            bins, exact = view.max_bins or int(grower.max_bins), self.splitter != "binned"
            table.prepare(bins, threads, exact, drawn)
        return grower

    def _new_tree(self, **others: Any) -> Any:
        """An estimator of one tree with this one's parameters and `others`, on its columns."""
        given = self.get_params(deep=False)
        names = signature(self._tree_class).parameters
        params = {name: given[name] for name in names if name in given}
        params["ties"] = "random" if self._draws_anything else "first"
        if self._draws_cuts:
            params |= {"splitter": "random", "device": "cpu"}
        if self._balances_subsamples:
            params["class_weight"] = None
        tree: Any = self._tree_class(**{**params, **others})
        for name, value in vars(self).items():
            if name.endswith("_") and name not in OUT_OF_BAG:
                setattr(tree, name, value)
        return tree

    # ------------------------------------------------------------ trees
    @property
    def estimators_(self) -> LazySequence[Any]:
        """The trees as estimators of one tree, each made when it is needed."""
        check_is_fitted(self)
        numbers = list(range(len(self._trees)))
        return LazySequence(numbers, self._member, f"trees of {type(self).__name__}")

    def __len__(self) -> int:
        return len(self.estimators_)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Self: ...
    def __getitem__(self, place: int | slice) -> Any:
        """Return a tree, or of a slice a fitted forest of these trees.

        It has this one's parameters and its own `n_estimators`, knows the rows that its trees have
        drawn, and nothing of ``oob_score_``. With `warm_start` the next trees are those that would
        have followed the last one: ``forest[:10]`` grows on to the same forest.
        """
        check_is_fitted(self)
        return cut(self, place) if isinstance(place, slice) else self.estimators_[place]

    def __add__(self, other: Any) -> Self:
        """Return a fitted forest of the trees of both, which are averaged as of one.

        Its parameters are those of the first one, but for `n_estimators`. Forests of one table with
        different seeds (`random_state`) are the forest of so many trees; those of different tables
        predict the mean weighted by their numbers of trees. The rows that trees have drawn are
        known, ``oob_score_`` is not. With `warm_start` more trees are drawn by the seed of the
        second one.

        Parameters
        ----------
        other : forest of the same class
            Of columns with the same names and categories, and of the same classes; with `quantreg`
            of the same rows, too.

        Raises
        ------
        TypeError
            The other one is no forest of this class.
        ValueError
            Columns, categories, classes, or the rows of `quantreg` differ.

        Warns
        -----
        UserWarning
            Some trees are in both: those of forests with the same seed are the same.
        """
        if not isinstance(other, Forest):
            return NotImplemented
        joined: Self = join(self, other)
        return joined

    def __radd__(self, other: Any) -> Self:
        """Return the forest itself, where `sum` adds it to its first number, 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def _member(self, t: int) -> Any:
        """Tree t as an estimator."""
        member = self._new_tree(random_state=tree_seed(*self._origins[t].key))
        member.tree_ = member.unpruned_tree_ = self._trees[t].expand()
        return member

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """The rows that each tree was grown on, as often as it has drawn them, ascending."""
        check_is_fitted(self)
        found = []
        for t, (of, _) in enumerate(self._origins):
            needed = 8.0 * max(of.n, of.draws or 0)
            require_memory(needed, "The list of the rows of a tree", "Its file may be damaged.")
            counts, every = self._counts(t), np.arange(of.n)
            found.append(every if counts is None else np.repeat(every, counts))
        return found

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean of the trees' importances, normalized, shape (n_features,).

        That of a tree is the fraction of each column in the total decrease of impurity.
        """
        check_is_fitted(self)
        return mean_importances(self._trees.expanded)

    def _report_size(self) -> dict[str, int]:
        leaves = sum(tree.n_rows.size for tree in self._trees)
        return {"trees": len(self._trees), "leaves": leaves}

    def _training_mean(self) -> float:
        if self._trees[0].task == "classification":
            return np.nan
        return float(np.mean([tree.statistics[0, 0] for tree in self._trees]))

    # ------------------------------------------------------- prediction
    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_trees")

    def _descend(self, descent: Callable[..., NDArray], X: Any) -> NDArray:
        """Apply `descent`, of `gputree.prediction.forest`, to the rows of `X`."""
        check_is_fitted(self)
        return np.concatenate([self._descend_part(descent, part) for part in self._parts(X)])

    def _descend_part(self, descent: Callable[..., NDArray], values: NDArray) -> NDArray:
        columns = Inspection(values)
        threads = n_threads(self.n_jobs)
        trees = self._trees.packed(values.dtype, threads)
        found = descent(trees, values, threads, columns.inspect)
        forbid_infinity(columns.infinite, values.dtype)
        return found

    @explained
    def apply(self, X: Any) -> NDArray[np.int32]:
        """Index of the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        leaves : int32 array of shape (n_rows, n_estimators)
            Indices of nodes of ``estimators_[t].tree_``.
        """
        return self._descend(leaves, X)

    @explained
    def decision_path(self, X: Any) -> tuple[csr_matrix, NDArray[np.int64]]:
        """Nodes on the paths of each row, in all trees.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        indicator : CSR matrix of shape (n_rows, nodes of all trees)
            1 where the row passes the node.
        n_nodes_ptr : int64 array of shape (n_estimators + 1,)
            The columns of tree t are ``n_nodes_ptr[t] .. n_nodes_ptr[t + 1]``.
        """
        check_is_fitted(self)
        values = self._values(X)
        threads = n_threads(self.n_jobs)
        paths = [prediction.decision_path(tree, values, threads) for tree in self._trees.expanded]
        return hstack(paths, "csr"), self._trees.node_ends

    @explained
    def proximity(self, X: Any, Y: Any = None) -> csr_matrix:
        """Fraction of the trees in which two rows reach the same leaf (Breiman 2001).

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        Y : array-like of shape (m_rows, n_features), default=None
            None for X itself.

        Returns
        -------
        proximity : CSR matrix of shape (n_rows, m_rows)
            Sparse: pairs that share no leaf are not stored. Pass many rows in parts.
        """
        first = self._leaf_indicator(X)
        second = first if Y is None else self._leaf_indicator(Y)
        shared: csr_matrix = first @ second.T
        return shared * (1.0 / len(self._trees))

    def _leaf_indicator(self, X: Any) -> csr_matrix:
        """1 for the leaf of each tree that a row reaches, shape (n_rows, nodes of all trees)."""
        reached = self.apply(X)
        ends = self._trees.node_ends
        n, trees = reached.shape
        columns = (reached + ends[:-1]).ravel()
        return csr_matrix(
            (np.ones(columns.size), columns, np.arange(n + 1) * trees), shape=(n, int(ends[-1]))
        )

    # ------------------------------------------------------- out of bag
    def _drawn(self, t: int) -> NDArray[np.bool_]:
        """Mark the rows that tree t has drawn."""
        counts = self._counts(t)
        if counts is None:
            raise InputError(WITHOUT_BOOTSTRAP)
        return counts > 0

    def _require_rows(self, n: int, caller: str) -> None:
        """Raise ValueError unless all trees were grown on tables of n rows."""
        for t, (of, _) in enumerate(self._origins):
            if of.n != n:
                raise InputError(
                    f"{caller} needs the rows that every tree was grown on: X has {n}, and "
                    f"estimators_[{t}] was grown on {of.n}."
                )

    def _out_of_bag(self, view: Table) -> NDArray[np.float64]:
        """Mean prediction of each row by the trees that have not drawn it; NaN where all have."""
        self._require_rows(view.shape[0], "oob_score=True")
        threads = n_threads(self.n_jobs)
        found = out_of_bag_means(self._trees, self._drawn, to_host(view.values), threads)
        if np.isnan(found[:, 0]).any():
            warn(
                "Some inputs do not have OOB scores. This probably means too few trees were used "
                "to compute any reliable OOB estimates."
            )
        return found

    @explained
    def oob_permutation_importance(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Bunch:
        """Importance of columns by permuting them out of the bag (Breiman 2001).

        Each tree predicts the rows that it has not drawn, before and after the values of one column
        are permuted among them: the increase of its error is the importance of the column to the
        tree. The error is the fraction of wrong classes, so that it is the decrease of the
        accuracy, or the mean squared error. Permutations are hashes of the forest's seed, the tree
        and the column: the importances do not depend on `n_jobs`.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or CodedTable of shape (n_rows, n_features)
            The rows of `fit`, in their order; a forest does not keep them, and only their number
            is checked.
        y : array-like of shape (n_rows,)
            As in `fit`.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in the errors; rows of weight zero take no part.

        Returns
        -------
        importances : Bunch
            As of `sklearn.inspection.permutation_importance`, with trees in place of repeats:
            ``importances``, float64 of shape (n_features, n_estimators), NaN for trees without rows
            out of the bag, and over the others ``importances_mean`` and ``importances_std``, of
            shape (n_features,). R's randomForest divides the mean by its standard error,
            ``importances_std / sqrt(n_estimators)``. ``feature_names`` has the names of the
            columns (x0, x1, ... where `fit` saw none). `gputree.export.plot_importance` draws it.

        Raises
        ------
        ValueError
            X, y or sample_weight are not of the rows of `fit`; trees have all rows
            (``bootstrap=False``), or have drawn all; or the file of the forest does not hold the
            weights by which rows were drawn.
        """
        check_is_fitted(self)
        values, threads = self._values(X), n_threads(self.n_jobs)
        missing_columns(values, threads)  # refuses infinities
        self._require_rows(len(values), "oob_permutation_importance")
        target = self._known_target(to_host(y))
        weight = check_weights(to_host(sample_weight), target)
        found = permutation_importances(
            self._trees, self._drawn, self._origins, values, target, weight, threads
        )
        if np.isnan(found).all():
            raise InputError("Each tree has drawn all rows: there are none out of the bag.")
        return Bunch(
            importances_mean=np.nanmean(found, axis=1),
            importances_std=np.nanstd(found, axis=1),
            importances=found,
            feature_names=self._names(),
        )

    def _names(self) -> list[str]:
        """Names of the columns."""
        names = getattr(self, "feature_names_in_", None)
        return [f"x{f}" for f in range(self.n_features_in_)] if names is None else list(names)

    def _known_target(self, y: Any) -> NDArray:
        """Class codes, or targets, of the rows of fit."""
        raise NotImplementedError

    def _score_out_of_bag(self, view: Table, target: NDArray) -> None:
        raise NotImplementedError

    def _keep_targets(self, view: Table, target: NDArray, weight: Weight) -> None:
        """Keep the targets that quantiles are computed from."""
        raise NotImplementedError


def balancing(of_class: NDArray[Any]) -> NDArray[np.float64]:
    """Factors that give all classes with weight the same total weight; 0 for the others."""
    present = of_class > 0
    found = np.zeros(of_class.size)
    found[present] = of_class.sum() / (np.count_nonzero(present) * of_class[present])
    return found


def of_tree(grower: Any, origin: Origin) -> Any:
    """Estimator that grows the tree of an origin; the first one warns for all."""
    tree = copy(grower)
    tree.random_state, tree._warns = tree_seed(*origin.key), origin.number == 0
    return tree


def _grow_tree(grower: Any, view: Table, target: NDArray, weight: NDArray | None) -> CompactTree:
    """One tree; rows of weight zero take no part."""
    grower.tree_ = grower._grow_tree(view, target, weight, view.shape[0])
    grower._cut_back()
    return CompactTree.of(grower.tree_)


def _draw_count(forest: Forest, n: int, total: float) -> int | None:
    """Number of rows that a tree draws of n with the total weight `total`, as in scikit-learn."""
    most = forest.max_samples
    if not forest.bootstrap:
        if most is not None:
            raise InputError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to "
                "`bootstrap=True` or set `max_sample=None`."
            )
        return None
    if most is None:
        return n
    if isinstance(most, bool):
        raise InputError(
            f"max_samples={most} of {type(forest).__name__}: give a number of rows, or a fraction."
        )
    if isinstance(most, Integral):
        return int(most)
    draws = max(int(most * total), 1)
    if draws < max(10, n ** (1 / 3)):
        warn(
            f"{type(forest).__name__} draws {draws} rows for a tree, with max_samples={most} as a "
            "fraction of the total weight: give the number of rows, as an integer."
        )
    return draws


def _seed(random_state: Any) -> int:
    """Seed that a forest's draws are hashed with."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
