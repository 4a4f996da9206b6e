"""Decision trees grown level by level: exact, and the same to the bit on every device."""

__version__ = "0.1.0"

from gputree.check import check_device
from gputree.estimators import (
    C45Classifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ID3Classifier,
)
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
    "C45Classifier",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ID3Classifier",
    "check_device",
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
