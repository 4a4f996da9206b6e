"""What the host asks of a device per level of a tree: counted on the emulator.

    python tests/cuda_traffic.py [--rows N] [--columns D] [--depth D]

Kernels launched, copies to the device and to the host, arrays allocated (what CuPy's functions
return included), and waits for the device, as means over the levels of a tree that is grown by
histograms down to its leaves: of two classes, exact and binned, and of targets. The rooms of the
workspace, which the first two levels allocate for all, are counted apart, once a tree.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import pytest
from cuda_emulator import emulated_cuda, launches, memory, transfers
from devices import new_backend
from strategies import Sample, is_regression, make_task
from twins import grown

from gputree.growth import grower


class Traffic(NamedTuple):
    """Of one level, on average; `rooms` are allocated once a tree."""

    launches: float
    uploads: float
    downloads: float
    waits: float
    allocations: float
    rooms: float = 0

    @classmethod
    def now(cls) -> Traffic:
        """Of all time."""
        copies = (transfers[name] for name in ("to device", "to host"))
        return cls(launches.total(), *copies, transfers["waits"], memory.allocations)


class Case(NamedTuple):
    """What is grown."""

    criterion: str = "gini"
    exact: bool = True


CASES = {"exact": Case(), "binned": Case(exact=False), "of targets": Case("squared_error")}

# Levels that allocate rooms: histograms of a level are kept while the next one is counted.
OPENING = 2


def numeric_table(rows: int, columns: int, criterion: str) -> Sample:
    """Normal columns, and targets, or whether they are positive, that some tell, with noise."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, columns)).astype(np.float32)
    signal = values[:, 0] + values[:, 1] * values[:, 2] + rng.normal(size=rows)
    return Sample(
        values, signal if is_regression(criterion) else (signal > 0).astype(np.uint8), None
    )


def traffic(case: Case, rows: int = 3000, columns: int = 5, depth: int = 8) -> Traffic:
    """Per level of a tree on the emulated device that is there."""
    sample = numeric_table(rows, columns, case.criterion)
    task = make_task(case.criterion, sample, exact=case.exact, max_depth=depth)
    backend = new_backend("cuda", sample, task)
    backend.encode(64)
    spent = []
    with pytest.MonkeyPatch.context() as patch:
        whole = grower._grow_level

        def counted(*arguments):
            before = Traffic.now()
            result = whole(*arguments)
            if arguments[1].size:
                spent.append(np.subtract(Traffic.now(), before))
            return result

        patch.setattr(grower, "_grow_level", counted)
        grown(backend, sample, task, max_bins=64, finish_rows=1)
    assert len(spent) == depth
    means, allocated = (
        np.mean(spent, axis=0),
        np.array(spent)[:, Traffic._fields.index("allocations")],
    )
    found = Traffic(*means.tolist())
    rooms, others = allocated[:OPENING].sum(), allocated[OPENING:].mean()
    return found._replace(allocations=float(others), rooms=float(rooms))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, size in (("rows", 3000), ("columns", 5), ("depth", 8)):
        parser.add_argument(f"--{name}", type=int, default=size)
    sizes = vars(parser.parse_args())
    print("".join(f"{name:>12}" for name in ("", *Traffic._fields)))
    with emulated_cuda():
        for name, case in CASES.items():
            means = traffic(case, **sizes)
            print(f"{name:>12}" + "".join(f"{mean:12.1f}" for mean in means))


if __name__ == "__main__":
    main()
