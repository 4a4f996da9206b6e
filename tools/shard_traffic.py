"""Bytes of shards that go to a device in each level of a tree: counted on the emulator.

    PYTHONPATH=tests/helpers python tools/shard_traffic.py
        [--rows N] [--columns D] [--depth D] [--memory BYTES ...]

What works on shards, 16 MB of the memory allowed, has 64 kB here, so that small tables exceed it.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pytest
from cuda_emulator import emulated_cuda
from devices import tune

from gputree import CodedTable, DecisionTreeClassifier
from gputree.backends.sharded import device as copies_
from gputree.backends.sharded.cuda_shard import Plan
from gputree.growth import grower


class Uploads:
    """Bytes uploaded for each level of the last tree; spies until `patch` is undone."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.plan: Plan | None = None
        self.levels: list[int] = []
        make, grow_level = copies_.ShardCopies.__init__, grower._grow_level

        def made(copies: Any, plan: Plan, *rest: Any) -> None:
            make(copies, plan, *rest)
            self.plan, self.levels, self.lanes = plan, [], copies.lanes

        def grown(*arguments: Any) -> Any:
            before = self.lanes.sent
            result = grow_level(*arguments)
            self.levels.append(self.lanes.sent - before)
            return result

        patch.setattr(copies_.ShardCopies, "__init__", made)
        patch.setattr(grower, "_grow_level", grown)


def noisy(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal columns, and classes that no single column separates, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns)).astype(np.float32)
    return X, X[:, 0] * X[:, 1] + rng.standard_normal(rows) / 3 > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, size in (("rows", 20_000), ("columns", 12), ("depth", 8)):
        parser.add_argument(f"--{name}", type=int, default=size)
    default = [600_000, 1_000_000, 1_500_000]
    parser.add_argument("--memory", type=int, nargs="+", default=default)
    asked = parser.parse_args()
    X, y = noisy(asked.rows, asked.columns)
    with pytest.MonkeyPatch.context() as patch, emulated_cuda():
        tune(patch, "cuda", least_work=1 << 16, chunk_rows=512)
        uploads = Uploads(patch)
        table = CodedTable.from_batches([(X, y)], device="cuda", max_bins=64)
        for splitter in ("binned", "exact"):
            for memory in asked.memory:
                model = DecisionTreeClassifier(
                    splitter=splitter, max_depth=asked.depth, max_device_memory=memory
                )
                model.fit(table, y)
                plan, first, *later = uploads.plan, *uploads.levels
                assert plan is not None
                stay = (min(part * plan.rows / asked.rows, 1) for part in plan[1:3])
                shares = "{:4.0%} of codes, {:4.0%} of values stay".format(*stay)
                rest = f"{min(later):,} to {max(later):,}"
                print(f"{splitter} {memory:>9,} bytes: {shares}; {first:>9,} first, {rest} later")


if __name__ == "__main__":
    main()
