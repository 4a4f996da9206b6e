"""Tables to measure on: generated ones, the same everywhere, and real ones where there are any."""

from __future__ import annotations

import csv
import gzip
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

TEST_ROWS = 100_000
Table = tuple[NDArray[np.float32], NDArray]


# -------------------------------------------------------------- generated
@lru_cache(maxsize=2)
def binary_table(n: int, d: int = 28, seed: int = 0) -> Table:
    """`n` rows of `d` normal float32 columns, all values distinct, and two balanced classes.

    Six columns carry signal (a product, a wave, a kink, an interaction), the others none.
    """
    X, z = _signal(n, d, seed)
    return X, (z > np.median(z)).astype(np.int32)


@lru_cache(maxsize=2)
def regression_table(n: int, d: int = 28, seed: int = 0) -> Table:
    """As `binary_table`, with the underlying noisy signal as a float64 target."""
    X, z = _signal(n, d, seed)
    return X, z.astype(np.float64)


@lru_cache(maxsize=2)
def classes_table(n: int, d: int, k: int, seed: int = 0) -> Table:
    """As `binary_table`, with `k` balanced classes: quantiles of the signal."""
    X, z = _signal(n, d, seed)
    cuts = np.quantile(z, np.arange(1, k) / k)
    return X, np.searchsorted(cuts, z).astype(np.int32)


def _signal(n: int, d: int, seed: int) -> Table:
    if d < 6:
        raise ValueError(f"The generated tables have at least 6 columns, got d={d}.")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    z = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * np.abs(X[:, 3])
    return X, z - 0.7 * X[:, 4] * (X[:, 5] > 0) + rng.normal(size=n) * 0.7


# ------------------------------------------------- generated, of a real shape
# The ten numeric columns of the forest cover table: least, greatest value, share of the
# elevation in them. Their distinct counts run from 67 (slope) to about 7,000 (distances).
_TERRAIN = {
    "elevation": (1859, 3836, 1.0),
    "aspect": (0, 360, 0.0),
    "slope": (0, 66, -0.3),
    "to_water": (0, 1397, 0.3),
    "above_water": (-173, 527, 0.1),
    "to_road": (0, 7117, 0.4),
    "shade_9am": (0, 254, 0.1),
    "shade_noon": (0, 254, 0.2),
    "shade_3pm": (0, 254, 0.1),
    "to_fire": (0, 7173, 0.2),
}
_COVER_SHARES = np.array([0.365, 0.488, 0.062, 0.005, 0.016, 0.030, 0.034])
_COVER_HEIGHTS = np.array([0.55, 0.15, -1.2, -1.9, -0.3, -1.4, 1.7])  # of the classes
_COVER_NOISE = 0.2  # keeps an unlimited tree at about 60,000 leaves of 580,000 rows
_WILDERNESS, _SOILS = 4, 40


@lru_cache(maxsize=1)
def covertype_like(n: int = 580_000, seed: int = 0) -> Table:
    """A table shaped like covertype: 10 integer columns, 44 one-hot ones, 7 uneven classes."""
    rng = np.random.default_rng(seed)
    height = rng.normal(size=n)
    terrain = [_terrain(rng, height, *column) for column in _TERRAIN.values()]
    wilderness = _band(height + 0.8 * rng.normal(size=n), _WILDERNESS)
    soil = _band(height + 0.5 * rng.normal(size=n) + 0.3 * wilderness, _SOILS)
    X = np.column_stack([*terrain, _one_hot(wilderness, _WILDERNESS), _one_hot(soil, _SOILS)])
    return X.astype(np.float32), _cover(rng, height, terrain, soil)


def _terrain(
    rng: np.random.Generator, height: NDArray, low: int, high: int, share: float
) -> NDArray:
    mixed = share * height + np.sqrt(1 - share**2) * rng.normal(size=height.size)
    return np.clip(np.rint(low + (high - low) * (mixed + 3.5) / 7), low, high)


def _band(values: NDArray, count: int) -> NDArray:
    """Uneven groups along `values`: common ones in the middle, rare ones at the ends."""
    return np.searchsorted(np.linspace(-2.5, 2.5, count + 1)[1:-1], values / values.std())


def _one_hot(groups: NDArray, count: int) -> NDArray:
    return groups[:, None] == np.arange(count)


def _cover(
    rng: np.random.Generator, height: NDArray, terrain: list[NDArray], soil: NDArray
) -> NDArray:
    """The class whose preferred height, moved by distances and soil, is nearest."""
    wet, road, fire = (_standard(terrain[i]) for i in (3, 5, 9))
    place = height + 0.5 * np.sin(2 * road) * fire + 0.3 * wet + 0.2 * np.cos(soil)
    place = place + _COVER_NOISE * rng.normal(size=height.size)
    order = np.argsort(_COVER_HEIGHTS)
    cuts = np.quantile(place, np.cumsum(_COVER_SHARES[order])[:-1])
    return order[np.searchsorted(cuts, place)].astype(np.int32)


def _standard(values: NDArray) -> NDArray:
    return (values - values.mean()) / values.std()


# ---------------------------------------------- generated, with categories
_MIXED_CATEGORIES = (2, 3, 4, 6, 8, 12, 17, 25, 35, 50)
_MIXED_NUMBERS = 10
_MIXED_MISSING = 0.05

# Of codes: a table where no column has more categories than other libraries take.
_CODED_NUMBERS = 14
_CODED_CATEGORIES = (3, 8, 20, 50, 100, 200)

# The census table: categories of its strings, spread of its integers (ages, weights, years of
# school, gains and losses that are mostly 0, hours), rows of the lower class.
_CENSUS_CATEGORIES = (9, 16, 7, 15, 6, 5, 2, 42)
_CENSUS_SPREADS = (13, 100_000, 2.5, 0.5, 0.4, 12)
_CENSUS_MISSING = 0.01
_CENSUS_LOWER = 0.76

# Network connections: categories of strings, numbers, classes, and how much is noise.
_CONNECTION_CATEGORIES = (3, 65, 11, 2, 2, 2, 2)
_CONNECTION_NUMBERS, _CONNECTION_CLASSES = 34, 38
_CONNECTION_ZERO = 0.75  # (number, class) pairs where nearly all rows have 0
_CONNECTION_NOISE = 0.01


@lru_cache(maxsize=2)
def coded_categories(
    n: int,
    numbers: int,
    categories: tuple[int, ...],
    classes: int = 2,
    seed: int = 0,
    skewed: bool = True,
) -> tuple[NDArray[np.float64], NDArray, list[int]]:
    """Codes of categories behind numbers, classes by both, and which columns hold codes.

    Where `skewed`, the more common the lower the code; each has an effect of its own.
    """
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n) for _ in range(numbers)]
    signal = sum((np.abs(column) for column in columns[:4]), np.zeros(n))
    for count in categories:
        code = (count * rng.random(n) ** (2 if skewed else 1)).astype(np.int64)
        signal += rng.normal(size=count)[code] * 0.5
        columns.append(code.astype(np.float64))
    signal += rng.normal(size=n)
    y = np.searchsorted(np.quantile(signal, np.arange(1, classes) / classes), signal)
    return np.column_stack(columns), y, list(range(numbers, len(columns)))


def mixed_codes(n: int) -> tuple[NDArray[np.float64], NDArray, list[int]]:
    """`coded_categories` of 14 numbers and 6 columns of 3 to 200 categories, two classes."""
    return coded_categories(n, _CODED_NUMBERS, _CODED_CATEGORIES)


def coded_frame(X: NDArray[np.float64], nominal: list[int]) -> pd.DataFrame:
    """Numbers, and columns of codes as categoricals of all codes up to the greatest."""
    import pandas as pd

    codes = {f: pd.CategoricalDtype(np.arange(X[:, f].max() + 1)) for f in nominal}
    return pd.DataFrame(X).astype(codes)


@lru_cache(maxsize=1)
def mixed_table(n: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray]:
    """`n` rows of 10 columns of strings and 10 of numbers, 5% of cells missing, 3 classes.

    Columns have 2 to 50 categories, the later of them rarer. Half the columns carry signal:
    an effect of each category, kinks and waves of numbers, and one number whose sign a
    category turns. Noise leaves about a third of the classes to chance.
    """
    rng = np.random.default_rng(seed)
    codes = [_rarer_and_rarer(rng, n, count) for count in _MIXED_CATEGORIES]
    numbers = [np.round(rng.normal(size=n), 1 + j % 4) for j in range(_MIXED_NUMBERS)]
    z = _mixed_signal(rng, codes, numbers)
    y = np.searchsorted(np.quantile(z, [1 / 3, 2 / 3]), z)
    X = _frame_with_holes(rng, codes, numbers, _MIXED_MISSING)
    return X, np.array(["low", "middle", "high"])[y]


@lru_cache(maxsize=1)
def census_like(n: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray]:
    """`n` rows shaped like the census table "adult": 8 columns of strings, 6 of integers."""
    rng = np.random.default_rng(seed)
    codes = [_rarer_and_rarer(rng, n, count) for count in _CENSUS_CATEGORIES]
    numbers = [rng.normal(size=n) for _ in _CENSUS_SPREADS]
    z = _mixed_signal(rng, codes, [*numbers, numbers[0]])
    numbers = [np.rint(s * x) for s, x in zip(_CENSUS_SPREADS, numbers, strict=True)]
    X = _frame_with_holes(rng, codes, numbers, _CENSUS_MISSING)
    return X, np.where(z > np.quantile(z, _CENSUS_LOWER), ">50K", "<=50K")


@lru_cache(maxsize=1)
def connections_like(n: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray]:
    """`n` rows shaped like the network connections of KDD Cup 1999: 41 columns, 38 classes.

    Classes are told apart easily and differ a thousandfold in size; most numbers are 0.
    """
    rng = np.random.default_rng(seed)
    k = _CONNECTION_CLASSES
    share = 1.0 / np.arange(1, k + 1) ** 2
    y = rng.choice(k, n, p=share / share.sum())
    codes = [_usual(rng, y, rng.integers(count, size=k), count) for count in _CONNECTION_CATEGORIES]
    numbers = []
    for _ in range(_CONNECTION_NUMBERS):
        level = np.where(rng.random(k) < _CONNECTION_ZERO, 0.0, rng.integers(1, 100, size=k))
        numbers.append(np.rint(_usual(rng, y, level, 100) * rng.normal(1.0, 0.1, size=n)))
    return _frame_with_holes(rng, codes, numbers, 0.0), np.array([f"class {c}" for c in range(k)])[
        y
    ]


def _usual(rng: np.random.Generator, y: NDArray, usual: NDArray, count: int) -> NDArray:
    """What is usual for the class of each row, or now and then something else below `count`."""
    other = rng.integers(count, size=y.size)
    return np.where(rng.random(y.size) < _CONNECTION_NOISE, other, usual[y])


def _frame_with_holes(
    rng: np.random.Generator, codes: list[NDArray], numbers: list[NDArray], missing: float
) -> pd.DataFrame:
    """Codes as strings, numbers as they are, and a share of cells missing from both."""
    import pandas as pd

    columns: dict[str, Any] = {}
    for j, code in enumerate(codes):
        names = np.array([f"value {c}" for c in range(code.max() + 1)] + [None], object)
        columns[f"category_{j}"] = names[np.where(rng.random(code.size) < missing, -1, code)]
    for j, number in enumerate(numbers):
        columns[f"number_{j}"] = np.where(rng.random(number.size) < missing, np.nan, number)
    return pd.DataFrame(columns)


def _rarer_and_rarer(rng: np.random.Generator, n: int, count: int) -> NDArray:
    share = 1.0 / np.arange(2, count + 2)
    return rng.choice(count, n, p=share / share.sum())


def _mixed_signal(
    rng: np.random.Generator, codes: list[NDArray], numbers: list[NDArray]
) -> NDArray:
    z = sum(rng.normal(size=code.max() + 1)[code] for code in codes[::2])
    z = z + np.abs(numbers[0]) + np.sin(2 * numbers[2]) + np.where(numbers[4] > 0.5, 1.0, 0.0)
    return z + numbers[6] * np.where(codes[1] == 0, 1.0, -1.0) + rng.normal(size=len(z))


# ------------------------------------------------------------------- real
@dataclass(frozen=True)
class RealTable:
    """A table read from disk: nominal columns as ordinal codes, missing cells as NaN."""

    name: str
    X: NDArray[np.float32]
    y: NDArray
    is_regression: bool


class TableAbsent(Exception):
    """There is no such table here; the message says where it was looked for."""


@lru_cache(maxsize=1)
def real_table(name: str) -> RealTable:
    """Read ``name.csv[.gz]`` from the folder that the variable GPUTREE_DATA names.

    The file has a header, the last column `target`, and empty cells where a value is missing.
    A `manifest.json` there, or one folder up, lists the `nominal` and `numeric` columns of each
    table, the `target_kind`, and the `nominal_values` in the order of their codes.
    """
    path, manifest = _locate(name)
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    target = columns.pop("target")
    orders = manifest.get("nominal_values", {})
    X = np.column_stack([_numbers(cells, orders.get(c)) for c, cells in columns.items()])
    is_regression = manifest["target_kind"] == "regression"
    y = np.array(target, dtype=np.float64) if is_regression else np.array(target)
    return RealTable(name, X, y, is_regression)


@dataclass(frozen=True)
class FrameTable:
    """A table as a data frame: text, numbers and holes as they are.

    `categories` lists the values of each nominal column, `classes` those of the target, in
    the order that other programs were told; regression has none.
    """

    name: str
    X: pd.DataFrame
    y: NDArray
    categories: dict[str, list[str]]
    classes: list[str]

    def declared(self) -> pd.DataFrame:
        """The table with its nominal columns as categoricals of the declared categories."""
        import pandas as pd

        types = {c: pd.CategoricalDtype(values) for c, values in self.categories.items()}
        return self.X.astype(types)


@lru_cache(maxsize=1)
def frame_table(name: str) -> FrameTable:
    """Read a table as `real_table` does, nominal columns as strings."""
    import pandas as pd

    path, manifest = _locate(name)
    X = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    is_regression = manifest["target_kind"] == "regression"
    y = X.pop("target").to_numpy(dtype=float if is_regression else str)
    categories = manifest.get("nominal_values", {})
    numeric = [c for c in X if c not in categories]
    classes = [str(c) for c in manifest.get("classes", [])]
    return FrameTable(name, X.astype(dict.fromkeys(numeric, float)), y, categories, classes)


def real_names(kind: str = "classification") -> list[str]:
    """Names of the tables in the folder that GPUTREE_DATA names, of one kind of target."""
    if "GPUTREE_DATA" not in os.environ:
        raise TableAbsent("GPUTREE_DATA names no folder of real tables")
    files = Path(os.environ["GPUTREE_DATA"]).glob("*.csv*")
    names = sorted({file.name.partition(".")[0] for file in files})
    return [name for name in names if _kind(name) == kind]


def _kind(name: str) -> str | None:
    """The kind of a table's target; None where no manifest has it."""
    try:
        return str(_locate(name)[1]["target_kind"])
    except (KeyError, TableAbsent):
        return None


def _locate(name: str) -> tuple[Path, dict]:
    if "GPUTREE_DATA" not in os.environ:
        raise TableAbsent("GPUTREE_DATA names no folder of real tables")
    folder = Path(os.environ["GPUTREE_DATA"])
    paths = [p for p in (folder / f"{name}.csv", folder / f"{name}.csv.gz") if p.is_file()]
    manifests = [p for d in (folder, folder.parent) if (p := d / "manifest.json").is_file()]
    if not paths or not manifests:
        raise TableAbsent(f"{folder} has no {name}.csv[.gz] with a manifest.json")
    return paths[0], json.loads(manifests[0].read_text("utf-8"))[name]


def _numbers(cells: tuple[str, ...], order: list[str] | None) -> NDArray[np.float32]:
    if order is None:
        return np.array([cell or "nan" for cell in cells], dtype=np.float32)
    code = {value: float(i) for i, value in enumerate(order)} | {"": np.nan}
    return np.array([code[cell] for cell in cells], dtype=np.float32)
