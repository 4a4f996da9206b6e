"""What kernels take in one piece: structs that are passed by value.

Each struct has one definition a side: here its fields in order, with the words of C for their
types, and in the header named beside it. A test holds sizes, places and types of both against
one another, as the compiler sees them.
"""

from __future__ import annotations

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
    """One struct, as CuPy passes it by value: an array of size 1 of its dtype.

    Attributes
    ----------
    arrays : tuple of (array, bool)
        The device arrays that it points to, and whether kernels may write to them; they live
        as long as it does.
    """

    arrays: tuple[tuple[Any, bool], ...] = ()


class Struct:
    """Layout of a struct.

    Parameters
    ----------
    name : str
    **fields : str or Struct
        Type of each field, in order: ``"i64"``, ``"double"``, ``"const u8*"``, or a struct.
    """

    def __init__(self, name: str, **fields: str | Struct) -> None:
        self.name = name
        self.fields = fields
        types = [(field, _dtype(kind)) for field, kind in fields.items()]
        self.dtype = np.dtype(types, align=True)

    def pack(self, *values: Any) -> Packed:
        """The struct of these values: numbers, device arrays or None, tuples for structs.

        Raises
        ------
        TypeError
            A pointer's array has another type.
        ValueError
            It is not C-contiguous.
        """
        arrays: list[tuple[Any, bool]] = []
        packed = np.array(self._plain(values, arrays), self.dtype).view(Packed)
        packed.arrays = tuple(arrays)
        return packed

    def _plain(self, values: tuple[Any, ...], arrays: list[tuple[Any, bool]]) -> tuple[Any, ...]:
        """The values with addresses in the place of arrays, which are added to `arrays`."""
        if len(values) != len(self.fields):
            raise TypeError(f"{self.name} has {len(self.fields)} fields, got {len(values)}")
        return tuple(
            self._field(field, kind, value, arrays)
            for (field, kind), value in zip(self.fields.items(), values, strict=True)
        )

    def _field(
        self, field: str, kind: str | Struct, value: Any, arrays: list[tuple[Any, bool]]
    ) -> Any:
        if isinstance(kind, Struct):
            return kind._plain(value, arrays)
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


def _dtype(kind: str | Struct) -> np.dtype:
    if isinstance(kind, Struct):
        return kind.dtype
    return np.dtype(np.uint64) if kind.endswith("*") else _SCALARS[kind]


def _pointed(kind: str) -> str:
    return kind.removeprefix("const ").removesuffix("*")


# ------------------------------------------------------------------------- criteria.cuh
CRITERION = Struct("Criterion", n_classes="i64", unit="double", scale="double")

# --------------------------------------------------------------------------- limits.cuh
LIMITS = Struct("Limits", min_samples_leaf="i64", min_weight_leaf="i64")
MONOTONIC = Struct("Monotonic", signs="const i32*", lower="const double*", upper="const double*")
RULES = Struct(
    "Rules",
    criterion=CRITERION,
    limits=LIMITS,
    channels="i64",
    max_features="i64",
    min_samples_split="i64",
    max_depth="i64",
    min_decrease="double",
    rounded="i64",
)

# ---------------------------------------------------------------------------- table.cuh
TABLE = Struct(
    "Table",
    codes="const u8*",
    stride="i64",
    columns="i64",
    offset="const i64*",
    missing="const u8*",
    single="const u8*",
    by_code="const u8*",
    categories="const i64*",
    greatest="const double*",
    least="const double*",
)
ROWS = Struct(
    "Rows",
    target="const Target*",
    weight="const i64*",
    square="const i64*",
    square_rest="const i64*",
)
CHUNKS = Struct("Chunks", owner="const i64*", first="const i64*", last="const i64*")

# ---------------------------------------------------------------------------- views.cuh
LEVEL = Struct(
    "Level",
    histograms="const Cell*",
    slots="const i64*",
    cumulatives="const i64*",
    totals="const i64*",
)
SCORES = Struct("Scores", best="double*", bins="i32*", sides="u8*", bounds="double*")

# ------------------------------------------------------------------------------ cut.cuh
VISITS = Struct("Visits", orders="const i32*", ranks="const i32*", done="i32*", upto="i32*")
FOUND = Struct("Found", first="i64*", number="i32*", cuts="i64*")
PIECES = Struct("Pieces", column="i64*", bin="i32*", first="i64*", last="i64*")

# ------------------------------------------------------------------------- boundary.cuh
BOUNDARIES = Struct(
    "Boundaries",
    is_first="i64",
    low="const i64*",
    high="const i64*",
    scores=SCORES,
    visits=VISITS,
    cuts="i64*",
    lead="i32*",
)

# --------------------------------------------------------------------------- inside.cu
LIVING = Struct(
    "Living",
    slots="i64",
    tally="i64*",
    place="i32*",
    taken="u32*",
    rest="i64",
    bins=PIECES,
    found=FOUND,
)

# ------------------------------------------------------------------------- partition.cu
SIDES = Struct(
    "Sides",
    nodes="i64",
    place="const i32*",
    start="const i64*",
    count="const i32*",
    code="const u32*",
    is_left="const u8*",
    masks="u32*",
)

# -------------------------------------------------------------------------- subsets.cuh
SEARCH = Struct(
    "Search",
    many_categories="i64",
    rows_per_category="double",
    most_exhaustive="i64",
    most_limited="i64",
    most_moved="i64",
    most_cells="i64",
)
RUN_ROOM = Struct(
    "RunRoom",
    run_at="const i64*",
    sort_at="const i64*",
    cell_at="const i64*",
    runs="i64*",
    shares="double*",
    orders="i32*",
    cells="i64*",
)

# ------------------------------------------------------------------------ categories.cu
PAIRS = Struct(
    "Pairs",
    node="const i64*",
    column="const i64*",
    code_at="const i64*",
    code="u32*",
    is_left="u8*",
    count="i32*",
)

# ----------------------------------------------------------------------------- finer.cu
SIEVE = Struct(
    "Sieve",
    used="const i64*",
    start="const i64*",
    place="const i32*",
    taken="const u32*",
    low="const double*",
    scale="const double*",
)

# ----------------------------------------------------------------------------- cells.cu
INTERVALS = Struct(
    "Intervals",
    key_shift="i64",
    node_pairs="const i64*",
    column="const i64*",
    pair_intervals="const i64*",
    low="const u64*",
    high="const u64*",
    shift="const u64*",
    first="const i64*",
)

# --------------------------------------------------------------------- sorted_lists.cuh
LISTS = Struct(
    "Lists",
    keys="Bits*",
    items="i32*",
    key_spill="Bits*",
    item_spill="i32*",
    sides="u8*",
    rows="i64",
    columns="i64",
)

# ---------------------------------------------------------------------------- finish.cu
NODES = Struct(
    "Nodes",
    first_child="i32*",
    feature="i32*",
    threshold="double*",
    missing_left="u8*",
    gain="double*",
    begin="i32*",
    end="i32*",
    depth="i32*",
    key="u64*",
    lower="double*",
    upper="double*",
)
ROOTS = Struct(
    "Roots",
    first="const i64*",
    last="const i64*",
    depth="const i64*",
    key="const u64*",
    room="const i64*",
    channel="const i64*",
)

# ---------------------------------------------------------------------- lists/tiles.cuh
COLUMNS = Struct(
    "Columns",
    nominal="const u8*",
    number="i64",
    entries="i64",
    item="const i32*",
    code="const u32*",
)
ENTRIES = Struct("Entries", target="const i32*", weight="const i64*")

# ---------------------------------------------------------------- lists/information.cuh
INFORMATION = Struct(
    "Information",
    unit="double",
    scale="double",
    shift="i64",
    row_bits="i64",
    terms="const i64*",
    n_terms="i64",
)

# -------------------------------------------------------------------- lists/segment.cuh
BRANCH_LIMITS = Struct(
    "BranchLimits",
    least="double",
    cut_share="double",
    most="double",
    slack="double",
    unit="double",
)
LIST_TASK = Struct(
    "Task",
    information=INFORMATION,
    limits=BRANCH_LIMITS,
    entries=ENTRIES,
    n_classes="i64",
    missing_is_category="i64",
)

# ----------------------------------------------------------------------- lists/score.cu
LEVEL_NODES = Struct(
    "LevelNodes",
    number="i64",
    begin="const i64*",
    end="const i64*",
    weights="const i64*",
    resting="const u8*",
)

# ------------------------------------------------------------------- lists/partition.cu
TESTS = Struct(
    "Tests",
    number="i64",
    begin="const i64*",
    end="const i64*",
    feature="const i32*",
    cut="const u32*",
    part="const i64*",
    missing="i64*",
    whole="i64*",
)
PARTS = Struct(
    "Parts",
    test="const i64*",
    first="i64*",
    last="i64*",
    code="i64*",
    rows="i64*",
    known="i64*",
    weights="i64*",
)
ROUTES = Struct(
    "Routes",
    begin="const i64*",
    part="const i64*",
    opened="const i64*",
    room="const i64*",
    route="i64*",
    spread="i32*",
)
NEW_ENTRIES = Struct("NewEntries", target="i32*", weight="i64*")
NEW_LISTS = Struct("NewLists", entries="i64", item="i32*", code="u32*")
CURSORS = Struct("Cursors", number="i64", begin="const i64*", next="i32*")

STRUCTS = tuple(value for value in globals().values() if isinstance(value, Struct))
