"""Forests of trees."""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.ensemble.forest import ExtraTreesClassifier as ExtraTreesClassifier
    from gputree.ensemble.forest import ExtraTreesRegressor as ExtraTreesRegressor
    from gputree.ensemble.forest import RandomForestClassifier as RandomForestClassifier
    from gputree.ensemble.forest import RandomForestRegressor as RandomForestRegressor
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(__name__)
