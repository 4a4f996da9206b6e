"""Estimators with scikit-learn's interface."""

from gputree.estimators.cart import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor"]
