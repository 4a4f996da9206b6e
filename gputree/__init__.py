"""Decision trees (ID3, C4.5, CART) grown level by level on the CPU or an NVIDIA GPU."""

__version__ = "0.1.0"

from gputree.estimators import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.estimators.model_file import load_model, save_model
from gputree.export import export_text

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "export_text",
    "load_model",
    "save_model",
]
