"""Estimators with scikit-learn's interface."""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.estimators.boosting import BoostedC45Classifier
    from gputree.estimators.c45 import C45Classifier
    from gputree.estimators.cart import DecisionTreeClassifier, DecisionTreeRegressor
    from gputree.estimators.coded_table import CodedTable
    from gputree.estimators.multiway import ID3Classifier

__all__ = [
    "BoostedC45Classifier",
    "C45Classifier",
    "CodedTable",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ID3Classifier",
]

if not TYPE_CHECKING:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(
        __name__,
        {
            "boosting": ("BoostedC45Classifier",),
            "c45": ("C45Classifier",),
            "cart": ("DecisionTreeClassifier", "DecisionTreeRegressor"),
            "coded_table": ("CodedTable",),
            "id3": ("ID3Classifier",),
        },
    )
