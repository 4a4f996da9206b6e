"""Exact Shapley values: the contribution of each column to a prediction."""

from typing import Any, NamedTuple

from gputree.base.dtypes import Floats
from gputree.export.model import averaged, forbid_soft_thresholds, require_estimator, tree_of
from gputree.prediction.shapley import expected_answer, shapley_values


class ShapValues(NamedTuple):
    """Shapley values of some rows.

    Attributes
    ----------
    values : float64 array of shape (n_rows, n_features), or (n_rows, n_features, n_classes)
        Contribution of each column to the mean target, or to the probability of each class. Of
        several targets the last axis has the targets, or the classes of one after the other.
    base_values : float64, or array of shape (n_classes,)
        The prediction where no column is known; of several targets an array as long as that axis.
    """

    values: Floats
    base_values: Any


def shap_values(estimator: Any, X: Any) -> ShapValues:
    """Exact Shapley values of a fitted tree's predictions, for every kind of tree.

    ``values.sum(axis=1) + base_values`` is `predict` of a regressor and `predict_proba` of a
    classifier, but for rounding. For an unknown column a row goes to all children, in proportion to
    the training weights: the "tree_path_dependent" game of the shap package, here also for multiway
    splits, categories, rows that stop at a node, and missing values that are sent down all branches
    with fractional weights (where they have a value of exactly 0).

    Parameters
    ----------
    estimator : fitted estimator
        One of a tree, or a forest, whose values are the mean over its trees.
    X : array-like of shape (n_rows, n_features)
        As in `predict`.

    Returns
    -------
    ShapValues

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator is not fitted.
    TypeError
        It is none of gputree's.
    ValueError
        X is not a table as in `fit`.
    MemoryError
        The values do not fit the memory.

    Notes
    -----
    The time is proportional to rows x nodes x half the number of columns on the longest path.
    `export_lightgbm` gives the same numbers for binary trees whose weights are integers, by
    ``Booster.predict(X, pred_contrib=True)``; `to_sklearn` those of trees without categories, by
    ``shap.TreeExplainer``.

    References
    ----------
    S. Lundberg et al. From Local Explanations to Global Understanding with Explainable AI for
    Trees. Nature Machine Intelligence 2, 2020.
    G. Owen. Multilinear Extensions of Games. Management Science 18, 1972.

    Examples
    --------
    >>> from gputree import C45Classifier
    >>> from gputree.datasets import load_golf
    >>> from gputree.export import shap_values
    >>> golf = load_golf()
    >>> tree = C45Classifier().fit(golf.data, golf.target)
    >>> found = shap_values(tree, [["sunny", "mild", "high", "weak"]])
    >>> found.values[0, :, 0].round(3)  # what speaks for "no": outlook, ..., humidity, wind
    array([ 0.443,  0.   ,  0.271, -0.071])
    """
    if members := averaged(estimator):
        each = [shap_values(member, X) for member in members]
        means = [sum(parts) / len(members) for parts in zip(*each, strict=True)]
        return ShapValues(*means)
    tree = tree_of(estimator)
    forbid_soft_thresholds(tree)
    require_estimator(estimator, "shap_values")
    values = estimator._descend(shapley_values, X)
    base = expected_answer(tree)
    if tree.task == "regression" and tree.n_outputs == 1:
        return ShapValues(values[:, :, 0], base[0])
    return ShapValues(values, base)
