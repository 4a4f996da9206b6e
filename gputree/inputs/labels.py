"""Targets of scores and impurities: labels, their counts, weights, costs of errors.

Labels of rows are kept as codes, a byte a row for most tables. Of a table that is read in batches,
targets that are labels are kept as codes, other numbers as they are.
"""

import re
from collections.abc import Iterable
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gputree.base.dtypes import Floats, Int64s
from gputree.columns.categories import EXACT_IN_FLOAT64, NUMBERS, as_numbers, is_missing
from gputree.columns.cells import Coded, read_array
from gputree.errors import InputError, InputTypeError, warn

Costs = Floats


def class_costs(costs: Costs) -> Floats:
    """Sum of the costs of the errors of each class, of shape (K,)."""
    return costs.sum(axis=1)


def weighs_errors(costs: Costs | None) -> bool:
    """Return whether another class than the majority class may have the minimum cost."""
    return costs is not None and len(costs) > 2


def relative_costs(costs: Costs) -> Costs:
    """Costs of the errors of each class as fractions of those by which its rows are weighted."""
    of_class = class_costs(costs)[:, None]
    return costs / np.where(of_class > 0.0, of_class, 1.0)


def least_cost(shares: Floats, costs: Costs) -> NDArray[np.intp]:
    """The class of the minimum expected cost; of equals, the first.

    `shares`, of shape (n, K), are those of classes among rows weighted by the costs of the errors
    of their classes; `costs` of shape (K, K).
    """
    each = relative_costs(costs)
    expected = np.zeros_like(shares)
    for true in range(len(costs)):  # a product of matrices may add up in another order
        expected += shares[:, true, None] * each[true]
    return expected.argmin(axis=1)


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


Codes = Int64s


def exact_labels(y: Any) -> Any:
    """Integers and booleans as an array that distinguishes them; other labels as they are.

    Types with space for missing labels become float64 in scikit-learn, lists of large integers with
    others do in NumPy. ValueError if one of such a type is missing.
    """
    if isinstance(y, list | tuple):
        array = np.asarray(y)
        if array.dtype.kind == "U":
            forbid_mixed(y)
        large = array.dtype.kind == "f" and (np.abs(array) >= EXACT_IN_FLOAT64).any()
        return _exact_objects(np.array(y, object)) if large or array.dtype.kind == "O" else y
    kind = getattr(y, "dtype", getattr(y, "type", None))
    if isinstance(kind, np.dtype):
        return _exact_objects(y) if kind.kind == "O" else y
    name = str(kind).lower().partition("[")[0]
    if kind is None or re.fullmatch(r"u?int\d*|bool(ean)?", name) is None:
        return y
    column = y.to_arrow() if hasattr(y, "to_arrow") else y
    if not type(column).__module__.startswith("pyarrow"):
        import pyarrow as pa

        column = pa.array(getattr(y, "array", y), from_pandas=True)
    if column.null_count:
        raise missing_labels(column.null_count)
    return np.asarray(column)


def missing_labels(count: int) -> InputError:
    """An error that states the number of missing labels."""
    return InputError(f"Input y contains {count:,} missing value{'' if count == 1 else 's'}.")


def forbid_missing(labels: NDArray[Any]) -> None:
    """Raise ValueError if some of the labels are missing objects."""
    if labels.dtype.kind == "O" and (count := sum(map(is_missing, labels))):
        raise missing_labels(count)


def forbid_mixed(labels: Iterable[Any]) -> None:
    """Raise ValueError if labels are text and numbers, which no order has."""
    found = {isinstance(label, str): label for label in labels}
    if len(found) == 2 and isinstance(found[False], Number | np.bool_):
        raise InputError(
            f"y mixes numbers and text, such as {found[False]!r} and {found[True]!r}: make all "
            "labels of one kind."
        )


def _exact_objects(y: Any) -> Any:
    """Python's integers, or booleans, as an array of them; other objects as they are."""
    array = np.asarray(y)
    if array.ndim != 1 or array.size == 0:
        return y
    if all(isinstance(label, bool | np.bool_) for label in array):
        return array.astype(np.bool_)
    return as_numbers(list(map(int, array))) if all(map(_is_whole, array)) else y


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def forbid_long(labels: NDArray[Any]) -> None:
    """Raise ValueError for integers that no type of NumPy's holds."""
    if labels.dtype.kind == "O" and labels.size and all(map(_is_whole, labels)):
        raise InputError(
            f"y holds integers of more than 64 bits, such as {labels[0]}: pass labels as text."
        )


def check_labels(y: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Codes, Floats]:
    """Code of each row's label, and its weight."""
    from gputree.base.sklearn import check_classification_targets, column_or_1d

    labels: NDArray[Any] = column_or_1d(exact_labels(y), warn=True)
    forbid_missing(labels)
    weight = check_weights(sample_weight, labels)
    forbid_long(labels)
    check_classification_targets(labels)
    return np.unique(labels, return_inverse=True)[1], weight


def labels_not_counts(name: str, y: ArrayLike) -> NDArray[Any]:
    """The labels, unless they are fractions of rows; with a warning where they look like counts."""
    from gputree.base.sklearn import column_or_1d

    labels: NDArray[Any] = column_or_1d(exact_labels(y), warn=True)
    if labels.dtype.kind not in "iuf" or labels.size < 2:
        return labels
    given = labels.tolist() if labels.size <= 6 else [...]
    advice = f"write {name}(counts={given})".replace("Ellipsis", "...")
    if labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels % 1 != 0).any():
        raise InputError(
            f"{name} takes labels, one a row; got continuous numbers. If they are the shares or "
            f"weights of labels, {advice}."
        )
    if np.unique(labels).size == labels.size and labels.max() > labels.size:
        warn(
            f"{name} takes labels, one a row, and these {labels.size:,} are all different. If they "
            f"are counts of labels, {advice}."
        )
    return labels


def check_counts(name: str, counts: ArrayLike | None, sample_weight: ArrayLike | None) -> Floats:
    """Validate the numbers of rows of each label."""
    from gputree.base.sklearn import check_array

    if sample_weight is not None:
        raise InputTypeError(f"{name} takes sample_weight with labels only, not with counts.")
    weight: Floats = check_array(counts, dtype=np.float64, ensure_2d=False, input_name="counts")
    if weight.ndim != 1 or (weight < 0.0).any() or not weight.any():
        raise InputError(
            f"counts of {name} must be one non-negative number a label, not all zero; got "
            f"{counts!r}."
        )
    return weight


def check_targets(y: ArrayLike) -> Floats:
    """Targets as float64."""
    from gputree.base.sklearn import check_array, column_or_1d

    return check_array(
        column_or_1d(y, warn=True), dtype=np.float64, ensure_2d=False, input_name="y"
    )


def check_weights(sample_weight: ArrayLike | None, y: NDArray[Any]) -> Floats:
    """Return a weight for each row of `y`, which has at least one row."""
    from gputree.base.sklearn import check_sample_weight

    if y.size == 0:
        raise InputError("Found array with 0 sample(s) while a minimum of 1 is required.")
    weight = check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise InputError("Sample weights must not all be zero.")
    return weight


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

        ValueError if they are numbers, and those of earlier batches were not, or the reverse.
        """
        are_numbers = y.dtype.kind in NUMBERS
        if self._parts and are_numbers != self._are_numbers:
            kinds = ("labels that are no numbers", "numbers")
            raise InputError(
                f"its target holds {kinds[are_numbers]}, and those of earlier batches "
                f"{kinds[self._are_numbers]}."
            )
        self._are_numbers = are_numbers
        if self._parts and y.shape[1:] != self._parts[0].shape[1:]:
            raise InputError(
                f"its target has the shape {y.shape}, and those of earlier batches have others."
            )
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
        whole = np.empty((sum(map(len, self._parts)), *self._parts[0].shape[1:]), dtype)
        done = len(whole)
        while self._parts:
            part = self._parts.pop()
            done -= len(part)
            whole[done : done + len(part)] = part if rank is None else rank[part]
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
        if y.ndim > 1:
            return None
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
