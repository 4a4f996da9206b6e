"""Feature scores: impurities, score functions, and columns ranked by them."""

from gputree.scores.functions import (
    gain_ratio,
    gini_gain,
    information_gain,
    symmetric_uncertainty,
    variance_reduction,
)
from gputree.scores.measures import entropy, gini
from gputree.scores.ranking import FeatureRanking, rank_features

__all__ = [
    "FeatureRanking",
    "entropy",
    "gain_ratio",
    "gini",
    "gini_gain",
    "information_gain",
    "rank_features",
    "symmetric_uncertainty",
    "variance_reduction",
]
