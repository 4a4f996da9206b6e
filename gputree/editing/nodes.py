"""Nodes of a tree that is edited: their numbers, rows, words and alternatives."""

from collections.abc import Sequence
from copy import copy, deepcopy
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from gputree import prediction
from gputree.backends.devices import to_host
from gputree.base.dtypes import MISSING_TO_ALL, UNSEEN, Int64s, Weight
from gputree.base.sklearn import check_consistent_length
from gputree.columns.cells import as_table
from gputree.editing.alternatives import (
    Alternatives,
    Counted,
    agreements,
    alternative,
    of_categories,
    of_ranges,
)
from gputree.editing.history import Edit, Skipped
from gputree.errors import InputError, InputTypeError
from gputree.estimators import (
    C45Classifier,
    CodedTable,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
from gputree.estimators.arguments import FLAGS, names_of, place_of
from gputree.estimators.coded_table import known_table
from gputree.estimators.list_subtrees import ListSubtrees
from gputree.estimators.subtrees import CartSubtrees, ancestors
from gputree.export.describe import describe
from gputree.export.html import losses_of, page_data, routed
from gputree.inputs.targets import forbid_targets
from gputree.inputs.validation import check_table, check_weights
from gputree.prediction.losses import RoutedRows, encode_target, node_loss, require_known_labels
from gputree.pruning import PenalizedLoss, Pessimistic, Pruner, ReducedError, ValidationPrePruning
from gputree.tree import Tree
from gputree.tree.branches import add_up
from gputree.tree.weakest_links import weakest_links

_KINDS = {
    DecisionTreeClassifier: CartSubtrees,
    DecisionTreeRegressor: CartSubtrees,
    C45Classifier: ListSubtrees,
    ID3Classifier: ListSubtrees,
}

# Numbers of nodes that an error lists.
FEW_NODES = 8


class State(NamedTuple):
    """A tree after some edits, and the numbers by which the user knows its nodes."""

    tree: Tree
    number: Int64s  # (N,)
    used: int  # numbers given so far
    edit: Edit | None = None  # which led here; None for the first


class OtherRowsError(InputError):
    """Rows are not those that a tree was grown on."""


class EditedNodes:
    """Base of `TreeEditor`: what it knows of the nodes of the tree as it is now."""

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        validation: Sequence[Any] | None = None,
    ) -> None:
        kind = estimator if isinstance(estimator, type) else type(estimator)
        if kind not in _KINDS:
            names = ", ".join(known.__name__ for known in _KINDS)
            raise InputTypeError(f"TreeEditor takes one of {names}, got {kind.__name__}.")
        X = as_table(X)
        if isinstance(estimator, type) or not hasattr(estimator, "tree_"):
            unfitted = estimator() if isinstance(estimator, type) else clone(estimator)
            estimator = unfitted.fit(X, y, sample_weight)
        forbid_targets(estimator.tree_.n_outputs, "TreeEditor", "Fit one estimator a target.")
        if estimator.tree_.soft_lower is not None:
            raise InputError("A tree with soft thresholds is not edited: fit without them.")
        self._estimator, self._before = estimator, list(getattr(estimator, "edits_", []))
        self._kept: Int64s | None = None  # rows that have weight, if not all
        self._weight: Weight = None
        self._subtrees = self._read(X, y, sample_weight)
        tree = estimator.tree_
        self._states = [State(tree, np.arange(tree.n_nodes), tree.n_nodes)]
        self._place = 0
        self.skipped: list[Skipped] = []
        self._check_rows()
        self._validation = validation
        self._routed_last: tuple[Tree, RoutedRows] | None = None  # that tree, and rows there

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Code the table once, and return the subtrees that are made over it."""
        estimator = self._estimator
        if isinstance(X, CodedTable):
            table = known_table(estimator, X._table)
        else:
            check_consistent_length(X, y)
            table = check_table(estimator, X, reset=False)
        if table.sharding is not None or not isinstance(table.stored, np.ndarray):
            raise InputError("TreeEditor takes a table in the memory of the host: pass X itself.")
        y = to_host(y)
        target = encode_target(estimator, y)
        if estimator.tree_.task == "classification":
            require_known_labels(y, target)
        given = check_weights(to_host(sample_weight), target)
        weight = estimator._combine_weights(given, target)
        if weight is not None and not weight.all():
            self._kept = np.flatnonzero(weight)
            table, target, weight = table.take(self._kept), target[self._kept], weight[self._kept]
        table, self._weight = table.compact(), weight
        nominal = np.flatnonzero(table.columns.nominal)
        if any((table.column(f) == UNSEEN).any() for f in nominal.tolist()):
            raise self._other_rows("a column has a category that the tree has not seen")
        return _KINDS[type(estimator)](estimator, table, target, weight)

    def _check_rows(self) -> None:
        """Raise ValueError unless the tree was grown on these rows."""
        tree, values = self._tree, self._subtrees.values
        if int(tree.n_rows[0]) != len(values):
            raise self._other_rows(f"it was grown on {tree.n_rows[0]:,} rows, got {len(values):,}")
        target, root = self._subtrees.target, tree.statistics[0]
        if tree.task == "regression":
            found = np.array([np.average(target, weights=self._weight)])
        else:
            found = np.bincount(target, self._weight, root.size)
        if not np.allclose(found, root, rtol=1e-6, atol=1e-6 * np.abs(target).max()):
            what = f"{found.tolist()}, and not {root.tolist()}"
            raise self._other_rows(f"with weights, their classes or mean target are {what}")
        if (tree.missing_child == MISSING_TO_ALL).any():  # rows are divided
            return
        stop = prediction.apply(tree, values, self._subtrees.n_threads)
        reached = add_up(tree.parent, np.bincount(stop, minlength=tree.n_nodes))
        wrong = np.flatnonzero(reached != tree.n_rows)
        if wrong.size:
            node = int(wrong[0])
            raise self._other_rows(
                f"node {node} has {tree.n_rows[node]:,} rows, of these {reached[node]:,} reach it"
            )

    def _other_rows(self, reason: str) -> OtherRowsError:
        return OtherRowsError(
            f"X and y are not the rows that the tree was grown on: {reason}. Pass those rows, or "
            "an estimator that is not fitted yet. (Pruners that hold rows out, such as "
            "reduced_error, grow on the others: fit without pruning.)"
        )

    @property
    def _state(self) -> State:
        return self._states[self._place]

    @property
    def _tree(self) -> Tree:
        return self._state.tree

    @property
    def estimator(self) -> Any:
        """A fitted estimator with the tree as it is now, and its history as ``edits_``."""
        return self._with_tree(self._tree, self.history)

    def _with_tree(self, tree: Tree, history: list[Edit]) -> Any:
        made = copy(self._estimator)
        made.tree_ = made.unpruned_tree_ = tree
        made.__dict__.pop("cp_table_", None)
        made.__dict__.pop("edits_", None)
        if history:
            made.edits_ = history
        return made

    @property
    def history(self) -> list[Edit]:
        """Edits that led here, those of the model file that was edited first, as JSON has them."""
        edits = [state.edit for state in self._states[1 : self._place + 1]]
        return deepcopy([*self._before, *(edit for edit in edits if edit is not None)])

    @property
    def numbers(self) -> Int64s:
        """The number of each node of ``estimator.tree_``, by which the editor knows it."""
        return self._state.number.copy()

    def _find(self, node: Any) -> int:
        """Return the place in the tree of a node, which is given by its number or its path."""
        if isinstance(node, (tuple, list)):
            return self._at(node)
        is_flag = isinstance(node, FLAGS)  # True equals 1
        found = np.flatnonzero((self._state.number == node) & (not is_flag))
        if found.size == 0:
            few = np.sort(self._state.number)[:FEW_NODES].tolist()
            more = self._state.number.size - len(few)
            rest = f" and {more} more" if more else ""
            nodes = ", ".join(map(str, few))
            raise InputError(f"The tree has no node {node!r}. It has {nodes}{rest}.")
        return int(found[0])

    def _at(self, path: Sequence[int]) -> int:
        """Return the place in the tree of the node at the end of a path."""
        node = 0
        for depth, ordinal in enumerate(path):
            below = self._tree.children(node)
            if not 0 <= ordinal < len(below):
                raise InputError(f"The tree has no node at {list(path)}: it ends at depth {depth}.")
            node = below[ordinal]
        return node

    def _path(self, node: int) -> list[int]:
        tree, path = self._tree, [*ancestors(self._tree, node), node]
        pairs = zip(path, path[1:], strict=False)
        return [below - int(tree.first_child[above]) for above, below in pairs]

    def rows(self, node: Any) -> Int64s:
        """Return the indices of the training rows that reach a node, ascending.

        Parameters
        ----------
        node : int, or a path (tuple of ordinals of children from the root)

        Returns
        -------
        rows : int array
            Those with weight; in C4.5 those of which a part reaches it, too.
        """
        rows: Int64s = self._subtrees.rows(self._tree, self._find(node))
        return rows if self._kept is None else self._kept[rows]

    def path(self, node: Any) -> list[str]:
        """Return the conditions from the root to a node, in words."""
        place, words = self._find(node), describe(self.estimator)
        return [str(words.condition(t)) for t in [*ancestors(self._tree, place)[1:], place] if t]

    def summary(self, node: Any) -> dict[str, Any]:
        """Return what is known of a node.

        Returns
        -------
        dict
            ``path``, ``rows``, ``weight``, ``statistics`` (class weights, or the mean target),
            ``impurity``, ``prediction``; with validation rows their ``validation_rows``, and
            their losses with the node as a leaf and as it is: the weight of the misclassified, the
            sum of squared errors, or half the deviance.
        """
        place, tree, words = self._find(node), self._tree, describe(self.estimator)
        found = {
            "path": self.path(node),
            "rows": int(tree.n_rows[place]),
            "weight": float(tree.weight[place]),
            "statistics": tree.statistics[place].tolist(),
            "impurity": float(tree.impurity[place]),
            "prediction": words.answer(place),
        }
        if (data := self._routed()) is not None:
            loss = node_loss(tree, data)
            stops = np.bincount(data.node, minlength=tree.n_nodes)
            found["validation_rows"] = int(add_up(tree.parent, stops)[place])
            found["validation_loss_as_leaf"] = float(loss.as_leaf[place])
            found["validation_loss"] = float(add_up(tree.parent, loss.stopped)[place])
        return found

    def histogram(self, node: Any, column: Any, bins: int = 24) -> dict[str, Any]:
        """Return how the training rows at a node are distributed over a column.

        Parameters
        ----------
        node : int, or a path
        column : str or int
            Name or index.
        bins : int, default=24
            Ranges of equal width, or categories with the largest weights, at most.

        Returns
        -------
        dict
            ``edges`` of the ranges, ascending, or the ``categories``; ``weights`` of the rows in
            each, of shape (ranges, classes), with one column for targets; ``missing``, those of
            rows without a value, and ``others``, those of further categories.
        """
        if bins < 1:
            raise InputError(f"bins must be 1 or more, got {bins}.")
        subtrees, feature = self._subtrees, place_of(self._names, column)
        rows = subtrees.rows(self._tree, self._find(node))
        is_target = self._tree.task == "regression"
        counted = Counted(
            subtrees.values[rows, feature],
            None if is_target else subtrees.target[rows],
            None if self._weight is None else self._weight[rows],
            1 if is_target else self._tree.n_classes,
        )
        columns = subtrees.table.columns
        if columns.nominal[feature]:
            return of_categories(counted, columns.categories[feature], bins)
        return of_ranges(counted, bins)

    def page_data(self) -> dict[str, Any]:
        """Input of the page's script, with numbers of nodes and losses of validation rows."""
        found = page_data(self.estimator) | {"id": self._state.number.tolist()}
        if (data := self._routed()) is not None:
            found["validation"] = losses_of(self._tree, data)
        return found

    @property
    def _names(self) -> list[Any]:
        return names_of(self._estimator)

    def _routed(self) -> RoutedRows | None:
        """Validation rows at the nodes where they stop."""
        if self._validation is None:
            return None
        if self._routed_last is None or self._routed_last[0] is not self._tree:
            self._routed_last = self._tree, routed(self.estimator, self._validation)
        return self._routed_last[1]

    def pruning(self, node: Any) -> dict[str, Any]:
        """Return what the methods of pruning would do with a node that is split.

        Returns
        -------
        dict
            Of each method, by its short name, True where it makes the node, or one above it, a
            leaf; of ``cost_complexity`` the alpha from which it does, if the tree has splits.
            Methods that need validation rows are left out without them; those with parameters
            have their defaults, and ``pessimistic`` does not raise subtrees.
        """
        place, tree, data = self._find(node), self._tree, self._routed()
        path, alpha = self._path(place), weakest_links(tree).alpha
        found: dict[str, Any] = {}
        if tree.n_children[0]:  # infinite where the tree is a leaf, which JSON does not have
            found["cost_complexity"] = float(alpha[[*ancestors(tree, place), place]].min())
        methods: dict[str, Pruner] = {"penalized_loss": PenalizedLoss()}
        if tree.task == "classification":
            methods["pessimistic"] = Pessimistic(subtree_raising=False)
        if data is not None:
            methods |= {
                "reduced_error": ReducedError(), "validation_pre_pruning": ValidationPrePruning(),
            }  # fmt: skip
        for name, pruner in methods.items():
            pruned, at = pruner.prune_tree(tree, data), 0
            for ordinal in path:
                at = pruned.children(at)[ordinal] if pruned.n_children[at] else at
            found[name] = bool(pruned.n_children[at] == 0)
        return found

    def alternatives(self, node: Any, k: int | None = None) -> Alternatives:
        """Return the best split of each column at a node, the one that growth prefers first.

        Limits of the estimator on the children of a split apply, not those on what is split.

        Parameters
        ----------
        node : int, or a path
        k : int, default=None
            Number of alternatives; None for all columns that have one.

        Returns
        -------
        Alternatives
        """
        if k is not None and k < 1:
            raise InputError(f"k must be 1 or more, or None, got {k}.")
        place, tree = self._find(node), self._tree
        subtrees, rows = self._subtrees, self._subtrees.rows(tree, place)
        weight = None if self._weight is None else self._weight[rows]
        candidates = list(islice(subtrees.candidates(tree, place), k))
        stumps = [candidate.stump for candidate in candidates]
        agreed = agreements(
            subtrees.values, rows, weight, (tree, place), stumps, subtrees.n_threads
        )
        in_use = int(tree.feature[place])  # NO_FEATURE at leaves
        found = [
            alternative(self._with_tree(one.stump, []), one, agreement, in_use)
            for one, agreement in zip(candidates, agreed, strict=True)
        ]
        return Alternatives(int(self._state.number[place]), found)
