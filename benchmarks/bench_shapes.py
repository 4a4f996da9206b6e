"""What is done with a grown tree, by its size and shape: chains beside balanced trees.

``python -m benchmarks.bench_shapes`` prints the table, in seconds of processor time;
``python -m benchmarks.bench_shapes 100000 raising`` one size and the methods named so.

All but the last two take time by the nodes (and rows), whatever the depth. These two send
rows down the tree, which takes a step a node that a row passes: in a chain of n leaves, n / 2
steps a row.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks.common import timer as timer
from benchmarks.shapes import Shaped, balanced, chain
from gputree import export_text
from gputree.persistence import Contents, read_contents, write_contents
from gputree.prediction import apply
from gputree.pruning import (
    CostComplexity,
    PenalizedLoss,
    Pessimistic,
    ReducedError,
    ValidationPrePruning,
    collapse_splits,
    cost_complexity_path,
)
from gputree.tree.statistics import impurity_importances

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SHAPES = ("chain", "balanced")
MOST_STEPS = 2e9  # of rows down a tree; more are left out


def _model_file(shaped: Shaped) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.gputree"
        write_contents(path, Contents({}, [shaped.tree]), False)
        read_contents(path)


METHODS: dict[str, Callable[[Shaped], Any]] = {
    "cost complexity": lambda s: CostComplexity(1e-6).prune_tree(s.tree),
    "cost-complexity path": lambda s: cost_complexity_path(s.tree),
    "penalized loss": lambda s: PenalizedLoss(0.5).prune_tree(s.tree),
    "pessimistic, no raising": lambda s: Pessimistic(subtree_raising=False).prune_tree(s.tree),
    "reduced error": lambda s: ReducedError().prune_tree(s.tree, s.routed),
    "validation pre-pruning": lambda s: ValidationPrePruning().prune_tree(s.tree, s.routed),
    "collapse": lambda s: collapse_splits(s.tree),
    "importances": lambda s: impurity_importances(s.tree),
    "check and equals": lambda s: (s.tree.check(), s.tree.equals(s.tree)),
    "pickle, both ways": lambda s: pickle.loads(pickle.dumps(s.tree)),
    "model file, both ways": _model_file,
    "export_text": lambda s: export_text(s.tree),
    "apply": lambda s: apply(s.tree, s.rows.X),
    "pessimistic, raising": lambda s: Pessimistic().prune_tree(s.tree, s.rows),
}
BY_DESCENT = ("apply", "pessimistic, raising")


def shaped(shape: str, nodes: int) -> Shaped:
    """A tree of about so many nodes, with a row at every leaf."""
    if shape == "chain":
        return chain(nodes // 2, rows_a_leaf=1)
    return balanced((nodes + 1).bit_length() - 2, rows_a_leaf=1)


def steps(case: Shaped) -> float:
    """Nodes that the rows pass on their way."""
    return float(case.tree.depth[case.routed.node].astype(float).sum())


class Shapes:
    """One method on a tree of one shape and size."""

    params = (list(SHAPES), list(SIZES[:3]), list(METHODS))
    param_names = ("shape", "nodes", "method")

    def setup(self, shape: str, nodes: int, method: str) -> None:
        METHODS[method](shaped(shape, 100))  # compiles
        self.case = shaped(shape, nodes)
        if method in BY_DESCENT and steps(self.case) > MOST_STEPS / 10:
            raise NotImplementedError("takes minutes: asv leaves it out")

    def time_method(self, shape: str, nodes: int, method: str) -> None:
        METHODS[method](self.case)


def main(nodes: str = "", name: str = "") -> None:
    """Print seconds by shape and size, one line a method."""
    sizes = [int(nodes)] if nodes else list(SIZES)
    methods = [method for method in METHODS if name in method]
    for shape in SHAPES:
        for method in methods:
            METHODS[method](shaped(shape, 100))
    cases = {(shape, size): shaped(shape, size) for shape in SHAPES for size in sizes}
    head = [f"{shape}, {case.tree.n_nodes:,}" for (shape, _), case in cases.items()]
    print(f"| nodes | {' | '.join(head)} |\n|{'---|' * (len(cases) + 1)}")
    for method in methods:
        cells = [_seconds(method, case) for case in cases.values()]
        print(f"| {method} | {' | '.join(cells)} |", flush=True)


def _seconds(method: str, case: Shaped) -> str:
    if method in BY_DESCENT and steps(case) > MOST_STEPS:
        return ""
    begin = process_time()
    METHODS[method](case)
    return f"{process_time() - begin:.3g}"


if __name__ == "__main__":
    main(*sys.argv[1:])
