"""The table of a cost-complexity sequence, as rpart's printcp prints it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.base.optional import require
from gputree.base.texts import html_table, tabled

CP_FIELDS: dict[str, type[np.generic]] = {
    "alpha": np.float64,
    "cp": np.float64,
    "n_leaves": np.int64,
    "nsplit": np.int64,
    "relative_error": np.float64,
    "xerror": np.float64,
    "xstd": np.float64,
}
CP_TABLE = np.dtype(list(CP_FIELDS.items()))

# The columns that are printed, as rpart heads them.
_HEADS = {
    "cp": "CP",
    "nsplit": "nsplit",
    "relative_error": "rel error",
    "xerror": "xerror",
    "xstd": "xstd",
}

_DIGITS = 5  # significant digits of the value that needs the most, as in rpart
_MOST_DECIMALS = 10  # beyond, numbers are printed with exponents


class CPTable(np.ndarray):
    """A structured array of the trees of a cost-complexity sequence, from the root alone up.

    Prints as the table of rpart's ``printcp``.

    Attributes
    ----------
    risk : {"impurity", "error"}
        Measure of ``alpha``, ``cp`` and ``relative_error``; see `gputree.pruning.CostComplexity`.
    """

    risk: str

    def __new__(cls, rows: NDArray[Any], risk: str) -> CPTable:
        """`rows` as a table, without copying."""
        table = np.asarray(rows).view(cls)
        table.risk = risk
        return table

    def __array_finalize__(self, source: Any) -> None:
        self.risk = getattr(source, "risk", "impurity")

    def __reduce__(self) -> Any:  # ndarray's leaves attributes out
        return CPTable, (np.asarray(self), self.risk)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        is_column = isinstance(found, CPTable) and found.dtype.names is None
        return np.asarray(found) if is_column else found

    def __str__(self) -> str:
        return tabled(self._cells()) if self._is_table else str(np.asarray(self))

    def __repr__(self) -> str:
        return str(self) if self._is_table else repr(np.asarray(self))

    def _repr_html_(self) -> str | None:
        return html_table(self._cells()) if self._is_table else None

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            All columns: ``alpha``, ``cp``, ``n_leaves``, ``nsplit``, ``relative_error``,
            ``xerror`` and ``xstd``; the last two are NaN without cross-validation.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        return require("pandas", "CPTable.to_frame").DataFrame(np.asarray(self))

    @property
    def _is_table(self) -> bool:
        return self.ndim == 1 and self.dtype.names is not None

    def _cells(self) -> list[list[str]]:
        """The columns that are printed, below their heads; those without values are left out."""
        names = [name for name in _HEADS if name in (self.dtype.names or ())]
        names = [name for name in names if not self.size or not np.isnan(self[name]).all()]
        columns = [_column(self[name]) for name in names]
        rows = zip(*columns, strict=True)
        head = ["", *(_HEADS[name] for name in names)]
        return [head, *([str(place), *row] for place, row in enumerate(rows, 1))]


def _column(values: NDArray[Any]) -> list[str]:
    """Numbers with as many decimals as the one that needs most at `_DIGITS` digits."""
    if values.dtype.kind == "i":
        return [str(value) for value in values.tolist()]
    decimals = max((_decimals(value) for value in values.tolist()), default=0)
    if decimals > _MOST_DECIMALS:
        return [f"{value:.{_DIGITS - 1}g}" for value in values.tolist()]
    return [f"{value:.{decimals}f}" for value in values.tolist()]


def _decimals(value: float) -> int:
    if not np.isfinite(value):
        return 0
    mantissa, exponent = f"{value:.{_DIGITS - 1}e}".split("e")
    return max(len(mantissa.rstrip("0").partition(".")[2]) - int(exponent), 0)
