"""Predictions of the minimum expected cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gputree.base.dtypes import Floats

Costs = Floats


def class_costs(costs: Costs) -> Floats:
    """Sum of the costs of the errors of each class, of shape (K,)."""
    return costs.sum(axis=1)


def weighs_errors(costs: Costs | None) -> bool:
    """Return whether another class than the majority class may have the minimum cost."""
    return costs is not None and len(costs) > 2


def relative_costs(costs: Costs) -> Costs:
    """Costs of the errors of each class as fractions of those by which its rows are weighted."""
    of_class = class_costs(costs)[:, None]
    return costs / np.where(of_class > 0.0, of_class, 1.0)


def least_cost(shares: Floats, costs: Costs) -> NDArray[np.intp]:
    """The class of the minimum expected cost; of equals, the first.

    `shares`, of shape (n, K), are those of classes among rows weighted by the costs of the errors
    of their classes; `costs` of shape (K, K).
    """
    each = relative_costs(costs)
    expected = np.zeros_like(shares)
    for true in range(len(costs)):  # a product of matrices may add up in another order
        expected += shares[:, true, None] * each[true]
    return expected.argmin(axis=1)
