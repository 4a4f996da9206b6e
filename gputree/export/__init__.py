"""A fitted tree as text and in other formats.

Formats that people read take their words from one description (`gputree.export.describe`), so
that they agree on names, operators and numbers. Formats that programs read are made from one
model (`gputree.export.model`), which says where each split sends each value.
"""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.export.code import export_c as export_c
    from gputree.export.code import export_python as export_python
    from gputree.export.explanation import Explanation as Explanation
    from gputree.export.explanation import explain as explain
    from gputree.export.graphviz import export_graphviz as export_graphviz
    from gputree.export.html import TreePage as TreePage
    from gputree.export.html import export_html as export_html
    from gputree.export.lightgbm import export_lightgbm as export_lightgbm
    from gputree.export.lightgbm import to_treelite as to_treelite
    from gputree.export.onnx import to_onnx as to_onnx
    from gputree.export.plot import plot_tree as plot_tree
    from gputree.export.plot_curves import plot_cp_table as plot_cp_table
    from gputree.export.plot_curves import plot_feature_ranking as plot_feature_ranking
    from gputree.export.plot_curves import plot_importance as plot_importance
    from gputree.export.plot_curves import plot_pruning_path as plot_pruning_path
    from gputree.export.plot_plane import plot_partition as plot_partition
    from gputree.export.rules import Rule as Rule
    from gputree.export.rules import path_rules as path_rules
    from gputree.export.shapley import ShapValues as ShapValues
    from gputree.export.shapley import shap_values as shap_values
    from gputree.export.sklearn import to_sklearn as to_sklearn
    from gputree.export.sql import export_sql as export_sql
    from gputree.export.text import export_text as export_text
    from gputree.export.text import to_dict as to_dict
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(__name__)
