"""Fixtures of all tests: devices, growth on them, the command; the profile of Hypothesis."""

import gc
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

import devices
import numba
import numpy as np
import pytest
from devices import to_host
from hot_kernels import hot_kernels_compiled
from hypothesis import HealthCheck, given, settings, strategies
from oracles import Grown
from products import mark_products
from python_mutants import part_of
from strategies import Sample

from gputree.backends.base import Backend, Task
from gputree.backends.cpu import tuning
from gputree.base.progress import Progress
from gputree.cli import main
from gputree.compilation import numba_internals, store, tiers
from gputree.compilation.declared import declare
from gputree.growth import grower
from gputree.growth.assembly import renumber
from gputree.growth.grower import GrowthPlan, grow_roots
from gputree.persistence import load_model

# The first example of a kernel compiles it.
settings.register_profile(
    "full", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("some", settings.get_profile("full"), max_examples=10)
settings.register_profile("few", settings.get_profile("full"), max_examples=3)
# A failure by chance is no help in testing an installation.
settings.register_profile(
    "default", settings.get_profile("full"), max_examples=5, derandomize=True, database=None
)


@pytest.fixture
def always_compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels are compiled at their first call, here and in processes that a test starts."""
    monkeypatch.setenv("GPUTREE_JIT", "always")
    with tiers.forced("always"):
        yield


DEVICE_FIXTURES = {"device": True, "cuda_device": False}  # whether the CPU is one


def is_default(config: pytest.Config) -> bool:
    """Return whether pytest runs the markers that it runs by default."""
    return config.getoption("markexpr") in config.getini("addopts")


def pytest_configure(config: pytest.Config) -> None:
    """Few examples by default, and kernels as Python runs them, unless anyone says otherwise."""
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("default" if is_default(config) else "full")
    if all(way.startswith("ptx") for way in config.getoption("--emulate")):
        os.environ["GPUTREE_EMULATE"] = "ptx"
    if is_default(config) and "GPUTREE_JIT" not in os.environ:
        stack = ExitStack()
        stack.enter_context(tiers.forced("never"))
        if not numba.config.DISABLE_JIT:
            stack.enter_context(hot_kernels_compiled())
        config.add_cleanup(stack.close)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect tests without garbage collections, which find next to nothing and take seconds.

    Hypothesis registers its random generators at the first example, and warns of one to which it
    finds no reference: a search of all objects, of which there are few yet, and none frozen.
    """
    given(strategies.none())(lambda _: None)()
    gc.disable()
    try:
        import_first(session.config)
        return (yield)
    finally:
        gc.enable()


def import_first(config: pytest.Config) -> None:
    """Import another part of the files first in each worker, to read later what others rewrote.

    pytest rewrites assertions in a file that is imported for the first time, which would take each
    worker 20 s.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None or config.args_source is not config.ArgsSource.TESTPATHS:
        return
    files = sorted(Path(__file__).parents[1].rglob("test_*.py"))
    for path in files[int(worker["workerid"][2:]) :: worker["workercount"]]:
        sys.path.insert(0, str(path.parent))
        with suppress(Exception, pytest.skip.Exception):  # raised again as the file is collected
            import_module(path.stem)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    mark_products(items)  # before pytest selects by marker
    yield
    files = [list(found) for _, found in groupby(items, lambda item: item.path)]
    chosen = files[part_of(config.getoption("--part"))]
    items[:] = [item for found in chosen for item in sorted(found, key=opens_device)]


def pytest_collection_finish() -> None:
    """Keep modules and collected tests, which stay to the end, out of garbage collections.

    What could be collected now, of little size, stays as well: a collection takes half a second.
    """
    gc.freeze()


def opens_device(item: pytest.Item) -> bool:
    """Return whether a fixture of the test opens a device, which "auto" would then choose."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return any(params.get(fixture, "cpu") != "cpu" for fixture in DEVICE_FIXTURES)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, cpu in DEVICE_FIXTURES.items():
        if fixture in metafunc.fixturenames:
            params = devices.names(metafunc.config.getoption("--emulate"), cpu=cpu)
            metafunc.parametrize(fixture, params, indirect=True, scope="module")


@pytest.fixture(scope="session", autouse=True)
def declared() -> None:
    """Declare functions that kernels call to numba: tests compile more functions that call them."""
    if not numba.config.DISABLE_JIT:
        declare()


@pytest.fixture(scope="session", autouse=True)
def every_kernel_can_be_kept() -> Iterator[None]:
    """Fail after the last test if one compiled a kernel of the package that cannot be cached."""
    save, found = store.KernelStore.save_overload, []

    def recorded(self: store.KernelStore, signature: Any, result: Any) -> None:
        module, name = result.fndesc.modname, result.fndesc.qualname
        if module.startswith("gputree.") and numba_internals.has_addresses(result.library):
            found.append(f"{module}.{name}")
        save(self, signature, result)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.KernelStore, "save_overload", recorded)
        yield
    assert found == []


@pytest.fixture(scope="session", autouse=True)
def levels_of_little() -> Iterator[None]:
    """Count histograms also of small tables, which growth otherwise builds as one small subtree."""
    with pytest.MonkeyPatch.context() as patch:
        devices.tune(patch, "cpu", level_cells=0, uncoded_cells=0)
        yield


@pytest.fixture(scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the device a body runs on: CPU, emulator or CUDA device in turn."""
    with devices.opened(request.param) as name:
        yield name


@pytest.fixture(scope="module")
def cuda_device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Open a device as `device` does, but not the CPU."""
    with devices.opened(request.param) as name:
        yield name


@pytest.fixture
def emulated_device(cuda_device: str) -> str:
    """Open the emulator, which alone counts operations and memory; skip real devices."""
    if cuda_device == "cuda":
        pytest.skip("the emulator counts what this looks at")
    return cuda_device


@pytest.fixture(scope="module")
def backend(device: str) -> Callable[..., Backend]:
    """``backend(sample, task, n_threads=1)``: a backend of each device in turn."""
    return partial(devices.new_backend, device)


@pytest.fixture(scope="module")
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
        if not getattr(device, "_grows_sparse", False):  # else tables have no codes
            device.encode(max_bins)
        budget = histograms * device.histogram_bytes
        plan = GrowthPlan(
            max_bins, task.exact, max_leaf_nodes, budget, finish_rows,
            interactions=task.interactions,
        )  # fmt: skip
        progress = Progress(len(sample.y), enabled=False)
        with pytest.MonkeyPatch.context() as patch:
            if finish_rows is not None:  # or small tables never see a histogram
                patch.setattr(grower, "FEWEST_ROWS", 0)
            if n_threads > 1:  # nor more than one thread
                m = min(tuning.TUNING.chunk_rows, 50)
                devices.tune(patch, "cpu", chunk_rows=m, scored_cells=1)
            n, d = sample.values.shape
            roots = np.array([n]), np.array([key], np.uint64)
            nodes, _ = grow_roots(device, *roots, d, task.limits, plan, progress)
        return as_grown(nodes, device)

    return run


@pytest.fixture
def chunk_rows(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``chunk_rows(m)``: let threads and blocks take m rows of a node at a time, from here on."""

    def cut(m: int) -> None:
        devices.tune(monkeypatch, "cpu", chunk_rows=m, scored_cells=1)
        devices.tune(monkeypatch, "cuda", chunk_rows=m, partition_rows=m)

    return cut


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


@pytest.fixture(params=[1, 30, None])
def finish_rows(request, monkeypatch):
    """Maximum size of nodes whose subtrees are built at once: none, small, or as growth chooses."""
    if request.param is not None:
        monkeypatch.setattr("gputree.growth.grower.finish_rows", lambda *_: request.param)
        monkeypatch.setattr("gputree.growth.grower.FEWEST_ROWS", 0)
    return request.param


# ------------------------------------------------------------------------------ the command
@pytest.fixture
def gputree(capsys, monkeypatch):
    """Run the command, with bytes for its standard input; its status, output and errors."""

    def run(*arguments: Any, stdin: bytes = b"") -> tuple[Any, str, str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            status: Any = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse leaves this way
            status = stop.code
        output, errors = capsys.readouterr()
        return status, output, errors

    return run


@pytest.fixture
def said(gputree):
    """Run the command, check that it ends well without a warning, give back its output."""

    def run(*arguments: Any, stdin: bytes = b"") -> str:
        status, output, errors = gputree(*arguments, stdin=stdin)
        assert (status, errors) == (0, "")
        return output

    return run


@pytest.fixture
def train(gputree, tmp_path):
    """Train by the command, give back the estimator; with what was said, after `words`."""

    def run(*arguments: Any, words: bool = False, **options: Any) -> Any:
        path = tmp_path / "model"
        status, output, errors = gputree("train", *arguments, "-o", path, **options)
        assert status == 0, errors
        model = load_model(path)
        return (model, output, errors) if words else model

    return run


@pytest.fixture
def write(tmp_path):
    """``write(content, name="t.csv")``: the path of a file of that text, or of these bytes."""

    def to_file(content: str | bytes, name: str = "t.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to_file


@pytest.fixture
def unknown_memory(monkeypatch):
    """Hide the memory of the process: small limits of ``--memory`` give no warnings."""
    monkeypatch.setattr("gputree.cli.training.private_bytes", lambda: None)
    monkeypatch.setattr("gputree.cli.memory.resident_bytes", lambda *given: None)


@pytest.fixture
def fails(gputree):
    """Run the command, check that it fails as promised, give back its message."""

    def run(*arguments: Any, status: int = 1, stdin: bytes = b"") -> str:
        found, output, errors = gputree(*arguments, stdin=stdin)
        assert (found, output) == (status, ""), errors
        assert errors.startswith("gputree: error: ")
        assert errors.count("\n") == 1
        return errors

    return run


@pytest.fixture
def misused(fails):
    """Return `fails` for errors in the command line itself, of status 2."""
    return partial(fails, status=2)
