"""Scores of many cuts as decreases of impurity."""

from __future__ import annotations

import numpy as np

from gputree.compilation import kernel
from gputree.criteria.dispatch import gain


@kernel
def decreases(criterion, scores, totals):
    """Decrease of impurity per unit of weight by cuts of m nodes with statistics `totals`."""
    out = np.empty(scores.size)
    for j in range(scores.size):
        out[j] = gain(criterion, scores[j], totals[j])
    return out
