"""Editing of one tree: splits compared and replaced, subtrees grown again or pruned, undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone

from gputree.editing.history import Edit, Skipped, forbid_objects, read_history
from gputree.editing.nodes import EditedNodes, State
from gputree.errors import InputError
from gputree.estimators.arguments import cut_of, finite, place_of
from gputree.export.describe import describe
from gputree.export.text import text_lines
from gputree.growth.assembly import graft
from gputree.tree import Tree


class TreeEditor(EditedNodes):
    """Compares, replaces and removes splits of one tree over the rows that it was grown on.

    A node keeps its number, which is at first the one in ``estimator.tree_``, as long as it exists;
    nodes that an edit makes get new ones. ``print(editor)`` shows the tree with them.

    Parameters
    ----------
    estimator : estimator of one tree, or its class
        `DecisionTreeClassifier`, `DecisionTreeRegressor`, `C45Classifier` or `ID3Classifier`; one
        that is not fitted is fitted first. It is not changed.
    X : array-like, data frame, sparse matrix or CodedTable of shape (n_rows, n_features)
        The rows that the tree was grown on.
    y : array-like of shape (n_rows,)
    sample_weight : array-like of shape (n_rows,), default=None
        The weights that it was grown with.
    validation : tuple (X, y) or (X, y, sample_weight), default=None
        Rows that the tree was not grown on, for `summary` and `pruning`.

    Attributes
    ----------
    skipped : list of Skipped
        Edits of a replayed history that did not apply, with the reason.

    Raises
    ------
    TypeError
        The estimator is none of these.
    ValueError
        The rows are not those that the tree was grown on (as with a pruner that held some out); or
        the tree has monotonic constraints, soft thresholds, winnowed columns or a criterion that
        ranks targets.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.editing import TreeEditor
    >>> editor = TreeEditor(DecisionTreeClassifier(max_depth=2), *load_iris(return_X_y=True))
    >>> editor.split(0, 3, threshold=0.8)
    >>> editor.grow(6)
    >>> print(editor, end="")
    0: all rows
    5: x3 <= 0.8: setosa (50)
    6: x3 > 0.8
    7: |   x3 <= 1.75: versicolor (54/5)
    8: |   x3 > 1.75: virginica (46/1)
    """

    def split(self, node: Any, column: Any, threshold: Any = None, categories: Any = None) -> None:
        """Replace what is below a node by one split, whose children are leaves.

        Parameters
        ----------
        node : int, or a path
        column : str or int
            Name or index.
        threshold : float, default=None
            Values up to it go to the first child. Of ordered categories, the last of these.
        categories : list, default=None
            Those that go to the first child; all others that the node has go to the second. In
            C4.5, one category with ``binary_splits=True``, else none.

        Notes
        -----
        Without both, the best cut of the column is taken, with the limits of the estimator.
        Missing values go to the side where the gain is larger. C4.5 and ID3 have a branch for
        each category.
        """
        name = self._names[place_of(self._names, column)]
        edit: Edit = {"edit": "split", "path": self._path(self._find(node)), "column": name}
        if threshold is not None:
            edit["threshold"] = threshold if isinstance(threshold, str) else finite(threshold, name)
        if categories is not None:
            is_list = not isinstance(categories, str)  # which is refused below
            edit["categories"] = list(map(_plain, categories)) if is_list else categories
        self._do(edit)

    def grow(self, node: Any, **limits: Any) -> None:
        """Grow the subtree of a node again, in place of what is below it.

        Parameters
        ----------
        node : int, or a path
        **limits : parameters of the estimator
            In place of those that it has, such as ``max_depth`` (from the root) or
            ``min_samples_leaf``, and ``exclude``, a list of columns that take no part; not those of
            all of the tree, such as ``class_weight``.
            `max_leaf_nodes` limits the leaves of the whole tree.

        Notes
        -----
        No pruning follows. Grown from the root, the tree is the one of `fit` before pruning, and
        without `forced_splits`.
        """
        edit: Edit = {"edit": "grow", "path": self._path(self._find(node))}
        if limits:
            edit["limits"] = {name: _plain(value) for name, value in limits.items()}
            forbid_objects(edit["limits"])
        self._do(edit)

    def prune(self, nodes: Any) -> None:
        """Make one or several nodes leaves.

        Parameters
        ----------
        nodes : int, a path, or a list of them
        """
        listed = nodes if isinstance(nodes, (list, set, range, np.ndarray)) else [nodes]
        if not len(listed):
            raise InputError("prune takes one node at least.")
        self._do({"edit": "prune", "paths": [self._path(self._find(node)) for node in listed]})

    def _do(self, edit: Edit) -> None:
        """Apply an edit; edits that were undone are lost."""
        state = _EDITS[edit["edit"]](self, edit)
        self._states = [*self._states[: self._place + 1], state]
        self._place += 1

    def _pruned(self, edit: Edit) -> State:
        tree, _, used, _ = self._state
        marked = np.zeros(tree.n_nodes, np.bool_)
        for path in edit["paths"]:
            node = self._at(path)
            if tree.n_children[node] == 0:
                raise InputError(f"Node {self._state.number[node]} is a leaf already.")
            marked[node] = True
        kept = ~tree.over_ancestors(np.logical_or, marked, False)
        return State(tree.collapse(marked), self._state.number[kept], used, edit)

    def _grown(self, edit: Edit) -> State:
        node = self._at(edit["path"])
        return self._grafted(
            node, self._subtrees.grow(self._tree, node, edit.get("limits", {})), edit
        )

    def _split(self, edit: Edit) -> State:
        node, feature = self._at(edit["path"]), place_of(self._names, edit["column"])
        allowed = self._subtrees.allowed(self._tree, node)
        if allowed is not None and not allowed[feature]:
            raise InputError(
                f"Column {self._names[feature]!r} may not split node {self._state.number[node]}: "
                "interaction_cst does not let it interact with the columns of the splits above."
            )
        if "threshold" not in edit and "categories" not in edit:
            best = next(self._subtrees.candidates(self._tree, node, feature), None)
            if best is None:
                raise InputError(
                    f"Column {self._names[feature]!r} has no admissible split at node "
                    f"{self._state.number[node]}."
                )
            return self._grafted(node, best.stump, edit)
        columns, given = (
            self._subtrees.table.columns,
            (edit.get("threshold"), edit.get("categories")),
        )
        cut = cut_of(columns, feature, self._names[feature], *given)
        return self._grafted(node, self._subtrees.split(self._tree, node, feature, *cut), edit)

    def _grafted(self, node: int, subtree: Tree, edit: Edit) -> State:
        tree, origin = graft(self._tree, node, subtree)
        is_new = origin < 0
        used = self._state.used + int(np.count_nonzero(is_new))
        number = np.where(is_new, self._state.used + np.cumsum(is_new) - 1, 0)
        number[~is_new] = self._state.number[origin[~is_new]]
        return State(tree, number, used, edit)

    def undo(self) -> None:
        """Return to the tree before the last edit."""
        if not self.can_undo:
            raise InputError("There is no edit to undo.")
        self._place -= 1

    @property
    def can_undo(self) -> bool:
        """True if there is an edit to undo."""
        return self._place > 0

    @property
    def can_redo(self) -> bool:
        """True if there is an edit to redo."""
        return self._place + 1 < len(self._states)

    def redo(self) -> None:
        """Apply the edit again that was undone last."""
        if not self.can_redo:
            raise InputError("There is no edit to redo.")
        self._place += 1

    def apply(self, history: Any) -> list[Skipped]:
        """Apply the edits of a history to the tree as it is now.

        Parameters
        ----------
        history : list, or its JSON text
            `history` of an editor, of a tree of the same columns.

        Returns
        -------
        list of Skipped
            Edits that do not apply, with the reason; they are left out.
        """
        skipped = []
        for edit in read_history(history):
            try:
                self._do(edit)
            except InputError as error:
                skipped.append(Skipped(edit, str(error)))
        return skipped

    def replay(
        self,
        history: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        validation: Sequence[Any] | None = None,
    ) -> TreeEditor:
        """Apply a history to the tree that this editor began with, or to one of other rows.

        Parameters
        ----------
        history : list, or its JSON text
            `history` of an editor. Edits that a loaded model already had are not applied again.
        X, y, sample_weight : default=None
            Rows to fit a tree on, by the parameters of the estimator. None for that tree.
        validation : tuple, default=None
            Other rows, for the new editor.

        Returns
        -------
        TreeEditor
            Another one; its ``skipped`` lists edits that do not apply.
        """
        edits = read_history(history)
        if X is None:
            made = copy(self)
            made._states, made._place = self._states[:1], 0
            if edits[: len(self._before)] == self._before:
                edits = edits[len(self._before) :]
        else:
            made = TreeEditor(clone(self._estimator), X, y, sample_weight, validation)
        made.skipped = made.apply(edits)
        return made

    def __str__(self) -> str:
        return "".join(text_lines(describe(self.estimator), numbers=self._state.number))


def _plain(value: Any) -> Any:
    """Return a value of NumPy as one of Python, which JSON can represent."""
    return value.item() if isinstance(value, np.generic) else value


_EDITS: dict[str, Callable[[TreeEditor, Edit], State]] = {
    "prune": TreeEditor._pruned,
    "grow": TreeEditor._grown,
    "split": TreeEditor._split,
}
