"""Targets of a table that is read in batches: labels as codes, other numbers as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputree.columns.categories import NUMBERS
from gputree.columns.cells import Coded, read_array
from gputree.errors import InputError
from gputree.inputs.labels import CodedLabels, Labels

# Different integers that are held as codes, of a byte each.
MOST_INTEGERS = 256


class BatchTargets:
    """The targets of batches, in their order.

    Text is held as codes, a byte or a few for each row, whatever its length; integers are while
    there are few different ones.
    """

    def __init__(self) -> None:
        self._parts: list[NDArray[Any]] = []
        self._code: dict[Any, int] = {}  # of each label that has one
        self._dtypes: set[np.dtype] = set()
        self._are_numbers = False
        self._are_coded = True

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
        codes = self._coded(y) if self._are_coded else None
        if codes is None and self._are_coded:
            labels = self._labels()
            self._parts = [labels[part] for part in self._parts]
            self._are_coded = False
        self._parts.append(y if codes is None else codes)

    def are(self, place: int, y: NDArray[Any]) -> bool:
        """Return whether the targets of the batch at a place equal `y`."""
        codes = self._coded(y) if self._are_coded else y
        return codes is not None and np.array_equal(codes, self._parts[place])

    def join(self) -> Labels:
        """The targets of all batches, which are let go one by one."""
        if not self._are_coded:
            return self._joined(self._dtype())
        labels = self._labels()
        order = np.argsort(labels, kind="stable")
        rank = np.empty(labels.size, np.min_scalar_type(max(labels.size - 1, 0)))
        rank[order] = np.arange(labels.size)
        return CodedLabels(labels[order], self._joined(rank.dtype, rank))

    def _joined(self, dtype: np.dtype, rank: NDArray[Any] | None = None) -> NDArray[Any]:
        """Concatenate all parts, and free them; codes are replaced by the ranks of their labels."""
        whole = np.empty(sum(map(len, self._parts)), dtype)
        done = whole.size
        while self._parts:
            part = self._parts.pop()
            done -= part.size
            whole[done : done + part.size] = part if rank is None else rank[part]
        return whole

    def _labels(self) -> NDArray[Any]:
        """Labels, in the order of their codes."""
        return np.array(list(self._code), self._dtype())

    def _dtype(self) -> np.dtype:
        dtype = np.result_type(*self._dtypes)
        if dtype.kind == "f" and all(kind.kind in "iu" for kind in self._dtypes):  # which rounds
            numbers = self._code if self._are_coded else (y.min(initial=0) for y in self._parts)
            return np.dtype(np.int64 if min(numbers, default=0) < 0 else np.uint64)
        return dtype

    def _coded(self, y: NDArray[Any]) -> NDArray[Any] | None:
        """Codes where all labels are text or few integers; else None."""
        values: NDArray[Any]
        code: NDArray[Any]
        if y.dtype.kind in "iu":
            values, code = np.unique(y, return_inverse=True)
            if values.size + len(self._code) > 2 * MOST_INTEGERS:  # do not list them all
                return None
        elif y.dtype.kind in "OU" and isinstance(cells := read_array(y), Coded):
            values, code = cells.values, cells.code
            if (code < 0).any() or not all(isinstance(word, str) for word in values.tolist()):
                return None
        else:
            return None
        codes = [self._code.setdefault(label, len(self._code)) for label in values.tolist()]
        if self._are_numbers and len(self._code) > MOST_INTEGERS:
            return None
        return np.array(codes, np.min_scalar_type(max(len(self._code) - 1, 0)))[code]
