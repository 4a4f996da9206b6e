"""Decision trees grown level by level: exact, and the same bit for bit on every device.

Names are imported on first use: ``import gputree`` takes no time.
"""

import sys
from typing import TYPE_CHECKING

from gputree.base.lazy import FormerNames, attach, provide

__version__ = "0.1.0"

sys.meta_path.append(
    FormerNames(
        __name__,
        {
            "branches": "tree.branches",
            "compilation.arrays": "base.dtypes",
            "distributed.forests": "distributed.estimators",
            "estimators.id3": "estimators.multiway",
            "inputs.coded_labels": "inputs.labels",
            "pruning.complexity_table": "pruning.cost_complexity",
            "pruning.penalized_loss": "pruning.bottom_up",
            "pruning.reduced_error": "pruning.bottom_up",
            "pruning.validation_pre_pruning": "pruning.bottom_up",
            "validation": "inputs.validation",
        },
    )
)

if TYPE_CHECKING:
    from gputree.base.optional import show_versions as show_versions
    from gputree.check import check_device as check_device
    from gputree.discretization import MDLPDiscretizer as MDLPDiscretizer
    from gputree.ensemble import ExtraTreesClassifier as ExtraTreesClassifier
    from gputree.ensemble import ExtraTreesRegressor as ExtraTreesRegressor
    from gputree.ensemble import RandomForestClassifier as RandomForestClassifier
    from gputree.ensemble import RandomForestRegressor as RandomForestRegressor
    from gputree.estimators import BoostedC45Classifier as BoostedC45Classifier
    from gputree.estimators import C45Classifier as C45Classifier
    from gputree.estimators import CodedTable as CodedTable
    from gputree.estimators import DecisionTreeClassifier as DecisionTreeClassifier
    from gputree.estimators import DecisionTreeRegressor as DecisionTreeRegressor
    from gputree.estimators import ID3Classifier as ID3Classifier
    from gputree.export import export_text as export_text
    from gputree.persistence import export_json as export_json
    from gputree.persistence import json_schema as json_schema
    from gputree.persistence import load_model as load_model
    from gputree.persistence import read_json as read_json
    from gputree.persistence import save_model as save_model
    from gputree.rules import BoostedC45Rules as BoostedC45Rules
    from gputree.rules import C45Rules as C45Rules
    from gputree.rules import to_rules as to_rules
    from gputree.scores import entropy as entropy
    from gputree.scores import gain_ratio as gain_ratio
    from gputree.scores import gini as gini
    from gputree.scores import gini_gain as gini_gain
    from gputree.scores import information_gain as information_gain
    from gputree.scores import rank_features as rank_features
    from gputree.scores import symmetric_uncertainty as symmetric_uncertainty
    from gputree.scores import variance_reduction as variance_reduction
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(
        __name__,
        packages=(
            "check",
            "columns",
            "criteria",
            "datasets",
            "discretization",
            "editing",
            "ensemble",
            "errors",
            "estimators",
            "export",
            "growth",
            "inputs",
            "persistence",
            "prediction",
            "pruning",
            "rules",
            "scores",
            "tree",
        ),
    )

# A device is checked by growing trees on it: `backends.devices` is below all that grows them.
provide("what_differs", "gputree.check")
