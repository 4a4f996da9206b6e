"""The CUDA backend and the CPU backend over one table, and tests of bit-for-bit equality."""

from typing import Any

import numpy as np
import pytest
from devices import host_codes, new_backend, to_host
from sklearn.base import clone
from strategies import Sample, is_regression, random_sample

from gputree.backends.base import Backend, Task
from gputree.backends.cuda.backend import CudaBackend
from gputree.backends.cuda.kernels import cupy
from gputree.backends.cuda.table import CudaTable
from gputree.base.progress import Progress
from gputree.growth import grower
from gputree.growth.assembly import GrownNodes, renumber
from gputree.growth.grower import GrowthPlan, grow_roots

HISTOGRAM_BYTES = 1 << 26


def table(
    criterion: str, weighted: bool, n: int = 250, d: int = 4, seed: int = 3, dtype: Any = np.float64
) -> Sample:
    """A random table of 3 classes, or of targets; in float32 some values are equal."""
    sample = random_sample(seed, n, d, 0 if is_regression(criterion) else 3, weighted)
    return as_dtype(sample, dtype)


def as_dtype(sample: Sample, dtype: Any) -> Sample:
    """The sample with values of another type; values beyond its range become its maximum."""
    limit = np.finfo(dtype).max
    values = np.clip(sample.values, -limit, limit).astype(dtype)
    return sample._replace(values=np.ascontiguousarray(values))


def pair(sample: Sample, task: Task, max_bins: int | None = None) -> tuple[Backend, Backend]:
    """Both backends over one table, coded where `max_bins` is given."""
    cpu, cuda = (new_backend(name, sample, task) for name in ("cpu", "cuda"))
    for backend in (cpu, cuda):
        if max_bins:
            backend.encode(max_bins)
    return cpu, cuda


def assert_equal(expected: Any, found: Any, name: object = "") -> None:
    """Equal bit for bit, but for the sign of zero; NaN equals NaN."""
    expected, found = to_host(expected), to_host(found)
    assert expected.shape == found.shape, name
    same = (expected == found) | ((expected != expected) & (found != found))
    assert same.all(), (name, np.argwhere(~same)[:5], expected[~same][:5], found[~same][:5])


def assert_same_bins(sample: Sample, task: Task, max_bins: int) -> None:
    """Both backends fit the same bins and code alike, wherever the table lies."""
    cpu, cuda = pair(sample, task, max_bins)
    resident = CudaBackend(CudaTable(cupy().asarray(sample.values), sample.missing), task, 1)
    resident.encode(max_bins)
    for backend in (cuda, resident):
        assert_equal(host_codes(cpu), host_codes(backend), "codes")
        for name in ("offset", "single", "by_code", "highest", "lowest"):
            assert_equal(getattr(cpu.table, name), getattr(backend.table, name), name)


def grown(
    backend: Backend,
    sample: Sample,
    task: Task,
    *,
    max_bins: int = 64,
    finish_rows: int | None = None,
    max_leaf_nodes: int | None = None,
) -> dict[str, Any]:
    """A tree, field by field: its nodes breadth-first, their statistics, the entries."""
    plan = GrowthPlan(
        max_bins, task.exact, max_leaf_nodes, HISTOGRAM_BYTES, finish_rows,
        interactions=task.interactions,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        if finish_rows is not None:  # or small tables never see a histogram
            patch.setattr(grower, "FEWEST_ROWS", 0)
        progress = Progress(len(sample.y), enabled=False)
        n, d = sample.values.shape
        roots = np.array([n]), np.array([7], np.uint64)
        nodes, _ = grow_roots(backend, *roots, d, task.limits, plan, progress)
    nodes, parent, depth = renumber(nodes)
    statistics = backend.node_statistics(nodes.begin, nodes.end)
    others = {"parent": parent, "depth": depth, "statistics": statistics}
    return dict(zip(GrownNodes._fields, nodes, strict=True)) | others | {"entries": backend.entries}


def assert_same_tree(sample: Sample, task: Task, **options: Any) -> None:
    """Both backends grow the same tree; options as of `grown`."""
    cpu, cuda = (grown(backend, sample, task, **options) for backend in pair(sample, task))
    for name, expected in cpu.items():
        assert_equal(expected, cuda[name], name)


def fit_both(model: Any, X: Any, y: Any, weight: Any = None) -> Any:
    """Fit `model` on CUDA; its tree equals the one that the CPU grows, bit for bit."""
    expected = clone(model).set_params(device="cpu").fit(X, y, weight).tree_
    found = model.set_params(device="cuda").fit(X, y, weight).tree_
    found.check()
    assert expected.equals(found)
    return model
