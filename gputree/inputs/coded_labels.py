"""Labels of rows as codes: a byte a row for most tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_BLOCK = 1 << 18  # codes that are counted at once, for which each takes 8 bytes


class CodedLabels:
    """Labels of rows as codes of a byte where there are up to 256; an array to NumPy.

    The classes are different, and ascending.
    """

    ndim = 1

    def __init__(self, classes: NDArray[Any], codes: NDArray[np.unsignedinteger]) -> None:
        self.classes, self.codes = classes, codes
        self.dtype, self.shape, self.size = classes.dtype, codes.shape, codes.size

    def __len__(self) -> int:
        return self.size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.classes[self.codes].astype(dtype or self.dtype, copy=False)

    def __getitem__(self, rows: Any) -> Any:
        codes = self.codes[rows]
        return CodedLabels(self.classes, codes) if np.ndim(codes) else self.classes[codes]

    def present(self) -> tuple[NDArray[Any], NDArray[np.unsignedinteger]]:
        """The labels that rows have, ascending, and the code of each row among them."""
        blocks = np.array_split(self.codes, self.size // _BLOCK + 1)
        count = sum(np.bincount(block, minlength=self.classes.size) for block in blocks)
        found = np.flatnonzero(count)
        if found.size == self.classes.size:
            return self.classes, self.codes
        code = np.zeros(self.classes.size, self.codes.dtype)
        code[found] = np.arange(found.size)
        return self.classes[found], code[self.codes]


Labels = NDArray[Any] | CodedLabels  # what a target is held as


def distinct(y: Labels) -> NDArray[Any]:
    """Different labels, ascending."""
    return y.present()[0] if isinstance(y, CodedLabels) else np.unique(y)
