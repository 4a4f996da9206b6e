"""Edits of one tree: CPU time of `TreeEditor`, and of ipytreecraft where it is installed.

    python -m benchmarks.editing                     # 1,000, 100,000 and 1,000,000 rows
    python -m benchmarks.editing 1000 --other PYTHON # ipytreecraft in the environment of PYTHON

A table of 10 columns of numbers, two classes, a tree of depth 6. Both programs get the same edits;
each edit is undone, outside its time. The least of some repetitions is printed, in milliseconds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS = (1_000, 100_000, 1_000_000)
REPEATS = 5
LONG = 5.0  # seconds, after which an edit is not repeated
DEPTH = 6


def table(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and classes that depend on three of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(int)


def least(edit: Callable[[], Any], undo: Callable[[], Any] = lambda: None) -> float:
    """Milliseconds of CPU time of an edit."""
    found: list[float] = []
    while len(found) < REPEATS and sum(found) < LONG:
        begin = time.process_time()
        edit()
        found.append(time.process_time() - begin)
        undo()
    return 1000.0 * min(found)


def of_gputree(n: int) -> dict[str, float]:
    """Times of `TreeEditor`, by edit."""
    from gputree import DecisionTreeClassifier
    from gputree.editing import TreeEditor
    from gputree.editing.server import EditingSession

    X, y = table(n)
    model = DecisionTreeClassifier(max_depth=DEPTH)
    editor = TreeEditor(model.fit(X, y), X, y)
    session = EditingSession(editor)

    def override() -> None:
        editor.split(0, 1, threshold=0.25)
        for child in editor.numbers[1:3].tolist():
            editor.grow(child)

    def undo_all() -> None:
        while editor.can_undo:
            editor.undo()

    def page() -> None:
        editor._subtrees._last = None  # rows of the node that was looked at last
        session.reply({"action": "describe", "node": 0})
        session.reply({"action": "histogram", "node": 0, "column": 0})

    override()
    page()
    undo_all()  # kernels are compiled
    return {
        "fit": least(lambda: model.fit(X, y)),
        "split the root by another column, grow again": least(override, undo_all),
        "grow a child of the root again": least(lambda: editor.grow(1), undo_all),
        "make a child of the root a leaf": least(lambda: editor.prune(1), undo_all),
        "best splits of all columns at the root": least(lambda: editor.alternatives(0)),
        "panel of the root, with its histogram": least(page),
    }


def of_treecraft(n: int) -> dict[str, float]:
    """Times of the engine of ipytreecraft, by edit."""
    import pandas as pd
    from treecraft import IncrementalTreeEngine, SplitOverride, TreeConfig
    from treecraft.models.schemas import SplitCondition

    X, y = table(n)
    engine = IncrementalTreeEngine()
    engine.load_data(pd.DataFrame(X, columns=[f"x{f}" for f in range(10)]).assign(y=y), "y")
    config = TreeConfig(max_depth=DEPTH)
    times = {"fit": least(lambda: engine.fit(config))}
    cut = SplitCondition(feature_index=1, threshold=0.25)
    override = SplitOverride(node_id=0, conditions=[cut])
    times["split the root by another column, grow again"] = least(
        lambda: engine.override_split(override), engine.undo
    )
    times["make a child of the root a leaf"] = least(lambda: engine.prune_subtree(1), engine.undo)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", type=int, default=ROWS)
    parser.add_argument("--other", help="a Python that has ipytreecraft; default: this one")
    parser.add_argument("--json", choices=["gputree", "treecraft"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.json:
        of = of_gputree if given.json == "gputree" else of_treecraft
        print(json.dumps(of(given.rows[0])))
        return
    print("| rows | edit | gputree | ipytreecraft |\n|---|---|---|---|")
    for n in given.rows:
        found = []
        for name, python in (("gputree", sys.executable), ("treecraft", given.other)):
            command = [python or sys.executable, __file__, str(n), "--json", name]
            done = subprocess.run(command, capture_output=True, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {})
        for edit, milliseconds in found[0].items():
            other = f"{found[1][edit]:,.1f}" if edit in found[1] else "-"
            print(f"| {n:,} | {edit} | {milliseconds:,.1f} | {other} |")


if __name__ == "__main__":
    main()
