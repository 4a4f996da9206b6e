"""Estimators with scikit-learn's interface."""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.estimators.boosting import BoostedC45Classifier as BoostedC45Classifier
    from gputree.estimators.c45 import C45Classifier as C45Classifier
    from gputree.estimators.cart import DecisionTreeClassifier as DecisionTreeClassifier
    from gputree.estimators.cart import DecisionTreeRegressor as DecisionTreeRegressor
    from gputree.estimators.coded_table import CodedTable as CodedTable
    from gputree.estimators.multiway import ID3Classifier as ID3Classifier
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(__name__)
