"""Tables whose trees are on record, and the digests of these trees' fields.

`PYTHONPATH=. python tests/helpers/recorded_trees.py NAME ...` writes the record of the
checked-out version anew: of the named cases, or of all.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tables import REAL

from benchmarks.data import frame_table
from gputree import DecisionTreeClassifier, DecisionTreeRegressor
from gputree.tree import Tree

RECORD = Path(__file__).parent / "recorded_trees.json"
DIGITS = 10

# Rows of a real table that its recorded trees are grown from, at most.
MOST_ROWS = 20_000

SPLITS = ("auto", "exhaustive", "ordered", "one_vs_rest")


class Columns(NamedTuple):
    """Columns of a generated table: categories of nominal ones, and the number of numeric ones."""

    categories: tuple[int, ...]
    numbers: int
    n_rows: int
    n_classes: int  # 0 for regression
    holes: float = 0.0
    steps: int = 0  # numbers are rounded to so many values, so that they tie; 0: all distinct


class Data(NamedTuple):
    X: Any
    y: np.ndarray
    weight: np.ndarray
    nominal: Any


class Case(NamedTuple):
    """A tree on record: its table, and the parameters it is grown with."""

    data: Callable[[], Data]
    parameters: dict[str, Any]
    weighted: bool = False


# ------------------------------------------------------------------ tables
# RandomState: its streams never change.
def generate(shape: Columns, seed: int = 0) -> Data:
    """Effects of categories and kinks of numbers, with noise; the more common the lower codes."""
    rng = np.random.RandomState(seed)
    columns, signal = [], np.zeros(shape.n_rows)
    for count in shape.categories:
        code = (count * rng.random_sample(shape.n_rows) ** 2).astype(np.int64)
        signal += rng.standard_normal(count)[code] * 0.6
        columns.append(code.astype(np.float64))
    for f in range(shape.numbers):
        number = rng.standard_normal(shape.n_rows)
        signal += np.abs(number) if f % 2 else (number > 0.3) * 0.8
        columns.append(np.round(number * shape.steps / 4) if shape.steps else number)
    X = np.stack(columns, axis=1)
    signal += 0.8 * rng.standard_normal(shape.n_rows)
    X[rng.random_sample(X.shape) < shape.holes] = np.nan
    weight = rng.choice([0.25, 1.0, 1.0, 1.5, 3.0], shape.n_rows)
    y = np.round(signal, 1 if shape.steps else 6)
    if shape.n_classes:
        cuts = np.quantile(signal, np.arange(1, shape.n_classes) / shape.n_classes)
        y = np.searchsorted(cuts, signal)
    nominal = np.arange(X.shape[1]) < len(shape.categories)
    return Data(X, y, weight, nominal)


def real(name: str) -> Data:
    """A table of GPUTREE_DATA, or some rows of it."""
    table = frame_table(name)
    rows = np.random.RandomState(0).permutation(len(table.y))[:MOST_ROWS]
    return Data(table.X.iloc[rows], np.asarray(table.y)[rows], np.ones(rows.size), "auto")


SMALL = Columns((2, 3, 7, 12), 3, 220, 3, 0.05, 6)
FEW = Columns((3, 5, 8, 20), 3, 3000, 2, 0.04)
TIES = Columns((2, 4, 9, 30), 2, 3000, 4, 0.1, 8)
MANY = Columns((6, 40, 200), 2, 6000, 20, 0.02)
WIDE = Columns((3, 255), 2, 6000, 3, 0.02)
WIDER = Columns((4, 256, 300), 2, 6000, 3, 0.02)
WORDS = Columns((5, 5000), 2, 9000, 5, 0.02)
WORDS_ALONE = Columns((5000,), 0, 6000, 4)
WORDS_MISSING = Columns((5000,), 0, 6000, 2, 0.1)
PAIRS = Columns((2, 2, 2), 2, 3000, 3, 0.1, 10)
PAIRS_ALONE = Columns((2, 2, 2, 2, 2), 0, 500, 2, 0.2)
QUANTITY = Columns((3, 12, 100), 3, 5000, 0, 0.05)
QUANTITY_TIES = Columns((3, 12, 40), 3, 3000, 0, 0.05, 6)
QUANTITY_WORDS = Columns((4, 3000), 1, 7000, 0, 0.03)

SHAPES = {
    "small": SMALL,
    "few": FEW,
    "ties": TIES,
    "many": MANY,
    "wide": WIDE,
    "wider": WIDER,
    "words": WORDS,
    "words_alone": WORDS_ALONE,
    "words_missing": WORDS_MISSING,
    "pairs": PAIRS,
    "pairs_alone": PAIRS_ALONE,
    "quantity": QUANTITY,
    "quantity_ties": QUANTITY_TIES,
    "quantity_words": QUANTITY_WORDS,
}

# Options besides the table's name; the first is grown from every table, weighted and not.
LIMITS: dict[str, dict[str, Any]] = {
    "whole": {},
    "depth": {"max_depth": 6},
    "leaf": {"min_samples_leaf": 12},
    "leaf_share": {"min_weight_fraction_leaf": 0.01},
    "decrease": {"min_impurity_decrease": 0.002, "min_samples_split": 30},
    "leaves": {"max_leaf_nodes": 25},
    "drawn": {"max_features": 2, "random_state": 5, "max_depth": 9},
    "drawn_one": {"max_features": 1, "random_state": 1, "min_samples_leaf": 3},
    "binned": {"splitter": "binned"},
    "binned_few": {"splitter": "binned", "max_bins": 16, "min_samples_leaf": 4},
}


# ------------------------------------------------------------------- cases
def generated_cases() -> Iterator[tuple[str, Case]]:
    """Trees of generated tables, by name."""
    for place, (name, shape) in enumerate(SHAPES.items()):

        def data(shape: Columns = shape, seed: int = place) -> Data:
            return generate(shape, seed)

        for limit, parameters in LIMITS.items():
            weighted = limit in ("leaf_share", "drawn", "decrease")
            yield f"{name}-{limit}", Case(data, parameters, weighted)
        yield f"{name}-weighted", Case(data, {}, weighted=True)
        for split in SPLITS[1:]:
            few = {"categorical_split": split, "max_depth": 7}
            yield f"{name}-{split}", Case(data, few)
            yield f"{name}-{split}-leaf", Case(data, few | {"min_samples_leaf": 9}, weighted=True)
        if shape.n_classes:
            yield f"{name}-entropy", Case(data, {"criterion": "entropy"})
            limited = {"criterion": "entropy", "min_samples_leaf": 5, "max_leaf_nodes": 40}
            yield f"{name}-entropy-limited", Case(data, limited, weighted=True)


def real_cases() -> Iterator[tuple[str, Case]]:
    """Trees of the tables in GPUTREE_DATA that have categories, by name."""
    for name in REAL:
        if not frame_table(name).categories:
            continue

        def data(name: str = name) -> Data:
            return real(name)

        yield f"real-{name}", Case(data, {"max_depth": 12})
        limited = {"min_samples_leaf": 5, "max_leaf_nodes": 60, "categorical_split": "ordered"}
        yield f"real-{name}-limited", Case(data, limited)


def grow(case: Case) -> Tree:
    """The tree of a case."""
    X, y, weight, nominal = case.data()
    quantity = y.dtype.kind == "f"
    kind = DecisionTreeRegressor if quantity else DecisionTreeClassifier
    model = kind(categorical_features=nominal, device="cpu", n_jobs=1, **case.parameters)
    return model.fit(X, y, weight if case.weighted else None).tree_


# ----------------------------------------------------------------- digests
def digests(tree: Tree) -> dict[str, str]:
    """A digest of each field of a tree; of its number of nodes, that number."""
    record = {"n_nodes": str(tree.n_nodes)}
    for field in fields(tree):
        value = in_order(tree) if field.name == "branch_code" else getattr(tree, field.name)
        if isinstance(value, np.ndarray):
            content = f"{value.dtype.str}{value.shape}".encode() + value.tobytes()
        else:
            content = repr(value).encode()
        record[field.name] = hashlib.sha256(content).hexdigest()[:DIGITS]
    return record


def in_order(tree: Tree) -> np.ndarray:
    """The categories in the lists of a tree, ascending wherever their order says nothing."""
    bounds = np.unique(np.concatenate([tree.branch_begin, tree.branch_end]))
    piece = np.searchsorted(bounds, np.arange(tree.branch_code.size), side="right")
    return tree.branch_code[np.lexsort((tree.branch_code, piece))]


def packed(record: dict[str, str]) -> str:
    """The digests of a tree on one line, in the order of `field_names`."""
    return " ".join(record.values())


def field_names() -> list[str]:
    """Names of what is digested."""
    return ["n_nodes", *(field.name for field in fields(Tree))]


def main(names: list[str]) -> None:
    """Write the record; where only some cases are named, of the fields that it has."""
    cases = dict(generated_cases()) | dict(real_cases())
    content = json.loads(RECORD.read_text("utf-8"))
    if not names:
        content = {"fields": field_names(), "trees": {}}
    for name in names or cases:
        found = digests(grow(cases[name]))
        content["trees"][name] = packed({field: found[field] for field in content["fields"]})
    RECORD.write_text(json.dumps(content, indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
