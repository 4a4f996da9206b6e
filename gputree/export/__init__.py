"""A fitted tree as text and in other formats, one module a format.

Formats that people read take their words from one description (`gputree.export.describe`), so
that they agree on names, operators and numbers. Formats that programs read are made from one
model (`gputree.export.model`), which says where each split sends each value.
"""

from typing import TYPE_CHECKING

from gputree._lazy import attach

if TYPE_CHECKING:
    from gputree.export.code import export_c, export_python
    from gputree.export.explanation import Explanation, explain
    from gputree.export.graphviz import export_graphviz
    from gputree.export.html import TreePage, export_html
    from gputree.export.lightgbm import export_lightgbm
    from gputree.export.nested import to_dict
    from gputree.export.onnx import to_onnx
    from gputree.export.plot import plot_tree
    from gputree.export.plot_curves import (
        plot_cp_table,
        plot_feature_ranking,
        plot_importance,
        plot_pruning_path,
    )
    from gputree.export.plot_plane import plot_partition
    from gputree.export.rules import Rule, path_rules
    from gputree.export.shapley import ShapValues, shap_values
    from gputree.export.sklearn import to_sklearn
    from gputree.export.sql import export_sql
    from gputree.export.text import export_text
    from gputree.export.treelite import to_treelite

__all__ = [
    "Explanation",
    "Rule",
    "ShapValues",
    "TreePage",
    "explain",
    "export_c",
    "export_graphviz",
    "export_html",
    "export_lightgbm",
    "export_python",
    "export_sql",
    "export_text",
    "path_rules",
    "plot_cp_table",
    "plot_feature_ranking",
    "plot_importance",
    "plot_partition",
    "plot_pruning_path",
    "plot_tree",
    "shap_values",
    "to_dict",
    "to_onnx",
    "to_sklearn",
    "to_treelite",
]

if not TYPE_CHECKING:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(
        __name__,
        {
            "code": ("export_c", "export_python"),
            "explanation": ("Explanation", "explain"),
            "graphviz": ("export_graphviz",),
            "html": ("TreePage", "export_html"),
            "lightgbm": ("export_lightgbm",),
            "nested": ("to_dict",),
            "onnx": ("to_onnx",),
            "plot": ("plot_tree",),
            "plot_curves": (
                "plot_cp_table",
                "plot_feature_ranking",
                "plot_importance",
                "plot_pruning_path",
            ),
            "plot_plane": ("plot_partition",),
            "rules": ("Rule", "path_rules"),
            "shapley": ("ShapValues", "shap_values"),
            "sklearn": ("to_sklearn",),
            "sql": ("export_sql",),
            "text": ("export_text",),
            "treelite": ("to_treelite",),
        },
    )
