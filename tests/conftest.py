"""What all tests share: backends to run one body on, growing on them, Hypothesis's profile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from oracles import Grown
from strategies import Sample

from gputree.backends.base import Backend, Task
from gputree.growth import grower
from gputree.growth.assembly import renumber
from gputree.growth.grower import Plan, grow
from gputree.growth.progress import Progress

BACKENDS = ["cpu"]

# The first example of a kernel compiles it.
settings.register_profile(
    "gputree", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gputree")


def new_backend(name: str, sample: Sample, task: Task, n_threads: int = 1) -> Backend:
    """The backend called `name` over one table: the only place where tests make one."""
    assert name == "cpu"
    from gputree.backends.cpu.backend import CpuBackend

    return CpuBackend(sample.values, sample.missing, task, n_threads)


@pytest.fixture(params=BACKENDS, scope="session")
def backend(request: pytest.FixtureRequest) -> Callable[..., Backend]:
    """``backend(sample, task, n_threads=1)``: a backend of each device in turn."""
    return partial(new_backend, request.param)


@pytest.fixture(scope="session")
def grow_tree(backend: Callable[..., Backend]) -> Callable[..., Grown]:
    """``grow_tree(sample, task, ...)``: the tree that the grower makes on the backend."""

    def run(
        sample: Sample,
        task: Task,
        *,
        n_threads: int = 1,
        max_bins: int = 256,
        max_leaf_nodes: int | None = None,
        histograms: int = 1000,
        finish_rows: int | None = None,
        key: int = 7,
    ) -> Grown:
        device = backend(sample, task, n_threads)
        device.encode(max_bins)
        budget = histograms * device.histogram_bytes
        plan = Plan(max_bins, task.exact, max_leaf_nodes, budget, finish_rows, key)
        progress = Progress(len(sample.y), enabled=False)
        with pytest.MonkeyPatch.context() as patch:
            if finish_rows is not None:  # or small tables never see a histogram
                patch.setattr(grower, "FEWEST_ROWS", 0)
            nodes = grow(device, sample.values.shape, task.limits, plan, progress)
        return as_grown(nodes, device)

    return run


@pytest.fixture
def chunk_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``chunk_rows(m)``: let threads take m rows of a node at a time, from here on."""

    def cut(m: int) -> None:
        monkeypatch.setattr("gputree.backends.cpu.backend.CHUNK_ROWS", m)

    return cut


def to_host(array: Any) -> np.ndarray:
    """A device's array as NumPy's."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def as_grown(nodes: Any, device: Any) -> Grown:
    """Nodes of the grower in the form of the reference tree."""
    nodes, _, depth = renumber(nodes)
    entries = to_host(device.entries)
    leaf = nodes.first_child < 0
    rows = [
        entries[a:b].tolist() if is_leaf else sorted(entries[a:b].tolist())
        for a, b, is_leaf in zip(nodes.begin, nodes.end, leaf, strict=True)
    ]
    return Grown(
        nodes.first_child.tolist(),
        np.where(leaf, -1, nodes.feature).tolist(),
        np.where(leaf, 0.0, nodes.threshold).tolist(),
        nodes.missing_left.tolist(),
        nodes.gain.tolist(),
        depth.tolist(),
        rows,
    )
