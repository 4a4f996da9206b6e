"""`report` of estimators, and their trees below scikit-learn's diagrams in notebooks."""

import html
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gputree import prediction
from gputree.backends.devices import to_host
from gputree.base.dtypes import Bools, Floats, Weight
from gputree.base.sklearn import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    column_or_1d,
)
from gputree.errors import InputError
from gputree.estimators.arguments import explained
from gputree.evaluation import Lines, Report, report, usage_lines
from gputree.evaluation.predictions import answers_by_target
from gputree.inputs.labels import exact_labels
from gputree.inputs.targets import join_labels, known_columns
from gputree.inputs.validation import check_weights
from gputree.tree import Tree

# Cells of rows x columns that are marked at a time, and rows at most.
MARKED_CELLS = 1 << 24
MARKED_ROWS = 1 << 14


class Reporting:
    """Mixin of estimators that report on themselves."""

    predict: Callable[..., NDArray[Any]]

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram of an estimator for a notebook, and the model below it."""
        diagram: str = super()._html_repr()  # type: ignore[misc]
        return diagram + html_of_model(self)

    @explained
    def report(self, X: Any, y: Any, sample_weight: Any = None) -> Report | list[Report]:
        """Size of the model, and its predictions compared with y, as J48 and C5.0 print them.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Labels, or targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Sample weights.

        Returns
        -------
        Report
            Of several targets a list of them. Prints as a table: the size, errors, accuracy and
            kappa, scores of each class and the confusion matrix; for regression Weka's errors.
            `as_dict` returns the numbers.
            ``tables["column_usage"]`` is the attribute usage of C5.0: the fraction of rows whose
            value of a column is known and tested on their path, or of rows that rules cover which
            test a column. Boosted models have ``tables["each_trial"]``, as in C5.0: of each tree or
            rule set by itself the number of ``leaves`` or ``rules``, its ``errors`` and its
            ``error_rate``. Rules have ``tables["each_rule"]``, as in C4.5rules: of each rule, and
            last of the default class, how many ``conditions`` it has and its ``confidence`` (one
            minus the estimated error rate); the rows that it ``covered``, and the ``errors`` of its
            class among them; the rows that it decides (``used``), because no earlier rule covers
            them, and its errors among these (``wrong``); the rows that it classifies correctly and
            that would be wrong without it (``gained``), and the converse (``lost``).

        Raises
        ------
        ValueError
            X, y or sample_weight do not match the fitted model, or have different lengths.
        """
        check_is_fitted(self)
        k, classes = getattr(self, "n_outputs_", 1), getattr(self, "classes_", None)
        columns = []
        for j, column in enumerate(known_columns(to_host(y), k)):
            column = column_or_1d(exact_labels(column), warn=True)
            check_consistent_length(X, column)
            columns.append(_checked(classes[j] if k > 1 and classes else classes, column))
        y = columns[0] if k == 1 else join_labels(columns)
        weight = check_weights(to_host(sample_weight), y)
        means = np.broadcast_to(self._training_mean(), k).tolist()
        of_model = self._report_size(), self._report_tables(X, y, weight)
        pairs = zip(answers_by_target(self, X, y, weight), means, strict=True)
        reports = [report(*pair, *of_model) for pair in pairs]
        return reports if k > 1 else reports[0]

    def _report_size(self) -> dict[str, int]:
        raise NotImplementedError

    def _report_tables(self, X: Any, y: NDArray[Any], weight: Weight) -> dict[str, Lines]:
        """Tables of a report on rows, by title; their weights are None, or may be zero."""
        return {}

    def _training_mean(self) -> float | Floats:
        """The mean of each target of the training rows; NaN for classes."""
        return np.nan


def _checked(classes: NDArray[Any] | None, y: NDArray[Any]) -> NDArray[Any]:
    """A target, of the kind that the model knows: of some classes, or of numbers."""
    if classes is None:
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    elif (y.dtype.kind in "biuf") != (classes.dtype.kind in "biuf"):
        kind = "numbers" if y.dtype.kind in "biuf" else "others"
        raise InputError(
            f"y must hold labels of the kind in fit, such as {classes.item(0)!r}; got {kind}."
        )
    assert_all_finite(y, input_name="y")
    return y


def column_usage(tree: Tree, parts: Iterable[Any], names: Any, weight: Weight) -> Lines:
    """Fraction of rows whose value of a column is known and tested on their way, for each column.

    `parts` are blocks of the rows, of shape (m, d).
    """
    height = max(min(MARKED_ROWS, MARKED_CELLS // tree.n_features), 1)
    used, done = np.zeros(tree.n_features), 0
    for part in parts:
        for begin in range(0, len(part), height):
            rows = np.ascontiguousarray(to_host(part[begin : begin + height]))
            marks = _tested(tree, rows)
            of_rows = np.ones(len(rows)) if weight is None else weight[done : done + len(rows)]
            used += of_rows @ marks
            done += len(rows)
    return usage_lines(used / (done if weight is None else weight.sum()), names)


def _tested(tree: Tree, rows: NDArray) -> Bools:
    """Mark columns that are tested on the path of each row and not missing there; shape (m, d)."""
    path = prediction.decision_path(tree, rows)
    row = np.repeat(np.arange(len(rows)), np.diff(path.indptr))
    inner = ~tree.is_leaf[path.indices]
    marks = np.zeros(rows.shape, np.bool_)
    marks[row[inner], tree.feature[path.indices[inner]]] = True
    found: Bools = marks & ~np.isnan(rows)
    return found


# Maximum number of lines; larger trees are shown to a limited depth.
MOST_LINES = 40


def html_of_model(estimator: Any) -> str:
    """The tree or the rules as HTML, names escaped; "" before `fit` and for boosted estimators."""
    if hasattr(estimator, "rules_"):
        lines = estimator.rules_.to_text().splitlines()
        about = f"{len(lines) - 1:,} rules, and a default class"
    elif hasattr(estimator, "tree_"):
        tree = estimator.tree_
        lines = _lines_of_tree(estimator)
        about = f"{tree.n_nodes:,} nodes, {tree.n_leaves:,} leaves, depth {tree.max_depth}"
    else:
        return ""
    more = len(lines) - MOST_LINES
    shown = lines if more <= 0 else [*lines[:MOST_LINES], f"... {more:,} more"]
    return (
        f"<details open><summary>{about}</summary>"
        f'<pre style="overflow-x: auto">{html.escape(chr(10).join(shown))}</pre></details>'
    )


def _lines_of_tree(estimator: Any) -> list[str]:
    """Text of as many levels as have at most `MOST_LINES` nodes, at least one split."""
    from gputree.export import export_text

    tree = estimator.tree_
    deepest = max(sum(level.stop <= MOST_LINES for level in tree.levels()) - 1, 1)
    return export_text(estimator, max_depth=deepest).splitlines()
