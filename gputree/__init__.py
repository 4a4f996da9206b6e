"""Decision trees grown level by level: exact, and the same bit for bit on every device.

Names are imported on first use: ``import gputree`` takes no time.
"""

from typing import TYPE_CHECKING

from gputree._lazy import attach

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

if not TYPE_CHECKING:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(
        __name__,
        {
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
        },
        packages=(
            "check",
            "columns",
            "criteria",
            "datasets",
            "discretization",
            "errors",
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
        ),
    )
