"""A fitted tree as text and in other formats, one module a format.

Formats that people read take their words from one description (`gputree.export.describe`), so
that they agree on names, operators and numbers. Formats that programs read are made from one
model (`gputree.export.model`), which says where each split sends each value.
"""

from gputree.export.code import export_c, export_python
from gputree.export.explain import Explanation, explain
from gputree.export.html import TreePage, export_html
from gputree.export.lightgbm import export_lightgbm
from gputree.export.nested import to_dict
from gputree.export.onnx import to_onnx
from gputree.export.plot import plot_cp_table, plot_tree
from gputree.export.rules import Rule, path_rules
from gputree.export.sklearn import to_sklearn
from gputree.export.sql import export_sql
from gputree.export.text import export_text
from gputree.export.treelite import to_treelite

__all__ = [
    "Explanation",
    "Rule",
    "TreePage",
    "explain",
    "export_c",
    "export_html",
    "export_lightgbm",
    "export_python",
    "export_sql",
    "export_text",
    "path_rules",
    "plot_cp_table",
    "plot_tree",
    "to_dict",
    "to_onnx",
    "to_sklearn",
    "to_treelite",
]
