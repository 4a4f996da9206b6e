"""Estimators with scikit-learn's interface."""

from gputree.estimators.boosting import BoostedC45Classifier
from gputree.estimators.c45 import C45Classifier
from gputree.estimators.cart import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.estimators.coded_table import CodedTable
from gputree.estimators.id3 import ID3Classifier

__all__ = [
    "BoostedC45Classifier",
    "C45Classifier",
    "CodedTable",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ID3Classifier",
]
