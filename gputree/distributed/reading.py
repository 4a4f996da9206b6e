"""Inspect each partition once, then read it once.

    look     a partition    ->  columns, kinds of numbers, labels or ends of targets
    read     a partition    ->  its matrix in memory, class codes or targets, weights

Results of `look` are small, and are combined over partitions in any order.

Partitions are those of Dask's arrays and data frames. They are read, coded and counted on workers;
the client has sums and the tree.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends.binning import Bins
from gputree.backends.devices import missing_columns, resolve_device, to_host
from gputree.backends.sharded.histograms import add_up
from gputree.backends.sharded.rows import Read, join_ends, join_measures, measure
from gputree.backends.sharded.tasks import Tasks
from gputree.base.dtypes import Bools, Floats, Int64s, Weight
from gputree.base.optional import require
from gputree.base.sklearn import check_sample_weight
from gputree.columns import Columns
from gputree.columns.categories import count_codes
from gputree.columns.merging import MergedColumns
from gputree.errors import InputError, InputTypeError
from gputree.estimators.growing import Grown, Options
from gputree.estimators.growing_parts import Rowsets, grow_parts
from gputree.inputs.tables import TableReader
from gputree.inputs.validation import check_labels, check_weight_range, code_dtype, read_targets


class ReadingOptions(NamedTuple):
    """Options of reading partitions."""

    caller: str  # the estimator that errors name
    categorical_features: Any
    ordered_categories: Any
    is_classifier: bool


@dataclass(frozen=True)
class Look:
    """Summary of partitions: rows, columns, labels or range of targets."""

    n_rows: int
    columns: Columns
    empty: Bools  # columns without a value
    names: NDArray | None
    dtype: np.dtype
    classes: NDArray | None  # labels, ascending
    counts: NDArray | None  # rows of each
    ends: tuple[float, float]  # least and largest target
    any_weight: bool  # one is not zero


class Known(NamedTuple):
    """Specification that partitions are read by, once all were inspected."""

    options: ReadingOptions
    columns: Columns
    names: NDArray | None
    dtype: np.dtype
    classes: NDArray | None
    class_weight: Weight  # of each class
    keeps_all: bool = False  # rows of weight zero, too


def look(X: Any, y: Any, sample_weight: Any, options: ReadingOptions) -> Look | None:
    """Look at a partition; None where it has no rows."""
    if X.shape[0] == 0:
        return None
    reader = TableReader(options.caller, options.categorical_features, options.ordered_categories)
    values = reader.values(X, learn=True)
    missing_columns(values, 1)  # refuses infinities
    n = len(values)
    classes = counts = None
    ends = (0.0, 0.0)
    if options.is_classifier:
        classes, codes = check_labels(options.caller, to_host(y), n)
        counts = np.bincount(codes, minlength=classes.size)
    else:
        target = read_targets(options.caller, to_host(y), n)
        ends = float(target.min()), float(target.max())
    weight = _weights(sample_weight, values)
    return Look(
        n, reader.columns_, np.isnan(values).all(axis=0), reader.names(),
        np.promote_types(np.float32, values.dtype), classes, counts, ends,
        weight is None or bool(weight.any()),
    )  # fmt: skip


def _weights(sample_weight: Any, values: NDArray) -> Floats | None:
    if sample_weight is None:
        return None
    return check_sample_weight(
        to_host(sample_weight), values, dtype=np.float64, ensure_non_negative=True,
        allow_all_zero_weights=True,
    )  # fmt: skip


def join_looks(looks: list[Look | None]) -> Look | None:
    """Combine summaries of partitions; ValueError if they do not fit together."""
    some = [look for look in looks if look is not None]
    return reduce(_join_looks, some) if some else None


def _join_looks(a: Look, b: Look) -> Look:
    if a.columns.nominal.size != b.columns.nominal.size or _listed(a.names) != _listed(b.names):
        raise InputError("The partitions of X have different columns.")
    labels = list(map(repr, range(a.empty.size) if a.names is None else a.names.tolist()))
    merged = MergedColumns(labels)
    merged.add(a.columns, a.empty)
    merged.add(b.columns, b.empty)
    classes, counts = a.classes, a.counts
    if a.classes is not None and b.classes is not None:
        both = np.concatenate([a.classes, b.classes])
        classes, place = np.unique(both, return_inverse=True)
        counts = np.zeros(classes.size, np.int64)
        np.add.at(counts, place, np.concatenate([a.counts, b.counts]))
    return Look(
        a.n_rows + b.n_rows, merged.columns().plain(), a.empty & b.empty, a.names,
        np.promote_types(a.dtype, b.dtype), classes, counts, join_ends(a.ends, b.ends),
        a.any_weight or b.any_weight,
    )  # fmt: skip


def _listed(names: NDArray | None) -> list[str] | None:
    return None if names is None else names.tolist()


def read(X: Any, y: Any, sample_weight: Any, known: Known) -> Read:
    """Read a partition that was looked at; ValueError if it has changed since."""
    d = known.columns.nominal.size
    dtype = code_dtype(0 if known.classes is None else known.classes.size)
    if X.shape[0] == 0:
        none = np.empty(0, np.float64 if known.classes is None else dtype)
        return Read(np.empty((0, d), known.dtype), none, None if sample_weight is None else none)
    caller = known.options.caller
    reader = TableReader(caller)
    reader.know(known.columns, known.names)
    values = np.ascontiguousarray(reader.values(X, learn=False), known.dtype)
    n = len(values)
    if (values[:, known.columns.nominal] < 0).any():
        raise _changed()
    weight = _weights(sample_weight, values)
    if known.classes is None:
        target: NDArray = read_targets(caller, to_host(y), n)
    else:
        classes, codes = check_labels(caller, to_host(y), n)
        place = np.searchsorted(known.classes, classes).clip(max=known.classes.size - 1)
        if (known.classes[place] != classes).any():
            raise _changed()
        target = place.astype(dtype)[codes]
        if known.class_weight is not None:
            class_weights = known.class_weight[target]
            weight = class_weights if weight is None else weight * class_weights
    found = Read(values, target, weight)
    return found if known.keeps_all else found.that_count()


def _changed() -> ValueError:
    return InputError(
        "The partitions changed while they were read: they are computed twice, or again where a "
        "worker is lost, and must be the same each time. Nothing may write to what they come from."
    )


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


# Table, target and weights of each partition, delayed.
Partitions = list[tuple[Any, Any, Any]]


def look_at(tasks: Tasks, partitions: Partitions, options: ReadingOptions) -> Look:
    """Inspect partitions; ValueError without rows or positive weights, or if they do not fit."""
    looks = _compute(tasks, look, [(*partition, options) for partition in partitions])
    found: Look | None = tasks.tree(join_looks, looks)
    if found is None:
        raise InputError(
            f"Found array with 0 sample(s) while a minimum of 1 is required by {options.caller}."
        )
    if not found.any_weight:
        raise InputError("Sample weights must contain at least one non-zero number.")
    return found


def read_all(tasks: Tasks, partitions: Partitions, known: Known) -> Rowsets:
    """Read all partitions; they stay where they are read."""
    given = tasks.share(known)
    parts = _compute(tasks, read, [(*partition, given) for partition in partitions])
    nominal = tasks.share(known.columns.nominal)
    found = tasks.combine(measure, join_measures, parts, nominal)
    check_weight_range(np.array([found.weights[1] if found.n_rows else 0.0]))
    return Rowsets(parts, known.columns, known.dtype, found)


def _compute(tasks: Tasks, function: Callable[..., Any], arguments: list[tuple]) -> list[Any]:
    """Futures of a function of each partition."""
    delayed = require("dask", "gputree.distributed").delayed(function, pure=False)
    futures: list[Any] = tasks.client.compute([delayed(*argument) for argument in arguments])
    return futures


def category_counts(tasks: Tasks, rowsets: Rowsets) -> Callable[[int], Int64s]:
    """Rows of each category of a column, on first use."""

    def count(f: int) -> Int64s:
        size = int(rowsets.columns.n_categories[f])
        return tasks.combine(_count_codes, add_up, rowsets.parts, f, size)

    return count


def _count_codes(part: Read, f: int, size: int) -> Int64s:
    return count_codes(part.values[:, f], size)


def grow_tree(
    tasks: Tasks, rowsets: Rowsets, options: Options, device: str, bins: Bins | None = None
) -> Grown:
    """Grow a CART tree over partitions, which workers count on `device`: "auto", "cpu", "cuda".

    `bins` are those of all rows, where these are some of them.
    """
    return grow_parts(tasks, rowsets, options, partial(worker_device, device), bins)


def worker_device(device: str) -> str:
    """The device that the calling worker counts on; errors of `resolve_device` name its host."""
    try:
        return resolve_device(device)
    except (ImportError, RuntimeError) as problem:
        host = platform.node()
        raise type(problem)(f"A worker on {host} has no device to count on: {problem}") from None
