"""A fitted tree as text and in other formats, one module a format.

Formats that people read take their words from one description (`gputree.export.describe`), so
that they agree on names, operators and numbers. Formats that programs read are made from one
model (`gputree.export.model`), which says where each split sends each value.
"""

from gputree.export.code import export_c, export_python
from gputree.export.explain import Explanation, explain
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
