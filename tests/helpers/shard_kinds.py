"""Kinds of places of shards: each grows the tree of a model over random shards."""

import gc
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from cuda_emulator import launches, memory
from devices import tune
from sklearn.base import clone

from gputree import CodedTable, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends.base import Sharding
from gputree.backends.sharded import device as device_
from gputree.backends.sharded.rows import Read, join_measures, measure
from gputree.backends.sharded.tasks import Here, Tasks
from gputree.estimators.arguments import monotonic_signs
from gputree.estimators.base import with_weight
from gputree.estimators.growing_parts import Rowsets, grow_parts
from gputree.inputs.tables import Table
from gputree.tree import Tree


class Case:
    """A model and the table that it is fitted to; `nominal` are columns of categories."""

    def __init__(self, model: Any, X: Any, y: Any, weight: Any = None, nominal: Any = ()) -> None:
        self.model, self.X, self.y, self.weight = model.set_params(n_jobs=1), X, y, weight
        self.nominal = np.asarray(nominal, np.int64)

    def plain(self) -> Any:
        """The model with the parameters that depend on the table."""
        model = clone(self.model).set_params(device="cpu")
        return model.set_params(categorical_features=self.nominal)

    def coded(self, max_bins: int | None = None) -> CodedTable:
        """The table, on the host."""
        return CodedTable(self.X, self.nominal, max_bins=self.model.max_bins, device="cpu")

    def expected(self) -> Tree:
        """The tree of the table in one piece."""
        return self.plain().fit(self.X, self.y, self.weight).tree_


def random_bounds(rng: np.random.Generator, n: int) -> np.ndarray:
    """Up to 5 shards, of which some may be empty."""
    return np.concatenate([[0], np.sort(rng.integers(0, n + 1, rng.integers(0, 5))), [n]])


def in_shards(table: CodedTable, bounds: Any, device: str = "cpu") -> CodedTable:
    """The same table, as batches leave one."""
    whole = table._table
    sharding = Sharding(np.asarray(bounds, np.int64))
    fields = whole.stored, whole.columns, whole.names, device, whole.max_bins, sharding
    return CodedTable.of(Table(*fields))


def local(case: Case, seed: int) -> Iterator[Tree]:
    """In this process, as batches are read."""
    rng = np.random.default_rng(seed)
    table = in_shards(case.coded(), random_bounds(rng, len(case.X)))
    for threads in (1, 3):
        yield case.model.set_params(n_jobs=threads).fit(table, case.y, case.weight).tree_


def tasks(case: Case, seed: int, choose: Callable[[], str] = lambda: "cpu") -> Iterator[Tree]:
    """Pure tasks, which run in this process, on the device that each of them chooses."""
    bounds = random_bounds(np.random.default_rng(seed), len(case.X)).tolist()

    def grow(self: Any, table: Table, target: Any, weight: Any, n: int) -> Tree:
        rows = [slice(a, b) for a, b in zip(bounds, bounds[1:], strict=False)]
        table, target, weight = with_weight(table, target, weight)
        values, columns = table.values, table.columns
        reads = [
            Read(values[part], target[part], None if weight is None else weight[part])
            for part in rows
        ]
        found = join_measures([measure(read, columns.nominal) for read in reads])
        rowsets = Rowsets(reads, columns, values.dtype, found)
        signs = monotonic_signs(self, columns)
        options = self._options(n, values.shape[1], "cpu")._replace(signs=signs)
        return grow_parts(Tasks(Here()), rowsets, options, choose).tree

    model = case.plain()
    model.__class__ = type(type(model).__name__, (type(model),), {"_grow_tree": grow})
    if case.weight is None or (np.asarray(case.weight) > 0).all():  # rows keep their places
        yield model.fit(case.X, case.y, case.weight).tree_


def dask(case: Case, seed: int) -> Iterator[Tree]:
    """Partitions of Dask's arrays, of which every task runs twice."""
    yield fit_on_dask(case, np.diff(random_bounds(np.random.default_rng(seed), len(case.X)))).tree_


def fit_on_dask(case: Case, rows: Any, client: Any = None) -> Any:
    """The model, fitted to partitions of so many rows."""
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    pytest.importorskip("dask.dataframe", reason="Dask's data frames are not installed")
    pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
    from eager_client import EagerClient

    from gputree import distributed

    given = [
        None
        if a is None
        else da.from_array(a, (tuple(map(int, rows)), *((n,) for n in a.shape[1:])))
        for a in (case.X, case.y, case.weight)
    ]
    plain = case.plain()
    kinds = {
        DecisionTreeClassifier: distributed.DaskDecisionTreeClassifier,
        DecisionTreeRegressor: distributed.DaskDecisionTreeRegressor,
    }
    client = client or EagerClient(again=True)
    return kinds[type(plain)](client=client, **plain.get_params(deep=False)).fit(*given)


def device(case: Case, seed: int) -> Iterator[Tree]:
    """On the host, counted by a CUDA device that fits some shards; or by either device."""
    table = in_shards(case.coded(), [0, len(case.X)], "cuda")
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        model = clone(case.model)
        least = least_memory(model, table, case.y, case.weight)
        patch.setattr(device_, "_fits", lambda *_: False)
        for share in (1.0, 1.0 + (seed % 7) / 2):
            yield fit_within(model, table, case.y, case.weight, int(share * least))
    rng = np.random.default_rng(seed)
    yield from tasks(case, seed, lambda: str(rng.choice(["cpu", "cuda"])))


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Shards of few rows on a device, and what works on them in little memory."""
    tune(patch, "cuda", least_work=1 << 14, chunk_rows=40, block_bytes=500)


def least_memory(model: Any, table: CodedTable, y: Any, weight: Any = None) -> int:
    """Bytes that the device needs, from the text of an error."""
    with pytest.raises(MemoryError, match=r"parts of [\d,]+ rows needs at least") as error:
        model.set_params(max_device_memory=1).fit(table, y, weight)
    found = re.search(r"at least ([\d,]+) bytes", str(error.value))
    assert found
    return int(found[1].replace(",", ""))


def fit_within(model: Any, table: CodedTable, y: Any, weight: Any, budget: int) -> Tree:
    """Grow in shards, within a budget that is held, on the device."""
    gc.collect()
    memory.peak = before = memory.live
    counted = launches["histogram"] + launches["histogram_of_two"]
    found = model.set_params(max_device_memory=budget).fit(table, y, weight)
    assert memory.peak - before <= budget, (memory.peak - before, budget)
    assert "uploaded_bytes" in found.growth_report_
    assert launches["histogram"] + launches["histogram_of_two"] > counted
    return found.tree_
