"""Decreases of impurity by cuts: of many scores, or of one cut by the statistics of its sides."""

from __future__ import annotations

import numpy as np

from gputree.compilation import kernel
from gputree.criteria.dispatch import begin, gain, refused_score, score


@kernel
def decreases(criterion, scores, totals):
    """Decrease of impurity per unit of weight by cuts of m nodes with statistics `totals`."""
    out = np.empty(scores.size)
    for j in range(scores.size):
        out[j] = gain(criterion, scores[j], totals[j])
    return out


@kernel
def decrease(criterion, left, total):
    """Decrease of impurity per unit of weight by the cut of a node that sends `left` of `total`."""
    state = begin(criterion, left, total)
    value = score(criterion, state, left, total)
    if value == -np.inf:
        value = refused_score(criterion, state, left, total)
    return gain(criterion, value, total) if value > -np.inf else 0.0
