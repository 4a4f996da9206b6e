"""Values of headers as JSON; types that it lacks are objects with one key: README.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from gputree.errors import InputError, InputTypeError, warn

if TYPE_CHECKING:
    from gputree.pruning import Pruner

ARRAY_KINDS = "biufUO"  # numbers, booleans, strings; objects hold strings

# Bytes of all text arrays in the header, whose dtypes may need much memory for little text;
# other values take no more than a few bytes for each of their characters.
_MOST_TEXT_BYTES = 1 << 28


def encode(value: Any, name: str) -> Any:
    """`value` as JSON holds it; `name` is for messages."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, PurePath):  # of the machine that wrote it
        return str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [encode(item, name) for item in value]
    if isinstance(value, tuple):
        return {"tuple": encode(list(value), name)}
    if isinstance(value, (set, frozenset)):  # in an order that is the same each time
        return {"set": encode(sorted(value, key=str), name)}
    if isinstance(value, dict):
        return {"dict": [encode(list(item), name) for item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        return {"array": encode(value.tolist(), name), "dtype": value.dtype.str}
    from gputree.pruning import PRUNERS

    short = next((short for short, kind in PRUNERS.items() if kind is type(value)), None)
    if short is not None:
        return {"pruner": encode([short, value.get_params(deep=False)], name)}
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        warn(f"The state of {name} is not stored; None is.")
        return None
    kind = f"{value.dtype} array" if isinstance(value, np.ndarray) else type(value).__name__
    raise InputTypeError(f"A file cannot represent {name} of type {kind}.")


def decode(value: Any) -> Any:
    """The value that `encode` was given."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"array", "dtype"}:
        return _decode_array(value["array"], value["dtype"])
    if len(value) == 1 and (tag := next(iter(value))) in _DECODERS:
        return _DECODERS[tag](decode(value[tag]))
    raise InputError(f"a value has the unknown keys {sorted(value)}.")


def _decode_array(values: Any, dtype: str) -> np.ndarray:
    kind = _array_kind(dtype)
    if not isinstance(values, list):
        raise InputError(f"an array must be a list, got {type(values).__name__}.")
    with np.errstate(over="raise"):  # a FloatingPointError, in `rebuild` an error of the file
        array = np.array(decode(values), dtype=kind)
    if array.dtype.kind == "O" and not all(isinstance(v, (str, int, float)) for v in array.flat):
        raise InputError("an array holds something that is neither text nor a number.")
    return array


def _array_kind(dtype: Any) -> np.dtype:
    """The dtype of an array, if it is one that arrays of a file may have."""
    kind = np.dtype(dtype) if isinstance(dtype, str) else None
    if kind is None or kind.kind not in ARRAY_KINDS or kind.itemsize == 0:  # text of any length
        raise InputError(f"an array has the unknown dtype {dtype!r}.")
    return kind


def check_text_bytes(header: Any) -> None:
    """Raise ValueError where the arrays of text of a header would take too much memory."""
    if (taken := _text_bytes(header)) > _MOST_TEXT_BYTES:
        raise InputError(
            f"its arrays of text take {taken:,} bytes, but {_MOST_TEXT_BYTES:,} are allowed."
        )


def _text_bytes(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_text_bytes, value))
    if not isinstance(value, dict):
        return 0
    if set(value) == {"array", "dtype"}:
        kind = _array_kind(value["dtype"])
        if kind.kind == "U":  # its values may be lists
            return kind.itemsize * np.array(value["array"], dtype=object).size
    return sum(map(_text_bytes, value.values()))


def _decode_pruner(description: list[Any]) -> Pruner:
    from gputree.pruning import PRUNERS

    short, params = description
    if short not in PRUNERS:
        raise InputError(f"pruning must be one of {sorted(PRUNERS)}, got {short!r}.")
    pruner = PRUNERS[short](**params)
    pruner._validate_params()
    return pruner


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "pruner": _decode_pruner,
}
