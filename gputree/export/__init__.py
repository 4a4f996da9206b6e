"""A fitted tree as text and in other formats, one module a format.

All formats take their words from one description of the tree
(`gputree.export.describe`), so that they agree on names, operators and numbers.
"""

from gputree.export.code import export_c, export_python
from gputree.export.nested import to_dict
from gputree.export.plot import plot_cp_table, plot_tree
from gputree.export.sql import export_sql
from gputree.export.text import export_text

__all__ = [
    "export_c",
    "export_python",
    "export_sql",
    "export_text",
    "plot_cp_table",
    "plot_tree",
    "to_dict",
]
