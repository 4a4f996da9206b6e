"""Decision trees grown level by level: exact, and the same to the bit on every device.

Names are imported when they are asked for: ``import gputree`` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gputree.check import check_device
    from gputree.discretization import MDLPDiscretizer
    from gputree.estimators import (
        BoostedC45Classifier,
        C45Classifier,
        CodedTable,
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ID3Classifier,
    )
    from gputree.estimators.json_file import export_json, json_schema, read_json
    from gputree.estimators.model_file import load_model, save_model
    from gputree.export import export_text
    from gputree.rules import BoostedC45Rules, C45Rules, to_rules
    from gputree.scores import (
        entropy,
        gain_ratio,
        gini,
        gini_gain,
        information_gain,
        rank_features,
        symmetric_uncertainty,
        variance_reduction,
    )

__all__ = [
    "BoostedC45Classifier",
    "BoostedC45Rules",
    "C45Classifier",
    "C45Rules",
    "CodedTable",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ID3Classifier",
    "MDLPDiscretizer",
    "check_device",
    "entropy",
    "export_json",
    "export_text",
    "gain_ratio",
    "gini",
    "gini_gain",
    "information_gain",
    "json_schema",
    "load_model",
    "rank_features",
    "read_json",
    "save_model",
    "symmetric_uncertainty",
    "to_rules",
    "variance_reduction",
]

# Public names by the module that has them.
_MODULES = {
    "check": ("check_device",),
    "discretization": ("MDLPDiscretizer",),
    "estimators": (
        "BoostedC45Classifier",
        "C45Classifier",
        "CodedTable",
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "ID3Classifier",
    ),
    "estimators.json_file": ("export_json", "json_schema", "read_json"),
    "estimators.model_file": ("load_model", "save_model"),
    "export": ("export_text",),
    "rules": ("BoostedC45Rules", "C45Rules", "to_rules"),
    "scores": (
        "entropy",
        "gain_ratio",
        "gini",
        "gini_gain",
        "information_gain",
        "rank_features",
        "symmetric_uncertainty",
        "variance_reduction",
    ),
}
_PLACES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}

# Packages that need no import of their own.
_PACKAGES = (
    "check",
    "columns",
    "criteria",
    "datasets",
    "discretization",
    "estimators",
    "export",
    "growth",
    "persistence",
    "prediction",
    "pruning",
    "rules",
    "scores",
    "tree",
    "validation",
)


if not TYPE_CHECKING:  # checkers are to know of no other names

    def __getattr__(name: str) -> Any:
        if name in _PACKAGES:
            return import_module(f"{__name__}.{name}")
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(_PLACES[name]), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
