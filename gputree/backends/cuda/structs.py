"""Structs that kernels receive by value, as their sources declare them.

Their fields, in order and before any method, are read from the declarations. A test compares sizes,
offsets and types with the compiler's.
"""

from __future__ import annotations

import re
import struct
from importlib.resources import files
from typing import Any

import numpy as np

# Scalars, and what a pointer to them may point to: some types differ from variant to variant.
_SCALARS = {"i64": np.dtype(np.int64), "double": np.dtype(np.float64)}
_POINTED = {
    "u8": ("u1",),
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


class Struct:
    """Layout of a struct: types of its fields, as C has them, or structs."""

    def __init__(self, name: str, **fields: str | Struct) -> None:
        self.name = name
        self.fields = fields
        types = [(field, _dtype(kind)) for field, kind in fields.items()]
        self.dtype = np.dtype(types, align=True)
        self.codes = "".join(_code(kind) for kind in fields.values())
        self._packer = struct.Struct(self.codes)
        self._whole = np.dtype((np.void, self.dtype.itemsize))

    def pack(self, *values: Any) -> Packed:
        """Pack values: numbers, device arrays or None, tuples for structs."""
        arrays: list[tuple[Any, bool]] = []
        words = self._packer.pack(*self._words(values, arrays))
        packed = np.frombuffer(words, self._whole).view(Packed)
        packed.layout, packed.arrays = self.dtype, tuple(arrays)
        return packed

    def _words(self, values: tuple[Any, ...], arrays: list[tuple[Any, bool]]) -> list[Any]:
        """Flatten values, also of structs; arrays become addresses, and are added to `arrays`."""
        if len(values) != len(self.fields):
            raise TypeError(f"{self.name} has {len(self.fields)} fields, got {len(values)}")
        words: list[Any] = []
        for (field, kind), value in zip(self.fields.items(), values, strict=True):
            if isinstance(kind, Struct):
                words += kind._words(value, arrays)
            else:
                words.append(self._word(field, kind, value, arrays))
        return words

    def _word(self, field: str, kind: str, value: Any, arrays: list[tuple[Any, bool]]) -> Any:
        if not kind.endswith("*"):
            return value
        if value is None:
            return 0
        if value.dtype.str[1:] not in _POINTED[_pointed(kind)]:
            raise TypeError(f"{self.name}.{field} is a {kind}, got an array of {value.dtype}")
        if not value.flags.c_contiguous:
            raise ValueError(f"The array of {self.name}.{field} must be C-contiguous.")
        arrays.append((value, not kind.startswith("const ")))
        return value.data.ptr


def _code(kind: str | Struct) -> str:
    """Letters of the fields for the module `struct`; every field has 8 bytes."""
    if isinstance(kind, Struct):
        return kind.codes
    return "Q" if kind.endswith("*") else {"i64": "q", "double": "d"}[kind]


def _dtype(kind: str | Struct) -> np.dtype:
    if isinstance(kind, Struct):
        return kind.dtype
    return np.dtype(np.uint64) if kind.endswith("*") else _SCALARS[kind]


def _pointed(kind: str) -> str:
    return kind.removeprefix("const ").removesuffix("*")


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
TABLE, ROWS, CHUNKS = _declared("table.cuh", "Table", "Rows", "Chunks")
LEVEL, SCORES = _declared("views.cuh", "Level", "Scores")
VISITS, FOUND, PIECES = _declared("cut.cuh", "Visits", "Found", "Pieces")
(BOUNDARIES,) = _declared("boundary.cuh", "Boundaries")
(INSIDE,) = _declared("inside.cu", "Inside")
(SIDES,) = _declared("partition.cu", "Sides")
SEARCH, RUN_MEMORY = _declared("subsets.cuh", "Search", "RunMemory")
(PAIRS,) = _declared("categories.cu", "Pairs")
GRID, SUB_BINS = _declared("sub_bins.cuh", "Grid", "SubBins")
(INTERVALS,) = _declared("cells.cu", "Intervals")
(LISTS,) = _declared("sorted_lists.cuh", "Lists")
NODES, ROOTS = _declared("finish.cu", "Nodes", "Roots")
COLUMNS, ENTRIES = _declared("lists/tiles.cuh", "Columns", "Entries")
(INFORMATION,) = _declared("lists/information.cuh", "Information")
BRANCH_LIMITS, LIST_TASK = _declared("lists/segment.cuh", "BranchLimits", "Task")
(LEVEL_NODES,) = _declared("lists/score.cu", "LevelNodes")
TESTS, PARTS, ROUTES, NEW_ENTRIES, NEW_LISTS, CURSORS = _declared(
    "lists/partition.cu", "Tests", "Parts", "Routes", "NewEntries", "NewLists", "Cursors"
)

STRUCTS = tuple(_KNOWN.values())
