"""Trees of scikit-learn as gputree trees, for tests that compare the two."""

import numpy as np
from hand_made_trees import make_tree
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import validate_data

from gputree.base.dtypes import MISSING_STOPS, NO_CHILD, NO_FEATURE, NO_THRESHOLD
from gputree.tree import Tree


def breadth_first(sk_tree) -> np.ndarray:
    """Node indices of a scikit-learn tree in breadth-first order."""
    levels = [np.array([0])]
    while levels[-1].size:
        left = sk_tree.children_left[levels[-1]]
        right = sk_tree.children_right[levels[-1]]
        inner = left != NO_CHILD
        levels.append(np.column_stack([left[inner], right[inner]]).ravel())
    return np.concatenate(levels)


def from_sklearn(estimator) -> Tree:
    """The fitted `tree_` of a scikit-learn tree estimator as a `Tree`."""
    sk = estimator.tree_
    order = breadth_first(sk)
    rank = np.argsort(order)
    left, right = sk.children_left[order], sk.children_right[order]
    leaf = left == NO_CHILD
    weight, impurity = sk.weighted_n_node_samples[order], sk.impurity[order]
    classification = hasattr(estimator, "classes_")
    value = sk.value[order, 0, :]
    risk = weight * impurity
    decrease = risk - risk[rank[left]] - risk[rank[right]]
    return make_tree(
        np.where(leaf, 0, 2),
        task="classification" if classification else "regression",
        criterion=estimator.criterion,
        n_features=sk.n_features,
        feature=np.where(leaf, NO_FEATURE, sk.feature[order]),
        threshold=np.where(leaf, NO_THRESHOLD, sk.threshold[order]),
        missing_child=np.where(leaf, MISSING_STOPS, 1 - sk.missing_go_to_left[order].astype(int)),
        weight=weight,
        n_rows=sk.n_node_samples[order],
        statistics=value * weight[:, None] if classification else value,
        impurity=impurity,
        gain=np.where(leaf, 0.0, decrease / weight),
    )


class _Grown(BaseEstimator):
    """The minimum that a pruner needs of an estimator: a tree, and the table that it tests."""

    def __init__(self, pruning=None, min_samples_leaf=1):
        self.pruning = pruning
        self.min_samples_leaf = min_samples_leaf

    def fit(self, X, y, sample_weight=None):
        grower = self._grower(random_state=0, min_samples_leaf=self.min_samples_leaf)
        self.grown_ = grower.fit(X, y, sample_weight)
        self.tree_ = self.unpruned_tree_ = from_sklearn(self.grown_)
        if self.pruning is not None:
            self.tree_ = self.pruning.prune_tree(self.tree_)
        return self

    def apply(self, X):
        """Leaves of the unpruned tree, by scikit-learn."""
        return np.argsort(breadth_first(self.grown_.tree_))[self.grown_.apply(X)]

    def _for_folds(self, X):
        return X, 1

    def _combine_weights(self, weight, target):
        return weight

    def _loss_weights(self, weight, target):
        return weight

    def _values(self, X):
        """The table in scikit-learn's precision, as the tree was grown."""
        assert self.tree_ is self.unpruned_tree_  # pruners route rows through no other
        return validate_data(self.grown_, X, reset=False, dtype=np.float32)


class Classifier(ClassifierMixin, _Grown):
    _grower = DecisionTreeClassifier

    @property
    def classes_(self):
        return self.grown_.classes_


class Regressor(RegressorMixin, _Grown):
    _grower = DecisionTreeRegressor
