"""Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3).

R(T) is the sum over the leaves of weight fraction times impurity (or error rate). Of all prunings
of a tree, T(alpha) is the smallest that minimises R(T) + alpha * leaves(T).
As alpha grows, whole subtrees collapse, one weakest link after the other: `tree.weakest_links`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats, Int64s
from gputree.base.optional import require
from gputree.base.sklearn import Interval, InvalidParameterError, StrOptions
from gputree.base.texts import html_table, tabled
from gputree.pruning.base import Pruner, Rows, require_tree
from gputree.tree import Tree
from gputree.tree.weakest_links import Risk, node_risk, root_risk, weakest_links

# Alphas closer than this (relative) are one step of the sequence: the sums behind
# them have been seen to differ by 1e-12.
ROUNDING = 1e-10


class CostComplexityPath(NamedTuple):
    """Steps of the weakest-link sequence, from the full tree to the root.

    Attributes
    ----------
    ccp_alphas : float64 array of shape (n_steps,)
        Alpha at which each tree of the sequence begins to be the best one.
    impurities : float64 array of shape (n_steps,)
        R of each tree: risk summed over its leaves by fraction of the weight.
    """

    ccp_alphas: Floats
    impurities: Floats


class CostComplexity(Pruner):
    """Cost-complexity pruning for a given alpha.

    Parameters
    ----------
    alpha : float, default=0.0
        Complexity parameter: cost per leaf in units of risk (of the whole tree, so that the root's
        risk is the largest useful value). Links with g <= alpha are collapsed;
        0 collapses the splits that gain nothing.
    risk : {"impurity", "error"}, default="impurity"
        The risk R: the impurity the tree was grown by, as in scikit-learn, or the fraction of
        misclassified weight, as in Breiman et al. and rpart. The same for regression: the impurity.
    cp : float or None, default=None
        rpart's complexity parameter, instead of `alpha`: the cost per leaf as a fraction of the
        root's risk; with 1 only the root remains. rpart's classification is
        ``CostComplexity(cp=0.01, risk="error")``.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen, C. Stone. Classification and Regression
    Trees. Wadsworth, 1984. Section 3.3.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.pruning import CostComplexity
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier().fit(X, y)
    >>> tree.get_n_leaves(), CostComplexity(0.02).prune(tree).get_n_leaves()
    (9, 4)
    """

    _takes_targets = True

    _parameter_constraints = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, None, closed="left")],
        "risk": [StrOptions({"impurity", "error"})],
        "cp": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self, alpha: float = 0.0, risk: Risk = "impurity", cp: float | None = None
    ) -> None:
        self.alpha = alpha
        self.risk = risk
        self.cp = cp

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.cp is not None and self.alpha != 0.0:
            raise InvalidParameterError(
                "The 'cp' parameter of CostComplexity must be None where alpha is given: both "
                f"are the price of a leaf. Got cp={self.cp!r} and alpha={self.alpha!r} instead."
            )

    def prune_tree(self, tree: Tree, data: Rows | None = None) -> Tree:
        """T(alpha) of `tree`; `data` is not used."""
        self._validate_params()
        alpha = weakest_links(tree, self.risk).alpha
        if self.cp is None:
            return tree.collapse(alpha <= self.alpha)
        if self.cp >= 1:  # gains and risks have different rounding errors
            return tree.collapse(np.ones(tree.n_nodes, np.bool_))
        return tree.collapse(alpha / root_risk(tree, self.risk) <= self.cp)


def cost_complexity_path(tree: Tree, risk: Risk = "impurity") -> CostComplexityPath:
    """The effective alphas of a tree and R of the tree at each.

    Parameters
    ----------
    tree : Tree
        Binary or multiway, classification or regression.
    risk : {"impurity", "error"}, default="impurity"
        As in `CostComplexity`.

    Returns
    -------
    CostComplexityPath
        One entry for the full tree (alpha 0) and one for each collapse, as in
        scikit-learn's ``cost_complexity_pruning_path``.
    """
    links = weakest_links(tree, risk)
    full = node_risk(tree, risk)[tree.is_leaf].sum() / tree.weight[0]
    steps = np.concatenate([[full], links.risk_increase[links.order]])
    return CostComplexityPath(
        ccp_alphas=np.concatenate([[0.0], links.alpha[links.order]]), impurities=np.cumsum(steps)
    )


class NestedSequence(NamedTuple):
    """The nested trees, from the full one to the root: where each begins, its size and R."""

    alphas: Floats
    n_leaves: Int64s
    n_splits: Int64s
    risk: Floats

    def table(self, tree: Tree, risk: Risk) -> CPTable:
        """One row a tree of the sequence of `tree`, the smallest first; without xerror and xstd."""
        table = np.empty(self.alphas.size, dtype=CP_TABLE)
        table["xerror"] = table["xstd"] = np.nan
        table["alpha"] = self.alphas
        table["cp"] = self.alphas / root_risk(tree, risk)
        table["n_leaves"], table["nsplit"] = self.n_leaves, self.n_splits
        table["relative_error"] = self.risk / (self.risk[-1] or 1.0)
        return CPTable(table[::-1].copy(), risk)


def nested_sequence(tree: Tree, risk: Risk) -> NestedSequence:
    """Steps of the path, those that tie taken together."""
    links = weakest_links(tree, risk)
    path = cost_complexity_path(tree, risk)
    lost = np.concatenate([[0], np.cumsum(links.leaves_lost[links.order])])
    alphas = np.maximum(path.ccp_alphas, 0.0)  # gains of nothing may round below 0
    last = np.append(alphas[1:] > alphas[:-1] * (1 + ROUNDING), True)
    collapse = np.minimum(links.alpha, tree.over_ancestors(np.minimum, links.alpha, np.inf))
    ends = np.sort(collapse[~tree.is_leaf])
    n_splits = ends.size - np.searchsorted(ends, alphas[last], side="right")
    return NestedSequence(
        alphas[last], (tree.n_leaves - lost)[last], n_splits, path.impurities[last]
    )


def cp_table(estimator_or_tree: Any, risk: Risk = "error") -> CPTable:
    """The cost-complexity sequence of a fitted tree, as rpart's ``printcp`` prints it.

    Parameters
    ----------
    estimator_or_tree : fitted estimator of one tree, or Tree
        Of an estimator, the tree as it was grown.
    risk : {"error", "impurity"}, default="error"
        As in `CostComplexity`; rpart's is the error.

    Returns
    -------
    CPTable of shape (n_trees,)
        As `CostComplexityCV.cp_table_`, but that ``xerror`` and ``xstd``, which need
        cross-validation, are NaN, and are not printed.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        It has several trees.
    ValueError
        There is no such risk.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.pruning import cp_table
    >>> print(cp_table(DecisionTreeClassifier(max_depth=2).fit(*load_iris(return_X_y=True))))
         CP  nsplit  rel error
    1  0.50       0       1.00
    2  0.44       1       0.50
    3  0.00       2       0.06
    """
    if risk not in get_args(Risk):
        raise InvalidParameterError(
            f"The 'risk' parameter of cp_table must be {StrOptions(set(get_args(Risk)))}. Got "
            f"{risk!r} instead."
        )
    tree = estimator_or_tree
    if not isinstance(tree, Tree):
        require_tree(tree)
        tree = getattr(tree, "unpruned_tree_", tree.tree_)
    return nested_sequence(tree, risk).table(tree, risk)


CP_FIELDS: dict[str, type[np.generic]] = {
    "alpha": np.float64,
    "cp": np.float64,
    "n_leaves": np.int64,
    "nsplit": np.int64,
    "relative_error": np.float64,
    "xerror": np.float64,
    "xstd": np.float64,
}
CP_TABLE = np.dtype(list(CP_FIELDS.items()))

# The columns that are printed, as rpart heads them.
_HEADS = {
    "cp": "CP",
    "nsplit": "nsplit",
    "relative_error": "rel error",
    "xerror": "xerror",
    "xstd": "xstd",
}

_DIGITS = 5  # significant digits of the value that needs the most, as in rpart
_MOST_DECIMALS = 10  # beyond, numbers are printed with exponents


class CPTable(np.ndarray):
    """A structured array of the trees of a cost-complexity sequence, from the root alone up.

    Prints as the table of rpart's ``printcp``.

    Attributes
    ----------
    risk : {"impurity", "error"}
        Measure of ``alpha``, ``cp`` and ``relative_error``; see `gputree.pruning.CostComplexity`.
    """

    risk: str

    def __new__(cls, rows: NDArray[Any], risk: str) -> CPTable:
        """`rows` as a table, without copying."""
        table = np.asarray(rows).view(cls)
        table.risk = risk
        return table

    def __array_finalize__(self, source: Any) -> None:
        self.risk = getattr(source, "risk", "impurity")

    def __reduce__(self) -> Any:  # ndarray's leaves attributes out
        return CPTable, (np.asarray(self), self.risk)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        is_column = isinstance(found, CPTable) and found.dtype.names is None
        return np.asarray(found) if is_column else found

    def __str__(self) -> str:
        return tabled(self._cells()) if self._is_table else str(np.asarray(self))

    def __repr__(self) -> str:
        return str(self) if self._is_table else repr(np.asarray(self))

    def _repr_html_(self) -> str | None:
        return html_table(self._cells()) if self._is_table else None

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            All columns: ``alpha``, ``cp``, ``n_leaves``, ``nsplit``, ``relative_error``,
            ``xerror`` and ``xstd``; the last two are NaN without cross-validation.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        return require("pandas", "CPTable.to_frame").DataFrame(np.asarray(self))

    @property
    def _is_table(self) -> bool:
        return self.ndim == 1 and self.dtype.names is not None

    def _cells(self) -> list[list[str]]:
        """The columns that are printed, below their heads; those without values are left out."""
        names = [name for name in _HEADS if name in (self.dtype.names or ())]
        names = [name for name in names if not self.size or not np.isnan(self[name]).all()]
        columns = [_column(self[name]) for name in names]
        rows = zip(*columns, strict=True)
        head = ["", *(_HEADS[name] for name in names)]
        return [head, *([str(place), *row] for place, row in enumerate(rows, 1))]


def _column(values: NDArray[Any]) -> list[str]:
    """Numbers with as many decimals as the one that needs most at `_DIGITS` digits."""
    if values.dtype.kind == "i":
        return [str(value) for value in values.tolist()]
    decimals = max((_decimals(value) for value in values.tolist()), default=0)
    if decimals > _MOST_DECIMALS:
        return [f"{value:.{_DIGITS - 1}g}" for value in values.tolist()]
    return [f"{value:.{decimals}f}" for value in values.tolist()]


def _decimals(value: float) -> int:
    if not np.isfinite(value):
        return 0
    mantissa, exponent = f"{value:.{_DIGITS - 1}e}".split("e")
    return max(len(mantissa.rstrip("0").partition(".")[2]) - int(exponent), 0)
