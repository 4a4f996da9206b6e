"""Cases for trees of tables in parts, wherever the parts are."""

from typing import Any

import numpy as np
from mixed_tables import MixedTable, random_mixed_table

from gputree import DecisionTreeClassifier, DecisionTreeRegressor

LIMITS = [
    {},
    {"min_samples_leaf": 9},
    {"min_weight_fraction_leaf": 0.08, "max_depth": 6},
    {"max_leaf_nodes": 6},
    {"max_features": 1, "random_state": 3},
    {"max_features": 2, "random_state": 4, "min_samples_leaf": 12},
    {"splitter": "binned"},
    {"ties": "random", "random_state": 5},
]

# Few of the many kinds of kernels that there are: each takes seconds to compile.
KINDS = [("gini", place % 2 == 0, limits) for place, limits in enumerate(LIMITS)]
KINDS += [("squared_error", True, limits) for limits in LIMITS[:4]]
KINDS += [("entropy", False, {}), ("poisson", True, {})]


def mixed_case(criterion: str, weighted: bool) -> tuple[MixedTable, type, Any]:
    """A table, the estimator of the criterion, and targets for it."""
    sample = random_mixed_table(1 + weighted, 150, weighted)
    if criterion in ("squared_error", "poisson"):
        return sample, DecisionTreeRegressor, sample.y + np.sin(np.arange(sample.y.size)) ** 2
    return sample, DecisionTreeClassifier, sample.y
