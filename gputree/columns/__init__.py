"""Types and categories of columns, and tables as one matrix of numbers and category codes."""

from gputree.columns.specification import Columns, fit_columns, fit_encode

__all__ = ["Columns", "fit_columns", "fit_encode"]
