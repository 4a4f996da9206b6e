"""A fitted tree as text and in other formats, one module a format.

All formats take their words from one description of the tree
(`gputree.export.describe`), so that they agree on names, operators and numbers.
"""

from gputree.export.plot import plot_cp_table, plot_tree
from gputree.export.text import export_text

__all__ = ["export_text", "plot_cp_table", "plot_tree"]
