"""Decision trees (ID3, C4.5, CART) grown level by level on the CPU or an NVIDIA GPU."""

__version__ = "0.1.0"

from gputree.estimators import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.estimators.model_file import load_model, save_model
from gputree.export import export_text
from gputree.scores import (
    entropy,
    gain_ratio,
    gini,
    gini_gain,
    information_gain,
    variance_reduction,
)

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "entropy",
    "export_text",
    "gain_ratio",
    "gini",
    "gini_gain",
    "information_gain",
    "load_model",
    "save_model",
    "variance_reduction",
]
