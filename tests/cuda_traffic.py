"""What the host asks of a device per level of a tree: counted on the emulator.

    python tests/cuda_traffic.py [--rows N] [--columns D] [--depth D]

Kernels launched, copies to the device and to the host, arrays allocated (what CuPy's functions
return included), and waits for the device, as means over the levels of a tree that is grown by
histograms down to its leaves, exact and binned.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import pytest
from cuda_emulator import emulated_cuda, launches, memory, transfers
from devices import new_backend
from strategies import Sample, make_task
from twins import grown

from gputree.growth import grower


class Traffic(NamedTuple):
    """Of one level, on average."""

    launches: float
    uploads: float
    downloads: float
    allocations: float
    waits: float

    @classmethod
    def now(cls) -> Traffic:
        """Of all time."""
        copies = (transfers[name] for name in ("to device", "to host"))
        return cls(launches.total(), *copies, memory.allocations, transfers["waits"])


def numeric_table(rows: int, columns: int) -> Sample:
    """Normal columns, and two classes that some of them tell apart, with noise."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, columns)).astype(np.float32)
    signal = values[:, 0] + values[:, 1] * values[:, 2] + rng.normal(size=rows)
    return Sample(values, (signal > 0).astype(np.uint8), None)


def traffic(exact: bool, rows: int = 3000, columns: int = 5, depth: int = 8) -> Traffic:
    """Per level of a tree on the emulated device that is there."""
    sample = numeric_table(rows, columns)
    task = make_task("gini", sample, exact=exact, max_depth=depth)
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
    return Traffic(*np.mean(spent, axis=0).tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, size in (("rows", 3000), ("columns", 5), ("depth", 8)):
        parser.add_argument(f"--{name}", type=int, default=size)
    sizes = vars(parser.parse_args())
    print("".join(f"{name:>12}" for name in ("", *Traffic._fields)))
    with emulated_cuda():
        for exact in (True, False):
            means = traffic(exact, **sizes)
            name = "exact" if exact else "binned"
            print(f"{name:>12}" + "".join(f"{mean:12.1f}" for mean in means))


if __name__ == "__main__":
    main()
