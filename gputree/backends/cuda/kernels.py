"""Loading of CUDA sources and launching of their kernels.

A module of kernels is a ``.cu`` file next to or below this one. To add one:

1. Name the headers it stands behind in `HEADERS`; nothing includes anything, since NVRTC
   brings no headers. What every module shares (types, constants) is in ``types.cuh``.
2. Write kernels as ``extern "C" __global__ void __launch_bounds__(threads) name(...)``, with
   a comment that says what a block, warp or thread processes. Numbers are ``i64`` or ``double``,
   indices of memory ``i64`` throughout: rows x columns exceed 32 bits.
3. Launch them by name through `Kernels`: ``kernels("score", "score_columns", grid, ...)``, or
   ``kernels.each(...)`` for a thread an item. Arguments are C-contiguous device arrays of
   the kernel's types, ints, floats, or None for a null pointer; what belongs together is a
   struct, which `gputree.backends.cuda.kernels` packs. Its fields may be held in registers from
   the first to the last; a ``const __grid_constant__`` one is read where it is used.
4. Where a kernel does not depend on criterion or weights, list its module in `PLAIN`: it is
   compiled once for all of them.

CuPy compiles a module at the first launch on a device, and keeps it on disk. A launch
returns at once; the host waits where it copies a result.

Structs that kernels receive by value, as their sources declare them.

Their fields, in order and before any method, are read from the declarations. A test compares sizes,
offsets and types with the compiler's.
"""

from __future__ import annotations

import re
import struct
import sys
from copy import copy
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from gputree.base.optional import require
from gputree.criteria import begin, dispatch, shared
from gputree.criteria.dispatch import Criterion
from gputree.criteria.named import OVER_HISTOGRAMS, TARGET_FORMS

# Threads of a block, unless a launch says otherwise.
THREADS = 256
LANES = 32

# Bytes of shared memory that a launch may have without a request, in addition to variables.
DEFAULT_SHARED = 47 * 1024

# Multiply-add must not be fused: scores have the same bits as on the CPU.
OPTIONS = ("-std=c++20", "--fmad=false")

CRITERIA = (
    "logarithm.cuh",
    "criteria.cuh",
    "class_weights.cuh",
    "targets.cuh",
    *dict.fromkeys(entry.header for entry in OVER_HISTOGRAMS.values()),
    "bounds.cuh",
)
_CUT = (*CRITERIA, "limits.cuh", "table.cuh", "draw.cuh", "views.cuh", "warp.cuh", "cut.cuh")
_INSIDE = ("found.cuh", "searched.cuh", "candidates.cuh", "sub_bins.cuh")
_SUBSETS = ("runs.cuh", "subsets.cuh")
_LISTS = (
    "lists/information.cuh",
    "lists/tiles.cuh",
    "lists/segment.cuh",
    "lists/numeric.cuh",
    "lists/categorical.cuh",
)

# Headers after types.cuh, which every module has.
HEADERS = {
    "encode": ("values.cuh", "draw.cuh"),
    "histogram": ("table.cuh", "atomics.cuh", "add_row.cuh"),
    "score": (*_CUT, "interactions.cuh"),
    "refine": ("values.cuh", *_CUT, *_INSIDE),
    "sub_bins": ("values.cuh", "atomics.cuh", *_CUT, "add_row.cuh", *_INSIDE),
    "choose": (*_CUT, "interactions.cuh", "record.cuh", "found.cuh"),
    "partition": (
        "table.cuh",
        "values.cuh",
        "draw.cuh",
        "warp.cuh",
        "record.cuh",
        "opening.cuh",
    ),
    "categories": ("values.cuh", "atomics.cuh", *_CUT, *_SUBSETS),
    "cells": ("table.cuh", "atomics.cuh", "values.cuh", "add_row.cuh"),
    "statistics": ("table.cuh", "atomics.cuh"),
    "finish": (
        "values.cuh",
        "atomics.cuh",
        *_CUT,
        "interactions.cuh",
        "sorted_lists.cuh",
        *_SUBSETS,
        "best_cut.cuh",
    ),
    "lists/score": ("atomics.cuh", "warp.cuh", "logarithm.cuh", *_LISTS),
    "lists/partition": ("table.cuh", "atomics.cuh", "warp.cuh", "lists/tiles.cuh"),
}

# Modules whose kernels depend only on values, codes and entries.
PLAIN = frozenset({"encode", "partition", "lists/score", "lists/partition"})

# Modules that are compiled separately for tables with categorical columns.
WITH_CATEGORIES = frozenset({"finish"})

# Modules that are compiled separately for tasks with monotonic constraints.
WITH_MONOTONIC = frozenset({"score", "refine", "sub_bins", "finish"})

# Modules that are compiled separately for tasks with interaction constraints.
WITH_INTERACTIONS = frozenset({"score", "categories", "choose", "finish"})

# Modules that are compiled separately for subtrees of many rows.
WITH_WIDE = frozenset({"finish"})


def macro(criterion: type) -> str:
    """Macro that selects the formulas of a criterion: ``SQUARED_ERROR`` for `SquaredError`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", criterion.__name__).upper()


class Variant(NamedTuple):
    """Properties of a task and its table that kernels are compiled for."""

    criterion: type | None
    weighted: bool
    value_bits: int
    categories: bool = False  # there are categorical columns; it matters to `WITH_CATEGORIES`
    monotonic: bool = False  # there are monotonic constraints; it matters to `WITH_MONOTONIC`
    interactions: bool = False  # as much of interaction constraints and `WITH_INTERACTIONS`
    wide: bool = False  # subtrees have more rows than 16 bits number; it matters to `WITH_WIDE`

    def seen_by(self, name: str) -> Variant:
        """Return the variant without what a module is not compiled for separately."""
        return self._replace(
            criterion=None if name in PLAIN else self.criterion,
            weighted=self.weighted and name not in PLAIN,
            categories=self.categories and name in WITH_CATEGORIES,
            monotonic=self.monotonic and name in WITH_MONOTONIC,
            interactions=self.interactions and name in WITH_INTERACTIONS,
            wide=self.wide and name in WITH_WIDE,
        )

    @property
    def macros(self) -> tuple[str, ...]:
        """Options of the compiler."""
        value_bits = f"-DVALUE_BITS={self.value_bits}"
        if self.criterion is None:
            return (value_bits,)
        has_weights = dispatch.is_shared(begin, self.criterion, shared.weights_begin)
        return (
            f"-D{macro(self.criterion)}",
            f"-DREGRESSION={int(self.criterion in TARGET_FORMS)}",
            *(["-DSTATE_OF_WEIGHTS=1"] if has_weights else []),
            f"-DWEIGHTED={int(self.weighted)}",
            f"-DCATEGORIES={int(self.categories)}",
            *(["-DMONOTONIC=1"] if self.monotonic else []),
            *(["-DINTERACTIONS=1"] if self.interactions else []),
            *(["-DWIDE=1"] if self.wide else []),
            value_bits,
        )


def cupy() -> Any:
    """Import CuPy; if that fails, raise an error that names the extra to install."""
    module = sys.modules.get("cupy")  # a launch needs it several times, and an import takes 5 us
    if module is None or getattr(module.__spec__, "_initializing", False):
        return require("cupy", "device='cuda'")
    return module


def source(name: str) -> str:
    """Source of a module of kernels, its headers first."""
    folder = files(__package__)
    parts = ("types.cuh", *HEADERS[name], f"{name}.cu")
    return "\n".join(f'#line 1 "{part}"\n{(folder / part).read_text("utf-8")}' for part in parts)


@cache
def load(name: str, variant: Variant) -> Any:
    """The kernels of ``<name>.cu`` for a variant; compiled when one is first launched."""
    return cupy().RawModule(code=source(name), options=(*OPTIONS, *variant.macros))


@cache
def function(device: int, name: str, variant: Variant, kernel: str) -> Any:
    """One kernel of a module, as it is loaded on a device."""
    return load(name, variant.seen_by(name)).get_function(kernel)


class Kernels:
    """The kernels of one variant on one device, launched by name: ``kernels("score", ...)``."""

    def __init__(
        self, criterion: Criterion | None, weighted: bool, value_bits: int, **flags: bool
    ) -> None:
        kind = None if criterion is None else type(criterion)
        self.variant = Variant(kind, weighted, value_bits, **flags)
        self._loaded: dict[str, Any] = {}  # those launched before, by name

    @cached_property
    def wide(self) -> Kernels:
        """The same kernels for subtrees of many rows."""
        kernels = copy(self)
        kernels.variant, kernels._loaded = self.variant._replace(wide=True), {}
        return kernels

    def __call__(
        self,
        module: str,
        kernel: str,
        grid: tuple[int, ...],
        *arguments: Any,
        threads: int = THREADS,
        shared: int = 0,
    ) -> None:
        """Launch on the current device, where the arrays are, C-contiguous."""
        if min(grid) == 0:
            return
        launch = self._loaded.get(kernel)
        if launch is None:
            launch = function(cupy().cuda.Device().id, module, self.variant, kernel)
            self._loaded[kernel] = launch
        checked: list[Any] = []  # by a loop in place: a call for each costs as much as the launch
        for argument in arguments:
            if argument is None:
                checked.append(_NULL)
            elif type(argument) in _READY:
                checked.append(argument)
            elif isinstance(argument, np.integer | np.floating):
                checked.append(argument.item())
            elif argument.flags.c_contiguous:
                checked.append(argument)
            else:
                raise ValueError(f"Arrays given to the kernel {kernel} must be C-contiguous.")
        # Threads share it: another one's launch may need as much as it is.
        if shared > DEFAULT_SHARED and shared > launch.max_dynamic_shared_size_bytes:
            launch.max_dynamic_shared_size_bytes = shared
        launch(grid, (threads,), tuple(checked), shared_mem=shared)

    def each(self, module: str, kernel: str, count: int, *arguments: Any) -> None:
        """Launch one thread for each of `count` items."""
        self(module, kernel, (-(-count // THREADS),), *arguments)


# Scalars, and what a pointer to them may point to: some types differ from variant to variant.
_SCALARS = {"i64": np.dtype(np.int64), "double": np.dtype(np.float64)}
_POINTED = {
    "u8": ("u1",),
    "Item": ("u2", "u4"),
    "i32": ("i4",),
    "u32": ("u4",),
    "i64": ("i8",),
    "u64": ("u8",),
    "double": ("f8",),
    "Target": ("i4", "i8"),
    "Cell": ("u4", "i8"),
    "Bits": ("u4", "u8"),
}


class Packed(np.ndarray):
    """One struct, as CuPy passes it by value: an array of size 1.

    Its type has no fields, which CuPy would describe at every launch.
    """

    layout: np.dtype
    # Device arrays that it points to and keeps, each with True if kernels may write to it.
    arrays: tuple[tuple[Any, bool], ...] = ()


# Types of arguments that the driver takes as they are, and a null pointer for it.
_READY = (Packed, int, float)
_NULL = np.uint64(0)


class Struct:
    """Layout of a struct: types of its fields, as C has them, or structs."""

    def __init__(self, name: str, **fields: str | Struct) -> None:
        self.name = name
        self.fields = fields
        types = [(field, _dtype(kind)) for field, kind in fields.items()]
        self.dtype = np.dtype(types, align=True)
        self.codes = "".join(_code(kind) for kind in fields.values())
        self.words = [word for field, kind in fields.items() for word in _words(name, field, kind)]
        self._packer = struct.Struct(self.codes)
        self._whole = np.dtype((np.void, self.dtype.itemsize))

    def pack(self, *values: Any) -> Packed:
        """Pack values: numbers, device arrays or None, tuples for structs."""
        arrays: list[tuple[Any, bool]] = []
        numbers: list[Any] = []
        is_flat = len(values) == len(self.words)
        for word, value in zip(self.words, values if is_flat else self._flat(values), strict=True):
            if word.types is None:
                numbers.append(value)
            elif value is None:
                numbers.append(0)
            else:
                if value.dtype.str[1:] not in word.types:
                    raise TypeError(f"{word.field} is a {word.kind}, got an array of {value.dtype}")
                if not value.flags.c_contiguous:
                    raise ValueError(f"The array of {word.field} must be C-contiguous.")
                numbers.append(value.data.ptr)
                arrays.append((value, word.is_written))
        packed = np.frombuffer(self._packer.pack(*numbers), self._whole).view(Packed)
        packed.layout, packed.arrays = self.dtype, tuple(arrays)
        return packed

    def _flat(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Values of all words, of structs within it, too."""
        if len(values) != len(self.fields):
            raise TypeError(f"{self.name} has {len(self.fields)} fields, got {len(values)}")
        inner: list[Any] = []
        for kind, value in zip(self.fields.values(), values, strict=True):
            inner += kind._flat(value) if isinstance(kind, Struct) else (value,)
        return tuple(inner)


class _Word(NamedTuple):
    """One number or pointer of a struct."""

    field: str
    kind: str  # its type in C
    types: tuple[str, ...] | None  # of arrays that a pointer may point to; None for a number
    is_written: bool


def _words(name: str, field: str, kind: str | Struct) -> list[_Word]:
    """Words of one field of the struct `name`."""
    if isinstance(kind, Struct):
        return kind.words
    pointed = kind.removeprefix("const ").removesuffix("*")
    types = _POINTED[pointed] if kind.endswith("*") else None
    return [_Word(f"{name}.{field}", kind, types, not kind.startswith("const "))]


def _code(kind: str | Struct) -> str:
    """Letters of the fields for the module `struct`; every field has 8 bytes."""
    if isinstance(kind, Struct):
        return kind.codes
    return "Q" if kind.endswith("*") else {"i64": "q", "double": "d"}[kind]


def _dtype(kind: str | Struct) -> np.dtype:
    if isinstance(kind, Struct):
        return kind.dtype
    return np.dtype(np.uint64) if kind.endswith("*") else _SCALARS[kind]


def _declared(source: str, *names: str) -> list[Struct]:
    """Structs that a source declares, each after those that it contains."""
    text = re.sub("//.*", "", (files(__package__) / source).read_text("utf-8"))
    for name in names:
        body = re.search(rf"struct {name} {{(.*?)(?:__device__|\n}};)", text, re.DOTALL)
        assert body is not None, f"{source} declares no struct {name}"
        fields: dict[str, str | Struct] = {}
        for kind, listed in re.findall(r"((?:const )?\w+\*?) ([\w, ]+);", body[1]):
            fields |= dict.fromkeys(listed.split(", "), _KNOWN.get(kind, kind))
        _KNOWN[name] = Struct(name, **fields)
    return [_KNOWN[name] for name in names]


_KNOWN: dict[str, Struct] = {}

(CRITERION,) = _declared("criteria.cuh", "Criterion")
LIMITS, RULES, MONOTONIC = _declared("limits.cuh", "Limits", "Rules", "Monotonic")
(INTERACTIONS,) = _declared("interactions.cuh", "Interactions")
TABLE, ROWS, CHUNKS = _declared("table.cuh", "Table", "Rows", "Chunks")
LEVEL, SCORES = _declared("views.cuh", "Level", "Scores")
(VISITS,) = _declared("cut.cuh", "Visits")
(FOUND,) = _declared("found.cuh", "Found")
(LARGER,) = _declared("score.cu", "Larger")
*_, OPENING = _declared("opening.cuh", "Above", "OpenNodes", "Pieces", "Opening")
(SIDES,) = _declared("partition.cu", "Sides")
SEARCH, RUN_MEMORY = _declared("subsets.cuh", "Search", "RunMemory")
(PAIRS,) = _declared("categories.cu", "Pairs")
GRID, SUB_BINS, PAIR_LIST, SLOTS = _declared("sub_bins.cuh", "Grid", "SubBins", "PairList", "Slots")
(INTERVALS,) = _declared("cells.cu", "Intervals")
(LISTS,) = _declared("sorted_lists.cuh", "Lists")
NODES, ROOTS, SCRATCH = _declared("finish.cu", "Nodes", "Roots", "Scratch")
COLUMNS, ENTRIES = _declared("lists/tiles.cuh", "Columns", "Entries")
(INFORMATION,) = _declared("lists/information.cuh", "Information")
BRANCH_LIMITS, LIST_TASK = _declared("lists/segment.cuh", "BranchLimits", "Task")
(LEVEL_NODES,) = _declared("lists/score.cu", "LevelNodes")
TESTS, PARTS, ROUTES, NEW_ENTRIES, NEW_LISTS, CURSORS = _declared(
    "lists/partition.cu", "Tests", "Parts", "Routes", "NewEntries", "NewLists", "Cursors"
)

STRUCTS = tuple(_KNOWN.values())
