"""Targets of a table that is read in batches: numbers as they are, text as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.columns.categories import NUMBERS
from gputree.columns.cells import Coded, read_array
from gputree.errors import InputError


class Targets:
    """The targets of batches, in their order.

    Labels that are text are held as codes, a byte or a few for each row, whatever their length.
    """

    def __init__(self) -> None:
        self._parts: list[NDArray[Any]] = []
        self._code: dict[str, int] = {}  # of each label that is text
        self._dtypes: set[np.dtype] = set()
        self._are_numbers = False

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, y: NDArray[Any]) -> None:
        """Take the targets of the next batch.

        Raises
        ------
        ValueError
            They are numbers, and those of earlier batches were not, or the other way round.
        """
        are_numbers = y.dtype.kind in NUMBERS
        if self._parts and are_numbers != self._are_numbers:
            kinds = ("labels that are no numbers", "numbers")
            raise InputError(
                f"its target holds {kinds[are_numbers]}, and those of earlier batches "
                f"{kinds[self._are_numbers]}."
            )
        self._are_numbers = are_numbers
        self._dtypes.add(y.dtype)
        self._parts.append(self._coded(y))

    def are(self, place: int, y: NDArray[Any]) -> bool:
        """Whether the targets of the batch at a place are these."""
        return np.array_equal(self._coded(y), self._parts[place])

    def join(self) -> NDArray[Any]:
        """The targets of all batches, which are let go one by one."""
        whole = np.empty(sum(map(len, self._parts)), self._dtype())
        words = np.array([*self._code, None], object)
        done = whole.size
        while self._parts:
            part = self._parts.pop()
            done -= part.size
            held = part if self._are_numbers or part.dtype.kind == "O" else words[part]
            whole[done : done + part.size] = held
        return whole

    def _dtype(self) -> np.dtype:
        dtype = np.result_type(*self._dtypes)
        if dtype.kind == "f" and all(own.kind in "iu" for own in self._dtypes):  # which rounds
            return np.dtype(np.int64 if any(y.min() < 0 for y in self._parts) else np.uint64)
        return dtype

    def _coded(self, y: NDArray[Any]) -> NDArray[Any]:
        """Codes where all labels are text; else the labels themselves."""
        if y.dtype.kind not in "OU" or y.size == 0:
            return y
        cells = read_array(y)
        if not isinstance(cells, Coded) or (cells.code < 0).any():
            return y
        words = cells.values.tolist()
        if not all(isinstance(word, str) for word in words):
            return y
        codes = [self._code.setdefault(word, len(self._code)) for word in words]
        return np.array(codes, np.min_scalar_type(len(self._code)))[cells.code]
