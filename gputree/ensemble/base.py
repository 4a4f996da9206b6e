"""Forests: trees on drawn rows and columns, whose predictions are averaged.

Trees are grown in threads, one or some at a time, over one coded table that all of them share.
What is random is hashed from the forest's seed, the tree's number and the node's path, and sums
over trees are in their order, so that a forest depends neither on threads nor on which tree is
grown first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from functools import cache
from inspect import signature
from typing import Any, ClassVar, Self, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.backends.devices import to_host
from gputree.base.dtypes import Floats, Int32s, Int64s
from gputree.base.progress import new_bar
from gputree.base.threads import n_threads, run
from gputree.columns import Columns
from gputree.ensemble.compact import CompactTree, LazySequence, Trees
from gputree.ensemble.draws import (
    Draws,
    Origin,
    Strata,
    draw_count,
    is_by_class,
    seed_of,
    tree_seed,
)
from gputree.ensemble.out_of_bag import WITHOUT_BOOTSTRAP, StandardErrors
from gputree.ensemble.trees import OUT_OF_BAG, TableRows, Weight, cut, join
from gputree.errors import InputError, warn
from gputree.estimators.arguments import explained, monotonic_signs
from gputree.estimators.cart import Cart, column_count
from gputree.estimators.coded_table import CodedTable, known_table
from gputree.estimators.growing_ranked import is_ranked
from gputree.estimators.parameters import ForestParameters
from gputree.estimators.reporting import Reporting
from gputree.estimators.table_estimator import EndOfPart
from gputree.inputs.tables import Table
from gputree.inputs.targets import forbid_targets, listed
from gputree.inputs.validation import check_weight_range, check_weights, compare_columns
from gputree.prediction.forest import PackedForest, leaves
from gputree.tree.statistics import mean_importances

# Maximum rows of all trees that one call grows: then little time passes between calls, and a fit
# can be interrupted after each. The peak of 20 trees of credit_default is 20.5 MB with 2**18, 16.5
# with 2**17, and 13.4 with 2**16, which takes 1.04 times as long.
BLOCK_ROWS = 1 << 17
# Blocks of trees for each thread, at least: threads end at about the same time. Where a thread has
# few rows of all its trees, one: what a block takes beyond its kernels is 0.3 ms.
BLOCKS_PER_THREAD = 2
FEW_ROWS = 1 << 15


class Forest(ForestParameters, Reporting, StandardErrors):
    """Growth and prediction of forests; subclasses say what the target is."""

    pruning = None
    quantreg = False
    _part = "tree"
    columns_: Columns
    feature_names_in_: NDArray[Any]

    _grows_on_device = True

    _tree_class: ClassVar[type[Cart]]
    _takes_targets = True
    _averages: ClassVar[bool] = True  # what its trees predict, all alike
    # Whether trees draw their cuts, too.
    _draws_cuts: ClassVar[bool] = False

    # ----------------------------------------------------------- growth
    def _fit_afresh(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._forbid_options()
        before = copy(self)
        rows = self._read_rows(X, y, sample_weight)
        if is_by_class(self.max_samples):
            user = f"max_samples by class of {type(self).__name__}"
            forbid_targets(self.n_outputs_, user, "Leave it out.")
        kept = self._kept_trees(before, rows.given)
        if len(kept) < self.n_estimators:
            self._set_draws(kept, rows)
            self._grow_trees(kept, rows)
        self._measure(rows)
        return self

    def _forbid_options(self) -> None:
        """Raise ValueError for parameters that exclude each other."""
        is_ranked(self)  # raises its errors before a tree raises others
        if self.oob_score and not self.bootstrap:
            raise InputError(WITHOUT_BOOTSTRAP)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Learn the columns and the target; return the rows to grow on."""
        table = self._learn_table(X)
        target = self._check_target(to_host(y), table.shape[0])
        self.n_outputs_ = 1 if target.ndim == 1 else target.shape[1]
        weight = check_weights(to_host(sample_weight), target)
        if not self._balances_subsamples:
            weight = self._combine_weights(weight, target)
        check_weight_range(weight)
        monotonic_signs(self, self.columns_)  # raise its errors before a tree raises others
        self._warn_of_identifiers(table, weight)
        return TableRows(self, X, table, target, weight)

    def _measure(self, rows: Any) -> None:
        """Score rows out of the bag, and keep targets for quantiles, as parameters require."""
        if self.oob_score:
            self._score_out_of_bag(rows.table, rows.target)
        if self.quantreg:
            self._keep_targets(rows.table, rows.target, rows.weight)

    def _kept_trees(self, before: Forest, X: Any) -> list[CompactTree]:
        """The trees of the fit before, which stay with `warm_start`."""
        kept = list(before._trees) if self.warm_start and hasattr(before, "_trees") else []
        if kept:
            before._require_columns(X)
            self._require_same(before)
        if len(kept) > self.n_estimators:
            raise InputError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(kept)} when warm_start==True"
            )
        if len(kept) == self.n_estimators:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
        return kept

    def _set_draws(self, kept: list[CompactTree], rows: Any) -> None:
        """Choose the rows of each tree."""
        # of a file, or of a former fit
        for name in ("missing_marks_", "reading_", "_leaf_targets", *OUT_OF_BAG):
            self.__dict__.pop(name, None)
        total, weight = rows.total_and_weight()
        strata = self._strata(rows)
        draws = draw_count(self, rows.n_rows, total) if strata is None else int(strata.draws.sum())
        seed = self._draws.seed if kept else seed_of(self.random_state)
        self._draws = Draws(seed, rows.n_rows, draws, None if draws is None else weight, strata)
        before = self._origins if kept else []
        first = 1 + max((origin.number for origin in before if origin.of.seed == seed), default=-1)
        more = range(first, first + self.n_estimators - len(kept))
        self._origins = [*before, *(Origin(self._draws, number) for number in more)]

    def _strata(self, rows: Any) -> Strata | None:
        """Classes whose rows are drawn apart; None where they are not."""
        return None

    def _grow_trees(self, kept: list[CompactTree], rows: Any) -> None:
        """Grow new trees, some at once, and append them to `kept`."""
        numbers, threads = range(len(kept), self.n_estimators), n_threads(self.n_jobs)
        grower, at_once = rows.grower(len(numbers))
        grower.n_jobs = max(threads // at_once, 1)
        bar = new_bar(len(numbers), bool(self.verbose), lines=True, desc="trees", unit="tree")

        def new_tree(t: int) -> Any:
            tree, origin = copy(grower), self._origins[t]
            tree.random_state = tree_seed(*origin.key)
            tree._warns = origin.number == 0  # the first one warns for all
            return tree

        def grow(t: int) -> CompactTree:
            tree = new_tree(t)
            tree.tree_ = rows.grow(tree, t)
            tree._cut_back()
            return CompactTree.of(tree.tree_)

        def grow_some(some: Sequence[int]) -> list[CompactTree]:
            grown = None
            if rows.grows_whole:
                grown = rows.grow_whole(copy(grower), some)
            elif len(some) > 1:
                grown = rows.grow_stacked([new_tree(t) for t in some], some)
            if grown is None and len(some) > 1:
                fewer = 1 if rows.grows_whole else len(some) // 2
                parts = [some[a : a + fewer] for a in range(0, len(some), fewer)]
                return [tree for part in parts for tree in grow_some(part)]
            grown = grown or [grow(t) for t in some]
            for _ in grown if bar is not None else ():
                bar.update()  # one by one, so that each is shown
            return grown

        most, blocks_each = rows.stacked, 1
        if rows.grows_whole:
            most, rows_each = BLOCK_ROWS // rows.n_rows, len(numbers) * rows.n_rows // at_once
            blocks_each = BLOCKS_PER_THREAD if rows_each > FEW_ROWS else 1
        size = max(min(most, len(numbers) // (blocks_each * at_once)), 1)
        together = BLOCKS_PER_THREAD * at_once * size if self._has_callbacks else len(numbers)
        with nullcontext() if bar is None else bar:
            for a in range(0, len(numbers), together):
                some = numbers[a : a + together]
                ends = [self._begin_part() for _ in some]
                blocks = [(some[b : b + size],) for b in range(0, len(some), size)]
                found = [tree for trees in run(at_once, grow_some, blocks) for tree in trees]
                if self._end_parts(kept, found, ends):
                    break
        self._trees = Trees(kept)
        if numbers.start == 0 and rows.dtype is not None:  # else once for many fits that add trees
            self._trees.packed(rows.dtype, threads)

    def _end_parts(
        self, kept: list[CompactTree], found: list[CompactTree], ends: list[EndOfPart]
    ) -> bool:
        """Append trees to `kept` until a callback ends the fit with one; return whether it did."""
        for tree, end in zip(found, ends, strict=True):
            kept.append(tree)
            if end(lambda: {"_trees": Trees(list(kept)), "_origins": self._origins[: len(kept)]}):
                self._origins = self._origins[: len(kept)]
                return True
        return False

    def _most_parts(self) -> int:
        return int(self.n_estimators)

    def _require_columns(self, X: Any) -> None:
        """Refuse a table with other columns than in fit, as `predict` does."""
        if isinstance(X, CodedTable):
            known_table(self, X._table)
        else:
            compare_columns(self, X)

    def _require_same(self, before: Forest) -> None:
        """Refuse to add trees to trees of other categories or classes.

        Names of columns stay where the second table has none.
        """
        if hasattr(before, "feature_names_in_"):
            self.feature_names_in_ = before.feature_names_in_
        if not self.columns_.same_as(before.columns_):
            raise InputError(
                "X must have the columns and the categories of the fit before when "
                "warm_start==True; pass both as one data type, or a CodedTable."
            )
        if self.n_outputs_ != before.n_outputs_:
            raise InputError(
                "y must have the targets of the fit before when warm_start==True: "
                f"{before.n_outputs_}; got {self.n_outputs_}."
            )
        mine, theirs = (listed(getattr(f, "classes_", [])) for f in (self, before))
        if mine != theirs:
            raise InputError(
                "y must have the classes of the fit before when warm_start==True: "
                f"{theirs}; got {mine}."
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

    def _new_tree(self, **others: Any) -> Any:
        """An estimator of one tree with this one's parameters and `others`, on its columns."""
        kind, mine = self._tree_class, type(self)
        names = _parameters(kind), _parameters(mine)  # type: ignore[arg-type]  # classes hash
        params = {name: getattr(self, name) for name in names[0] if name in names[1]}
        params["ties"] = "random" if self._draws_anything else "first"
        if self._draws_cuts:
            params |= {"splitter": "random", "device": "cpu"}
        if self._balances_subsamples:
            params["class_weight"] = None
        tree: Any = kind(**{**params, **others})
        tree._take_learned(self)
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
        different seeds (`random_state`) make a forest as if all trees were grown by one; those of
        different tables predict the mean weighted by their numbers of trees. The rows that trees
        have drawn are known, ``oob_score_`` is not. With `warm_start` more trees are drawn by the
        seed of the second one.

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
    def feature_importances_(self) -> Floats:
        """Mean of the trees' importances, normalized, shape (n_features,).

        That of a tree is the fraction of each column in the total decrease of impurity.
        """
        check_is_fitted(self)
        return mean_importances(self._trees.expanded)

    def _report_size(self) -> dict[str, int]:
        leaves = sum(tree.n_rows.size for tree in self._trees)
        return {"trees": len(self._trees), "leaves": leaves}

    def _training_mean(self) -> float | Floats:
        if self._trees[0].task == "classification":
            return np.nan
        means: Floats = np.mean([tree.statistics[0] for tree in self._trees], axis=0)
        return means

    # ------------------------------------------------------- prediction
    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_trees")

    def _descended(self, dtype: np.dtype[Any]) -> PackedForest:
        return self._trees.packed(dtype, n_threads(self.n_jobs))

    @explained
    def apply(self, X: Any) -> Int32s:
        """Index of the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)

        Returns
        -------
        leaves : int32 array of shape (n_rows, n_estimators)
            Indices of nodes of ``estimators_[t].tree_``.
        """
        found: Int32s = self._descend(leaves, X)
        return found

    @explained
    def decision_path(self, X: Any) -> tuple[csr_matrix, Int64s]:
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

        def paths(_: PackedForest, values: NDArray, **how: Any) -> csr_matrix:
            found = [prediction.decision_path(tree, values, **how) for tree in self._trees.expanded]
            return hstack(found, "csr")

        return self._descend(paths, X), self._trees.node_ends

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

    def _keep_targets(self, table: Table, target: NDArray, weight: Weight) -> None:
        """Keep the targets that quantiles are computed from."""
        raise NotImplementedError


@cache
def _parameters(kind: type) -> list[str]:
    """Names of the parameters of a class, which take a millisecond to read."""
    return list(signature(kind).parameters)
