"""`python -m benchmarks.reference [table ...]`: C4.5 trees beside recorded ones of other programs.

With `--rules`, rule sets beside those of Release 8's c4.5rules, whose sizes, errors and default
classes `reference_rules.json` holds.

The folder of real tables (GPUTREE_DATA), or the one above it, holds `reference.json`:
for each table and program the leaves, nodes, accuracies and first printed branch of a tree
grown on the rows of ``splits/NAME.npz``. Programs: J48 of Weka 3.9.7, and C4.5 Release 8, which
rounds to float32. J48's thresholds are values of the table, so the trees are grown with
``threshold_placement="data"``; with `--midpoints` they are grown with the default, and of the root
only the column is compared.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from gputree import C45Classifier, C45Rules
from gputree.pruning import Pessimistic

_UNPRUNED = {"pruning": None}
_RELEASE8 = Pessimistic(quantile="release8")

# Parameters that make C45Classifier grow the tree of each program; "a/b" is part b of entry a.
PROGRAMS: dict[str, dict[str, Any]] = {
    "weka397_J48_U_O": _UNPRUNED | {"collapse": False},
    "weka397_J48_U": _UNPRUNED,
    "weka397_J48_U_J_O_M1": _UNPRUNED
    | {"collapse": False, "mdl_correction": False, "min_samples_leaf": 1},
    "weka397_J48_default": {},
    "weka397_J48_C0.1": {"pruning": Pessimistic(0.1)},
    "weka397_J48_S": {"pruning": Pessimistic(subtree_raising=False)},
    "weka397_J48_J": {"mdl_correction": False},
    "weka397_J48_B": {"binary_splits": True},
    "c45r8_default/unpruned": _UNPRUNED,
    "c45r8_default/pruned": {"pruning": _RELEASE8},
    "c45r8_c10/pruned": {"pruning": Pessimistic(0.1, quantile="release8")},
    "c45r8_m1/unpruned": _UNPRUNED | {"min_samples_leaf": 1},
    "c45r8_m1/pruned": {"pruning": _RELEASE8, "min_samples_leaf": 1},
}


class Outcome(NamedTuple):
    """What a program says of its tree."""

    leaves: int | None  # None where a program does not say
    nodes: int
    train: float  # accuracies
    test: float
    root: str  # column of the first split and its threshold; "" for a leaf


FIELDS = Outcome._fields


def differences(ours: Outcome, theirs: Outcome) -> list[str]:
    """Names of the fields that differ; accuracies are shares of whole rows."""
    pairs = zip(FIELDS, ours, theirs, strict=True)
    return [name for name, a, b in pairs if b is not None and not _equal(a, b)]


def _equal(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float) and abs(a - b) < 1e-9)


# --------------------------------------------------------------- recorded
def folder() -> Path:
    """Where `reference.json` and `splits` are."""
    if "GPUTREE_DATA" not in os.environ:
        raise data.TableAbsent("GPUTREE_DATA names no folder of real tables")
    public = Path(os.environ["GPUTREE_DATA"])
    for place in (public, public.parent):
        if (place / "reference.json").is_file():
            return place
    raise data.TableAbsent(f"there is no reference.json in {public} nor above it")


@lru_cache(maxsize=1)
def _recorded() -> dict[str, Any]:
    return json.loads((folder() / "reference.json").read_text("utf-8"))["datasets"]


def tables() -> list[str]:
    """Tables with results of J48."""
    return [name for name in _recorded() if result(name, "weka397_J48_U_O")]


def result(table: str, program: str) -> dict[str, Any] | None:
    """The recorded entry of a program, or None."""
    entry, _, part = program.partition("/")
    found = _recorded()[table]["results"].get(entry)
    if not found or not part:
        return found
    return found.get(part, {}) | {"first_split": found["first_split"]}


def recorded(table: data.FrameTable, program: str) -> Outcome | None:
    """What `program` found; None where there is no record of it.

    Release 8 prints large trees in pieces, so that its leaves are not all recorded; the first
    branch is that of the tree before pruning.
    """
    found = result(table.name, program)
    if not found or "nodes" not in found:
        return None
    leaves = None if program.startswith("c45r8") else found["leaves"]
    root = "" if found["nodes"] == 1 else _printed_root(found["first_split"], list(table.X))
    return Outcome(leaves, found["nodes"], found["train_acc"], found["test_acc"], root)


def _printed_root(branch: str, columns: list[str]) -> str:
    """Column and threshold of a printed branch such as ``age > 3.5 : yes (4.0)``."""
    column = max((c for c in columns if branch.startswith(f"{c} ")), key=len)
    found = re.match(r" (?:<=|>) ([^ :]+)", branch[len(column) :])
    return _root(column, float(found[1]) if found else None)


def _root(column: str, threshold: float | None) -> str:
    return column if threshold is None else f"{column} <= {threshold:.6g}"


# ------------------------------------------------------------------- ours
def rows(table: str) -> tuple[NDArray, NDArray]:
    """Indices of the rows to train on and to test on."""
    split = np.load(folder() / "splits" / f"{table}.npz")
    return split["train"], split["test"]


def fitted(table: data.FrameTable, program: str, placement: str = "data") -> C45Classifier:
    """C45Classifier with the parameters of `program`, on the rows it was given."""
    train, _ = rows(table.name)
    model = C45Classifier(threshold_placement=placement, device="cpu", **PROGRAMS[program])
    return model.fit(table.declared().iloc[train], _codes(table)[train])


def _codes(table: data.FrameTable) -> NDArray:
    """Classes in their declared order, which settles ties of majorities."""
    place = {name: code for code, name in enumerate(table.classes)}
    return np.array([place[name] for name in table.y])


def outcome(table: data.FrameTable, model: C45Classifier) -> Outcome:
    X, y = table.declared(), _codes(table)
    train, test = rows(table.name)
    tree = model.tree_
    root = ""
    if tree.n_leaves > 1:
        column = list(table.X)[tree.feature[0]]
        nominal = column in table.categories
        root = _root(column, None if nominal else float(tree.threshold[0]))
    accuracy = [float(np.mean(model.predict(X.iloc[part]) == y[part])) for part in (train, test)]
    return Outcome(tree.n_leaves, tree.n_nodes, *accuracy, root)


# ------------------------------------------------------------------ rules
class RuleOutcome(NamedTuple):
    """What c4.5rules says of its rules."""

    rules: int
    conditions: int
    train_errors: int
    test_errors: int
    default: str
    nodes: int  # of the unpruned tree; no part of the comparison


# Tables of more rows: their trees differ, or the climbs from random starts decide.
MOST_ROWS = 8200


@lru_cache(maxsize=1)
def recorded_rules() -> dict[str, Any]:
    """The entries of `reference_rules.json` by table."""
    return json.loads((folder() / "reference_rules.json").read_text("utf-8"))


def rule_tables() -> list[str]:
    """Tables of at most `MOST_ROWS` rows with rules of Release 8."""
    found = recorded_rules().items()
    return [name for name, of in found if of["n_train"] + of["n_test"] <= MOST_ROWS]


def rule_rows(table: data.FrameTable) -> tuple[NDArray, NDArray]:
    """Indices of the rows to train on and to test on, as the record says that they were split."""
    record, n = recorded_rules()[table.name], len(table.y)
    if record["split"].startswith("splits/"):
        return rows(table.name)
    order = np.random.RandomState(20240601).permutation(n)
    return order[: record["n_train"]], order[record["n_train"] :]


def rule_outcomes(table: data.FrameTable) -> tuple[RuleOutcome, RuleOutcome]:
    """What C45Rules makes of a table, and what c4.5rules made of it."""
    X, y, split = table.declared(), _codes(table), rule_rows(table)
    tree = C45Classifier(
        pruning=None,
        threshold_placement="data",
        classes=np.arange(len(table.classes)),
        device="cpu",
    )
    model = C45Rules(tree).fit(X.iloc[split[0]], y[split[0]])
    errors = [int((model.predict(X.iloc[part]) != y[part]).sum()) for part in split]
    found = model.rules_
    default = table.classes[model.classes_[found.default]]
    nodes = model.estimator_.tree_.n_nodes
    ours = RuleOutcome(len(found), found.n_conditions, *errors, default, nodes)
    record = recorded_rules()[table.name]
    theirs = record["c45rules_default"]
    told = [theirs.get(name) for name in ("rules", "conditions", "train_errors", "test_errors")]
    nodes = record["c45_tree"]["unpruned_nodes"]
    return ours, RuleOutcome(*told, theirs["default_class"], nodes)


def rule_lines(names: list[str]) -> Iterator[str]:
    """A table of rule sets, and how many of them are equal."""
    yield f"| table | {' | '.join(RuleOutcome._fields)} |\n|{'---|' * 7}"
    equal, accuracies = 0, []
    for name in names:
        table = data.frame_table(name)
        ours, theirs = rule_outcomes(table)
        cells = [str(a) if a == b else f"{a} (not {b})" for a, b in zip(ours, theirs, strict=True)]
        yield f"| {' | '.join([name, *cells])} |"
        equal += ours[:-1] == theirs[:-1]
        n = rule_rows(table)[1].size
        accuracies.append([100 * (1 - of.test_errors / n) for of in (ours, theirs)])
    means = " and ".join(f"{mean:.2f}" for mean in np.mean(accuracies, axis=0))
    yield f"\n{equal} of {len(names)} equal; mean test accuracy {means}%"


# ----------------------------------------------------------------- report
@dataclass(frozen=True)
class Comparison:
    table: str
    program: str
    ours: Outcome
    theirs: Outcome

    def __str__(self) -> str:
        cells = []
        for name, a, b in zip(FIELDS, self.ours, self.theirs, strict=True):
            a, b = (f"{x:.4f}" if isinstance(x, float) else str(x) for x in (a, b))
            differs = name in differences(self.ours, self.theirs)
            cells.append(f"{a} (not {b})" if differs else a)
        return f"| {' | '.join([self.table, self.program, *cells])} |"


def compare(names: list[str], placement: str = "data") -> Iterator[Comparison]:
    for name in names:
        table = data.frame_table(name)
        for program in PROGRAMS:
            theirs = recorded(table, program)
            if theirs is None:
                continue
            ours = outcome(table, fitted(table, program, placement))
            if placement != "data":  # thresholds differ by definition
                ours, theirs = (
                    each._replace(root=each.root.partition(" <= ")[0]) for each in (ours, theirs)
                )
            yield Comparison(name, program, ours, theirs)


def shares(comparisons: list[Comparison]) -> Iterator[str]:
    """How often each program agrees, field by field."""
    for program in PROGRAMS:
        of_program = [c for c in comparisons if c.program == program]
        if not of_program:
            continue
        found = [differences(c.ours, c.theirs) for c in of_program]
        equal = [len(of_program) - sum(name in d for d in found) for name in FIELDS]
        yield f"| all {len(of_program)} | {program} | {' | '.join(map(str, equal))} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="table", help="all of them by default")
    parser.add_argument("--rules", action="store_true", help="rule sets beside c4.5rules")
    parser.add_argument("--midpoints", action="store_true", help="the default thresholds")
    options = parser.parse_args(arguments)
    if options.rules:
        for line in rule_lines(options.tables or rule_tables()):
            print(line, flush=True)
        return
    names = options.tables or tables()
    heads = ("table", "program", *FIELDS)
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    comparisons = []
    for comparison in compare(names, "midpoint" if options.midpoints else "data"):
        print(comparison, flush=True)
        comparisons.append(comparison)
    print("\n".join(shares(comparisons)))


if __name__ == "__main__":
    main()
