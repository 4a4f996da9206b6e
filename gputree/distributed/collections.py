"""Dask's arrays and data frames by their partitions, and lazily mapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gputree._optional import require
from gputree.errors import InputError, InputTypeError


def is_collection(X: Any) -> bool:
    """Return whether `X` is a collection of Dask."""
    return bool(require("dask.base", "gputree.distributed").is_dask_collection(X))


def is_frame(X: Any) -> bool:
    """Return whether a collection is a data frame, or a column of one."""
    return hasattr(X, "divisions")


def partitions(caller: str, X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
    """Table, target and weights, or None, of each partition: delayed.

    TypeError where one is no collection of Dask, ValueError where they have different partitions.
    """
    given = {"X": X, "y": y, "sample_weight": sample_weight}
    for name, collection in given.items():
        if collection is None and name == "y":
            raise InputError(
                f"This {caller} estimator requires y to be passed, but the target y is None."
            )
        if collection is not None and not is_collection(collection):
            plain = caller.removeprefix("Dask")
            raise InputTypeError(
                f"{caller} takes arrays and data frames of Dask, got {name} of type "
                f"{type(collection).__name__}: use {plain}, or dask.array.from_array({name})."
            )
    if X.ndim != 2:
        raise InputError(f"Expected 2D array, got {X.ndim}D array instead.")
    if not is_frame(X) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    tables = blocks(X)
    columns = [_along(name, given[name], X, len(tables)) for name in ("y", "sample_weight")]
    return list(zip(tables, *columns, strict=True))


def _along(name: str, collection: Any, X: Any, count: int) -> list[Any]:
    """Partitions of a target or of weights that match the partitions of X."""
    if collection is None:
        return [None] * count
    if not is_frame(collection) and not is_frame(X) and _known(collection) and _known(X):
        if collection.shape[0] != X.shape[0]:
            raise InputError(
                "Found input variables with inconsistent numbers of samples: "
                f"[{X.shape[0]}, {collection.shape[0]}]"
            )
        collection = collection.rechunk({0: X.chunks[0]})
    found = blocks(collection)
    if len(found) != count:
        raise InputError(
            f"X has {count} partitions and {name} has {len(found)}: repartition one of them, so "
            "that their rows lie together."
        )
    return found


def _known(array: Any) -> bool:
    """Return whether the numbers of rows of an array's blocks are known."""
    return not any(np.isnan(size) for size in array.chunks[0])


def blocks(collection: Any) -> list[Any]:
    """The partitions of a collection, delayed."""
    found = collection.to_delayed()
    return found.ravel().tolist() if isinstance(found, np.ndarray) else list(found)


def mapped(function: Callable[..., Any], model: Any, X: Any, dtype: Any, width: int | None) -> Any:
    """``function(model, block)`` of every partition, lazily: a dask array.

    The function returns an array of `dtype`, of shape (rows,), or (rows, width). The model goes to
    each worker once.
    """
    dask = require("dask", "gputree.distributed")
    da = require("dask.array", "gputree.distributed")
    model = dask.delayed(model, pure=False)
    call = dask.delayed(function, pure=False)
    rows = [np.nan] * X.npartitions if is_frame(X) else X.chunks[0]
    if not is_frame(X) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    tail = () if width is None else (width,)
    return da.concatenate(
        [
            da.from_delayed(call(model, block), (n, *tail), dtype=dtype)
            for block, n in zip(blocks(X), rows, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )
