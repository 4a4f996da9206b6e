"""Prediction on the host: every row descends from the root to the nodes that predict it."""

from gputree.prediction.answers import (
    apply,
    class_distributions,
    decision_path,
    stopping_shares,
    take,
)

__all__ = ["apply", "class_distributions", "decision_path", "stopping_shares", "take"]
