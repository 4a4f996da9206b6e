"""Tables on the device, on the host, and beyond the device's memory: one tree, few copies."""

import importlib
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import twins
from cuda_emulator import memory, transfers
from devices import new_backend, tune
from sklearn.exceptions import DataConversionWarning
from strategies import Sample, make_task
from twins import assert_equal, grown, table

from gputree import C45Classifier, CodedTable, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.backends import binning
from gputree.backends import devices as inputs
from gputree.backends.cuda import memory as sharing
from gputree.backends.cuda.kernels import ROWS

FIELDS = ("feature", "threshold", "statistics", "impurity", "gain", "n_rows", "missing_child")


def assert_equal_trees(expected: Any, found: Any) -> None:
    for field in FIELDS:
        assert_equal(getattr(expected, field), getattr(found, field), field)


@pytest.fixture(scope="module")
def xp(cuda_device: str) -> Any:
    """The module cupy, or its stand-in."""
    return importlib.import_module("cupy")


@pytest.fixture
def to_host(monkeypatch: pytest.MonkeyPatch, emulated_device: str) -> Counter[int]:
    """Sizes in bytes of the copies to the host, counted by the emulator."""
    sizes: Counter[int] = Counter()
    array = importlib.import_module("cupy").ndarray
    get = array.get

    def counted(self: Any) -> np.ndarray:
        sizes[self.nbytes] += 1
        return get(self)

    monkeypatch.setattr(array, "get", counted)
    return sizes


# ----------------------------------------------------------------- recognition
class Shared:
    """Device memory of another library, by the interface of CUDA arrays."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.shape = array.shape

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.array.__cuda_array_interface__


class Lent:
    """Device memory of another library, by DLPack."""

    def __init__(self, array: Any, place: int = 2) -> None:
        self.array = array
        self.shape = array.shape
        self.place = place

    def __dlpack__(self, **options: Any) -> Any:
        return getattr(self.array, "host", self.array).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.place, 0)


class Frame:
    """A data frame as cuDF has it."""

    ndim = 2
    iloc = None

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = list(columns)
        self.parts = list(columns.values())
        self.dtypes = [part.dtype for part in self.parts]
        self.shape = (len(self.parts[0]), len(columns))

    def __dataframe__(self) -> Any:
        return SimpleNamespace(column_names=lambda: self.columns)

    def to_cupy(self, dtype: Any, na_value: Any) -> Any:
        assert np.isnan(na_value)
        xp = importlib.import_module("cupy")
        parts = [part.astype(dtype).reshape(-1, 1) for part in self.parts]
        return xp.concatenate(parts, axis=1)


Frame.__module__ = "cudf.core.dataframe"


def test_places_of_data(xp):
    array = xp.zeros((3, 2))
    assert all(map(inputs.on_device, (array, Shared(array), Lent(array), Lent(array, 13))))
    assert inputs.on_device(Frame({"a": array}))
    for host in (np.zeros(3), [1.0], (2.0,), None, 3, "text", Lent(np.zeros(3), 1), object()):
        assert not inputs.on_device(host)
        assert inputs.to_host(host) is host


@pytest.mark.parametrize(
    ("dtype", "greatest", "expected"),
    [
        ("f4", 1, "f4"),
        ("f8", 1, "f8"),
        ("f2", 1, "f4"),
        ("i2", 2**15 - 1, "f4"),
        ("i8", 2**24, "f4"),
        ("i8", -(2**24) - 1, "f8"),
        ("u8", 2**64 - 1, "f8"),
    ],
)
def test_types_of_numbers(xp, dtype, greatest, expected):
    array = xp.asarray(np.array([[1, greatest]], dtype))
    assert inputs.device_matrix(array).dtype == expected


def test_a_matrix_is_not_copied_without_need(xp):
    array = xp.zeros((3, 2), dtype=np.float32)
    places = [a.__cuda_array_interface__["data"] for a in (array, inputs.device_matrix(array))]
    assert places[0] == places[1]
    assert inputs.device_matrix(xp.zeros((3, 2), dtype=np.bool_)) is None


# ------------------------------------------------------------------ estimators
KINDS = {
    "cupy": lambda array: array,
    "interface": Shared,
    "dlpack": Lent,
    "cudf": lambda array: Frame({f"c{f}": array[:, f] for f in range(array.shape[1])}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("choice", ["cuda", "auto"])
def test_tables_on_the_device_stay_there(xp, to_host, kind, choice):
    sample = table("gini", False, n=400, dtype=np.float32)
    expected = DecisionTreeClassifier(device="cpu", max_bins=16).fit(sample.values, sample.y)
    X = KINDS[kind](xp.asarray(sample.values))
    model = DecisionTreeClassifier(device=choice, max_bins=16)
    to_host.clear()
    model.fit(X, xp.asarray(sample.y))
    assert_equal_trees(expected.tree_, model.tree_)
    assert sample.values.nbytes not in to_host
    assert model.n_features_in_ == 4


def test_weights_and_pruning_with_a_table_on_the_device(xp):
    sample = table("gini", True, n=300)
    weight = np.where(np.arange(300) % 5 == 0, 0.0, sample.weight)
    models = [
        DecisionTreeClassifier(device=d, pruning="reduced_error", random_state=0)
        for d in ("cpu", "cuda")
    ]
    models[0].fit(sample.values, sample.y, weight)
    models[1].fit(*map(xp.asarray, (sample.values, sample.y, weight)))
    assert_equal_trees(models[0].tree_, models[1].tree_)
    X = xp.asarray(sample.values)
    assert_equal(models[0].predict(sample.values), models[1].predict(X))


def test_regression_on_the_device(xp):
    sample = table("squared_error", False, n=300)
    expected = DecisionTreeRegressor(device="cpu", max_depth=5).fit(sample.values, sample.y)
    found = DecisionTreeRegressor(device="cuda", max_depth=5)
    assert_equal_trees(
        expected.tree_, found.fit(xp.asarray(sample.values), xp.asarray(sample.y)).tree_
    )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("near", [True, False])
def test_labels_are_counted_on_the_device(xp, to_host, dtype, near):
    sample = table("gini", False, n=250)
    low = np.iinfo(dtype).min if dtype != np.int64 else -5
    y = (sample.y.astype(np.int64) * 100).astype(dtype) + np.array(low, dtype)
    expected = DecisionTreeClassifier(device="cpu").fit(sample.values, y)
    to_host.clear()
    found = DecisionTreeClassifier(device="cuda")
    found.fit(xp.asarray(sample.values), y if near else xp.asarray(y))
    assert_equal_trees(expected.tree_, found.tree_)
    assert_equal(expected.classes_, found.classes_)
    assert found.classes_.dtype == dtype
    assert not {y.nbytes, 4 * y.size, 8 * y.size} & set(to_host)


@pytest.mark.parametrize("kind", ["wide", "float", "column", "weights", "pruning", "part"])
def test_other_labels_come_to_the_host(xp, kind):
    sample = table("gini", False, n=120)
    X, y, weight = xp.asarray(sample.values), sample.y.astype(np.int64), None
    model = DecisionTreeClassifier(device="cuda")
    if kind == "wide":
        y = y * 2**40
    if kind == "float":
        y = y.astype(np.float32)
    if kind == "weights":
        weight = np.ones(120)
    if kind == "pruning":
        model.set_params(pruning="penalized_loss")
    expected = type(model)(device="cpu", pruning=model.pruning).fit(sample.values, y, weight)
    labels = xp.asarray(y)
    if kind == "part":
        X, labels = (
            CodedTable(X, device="cuda").take(np.arange(119, -1, -1)),
            xp.asarray(y[::-1].copy()),
        )
    if kind == "column":
        with pytest.warns(DataConversionWarning):
            model.fit(X, xp.asarray(y[:, None]))
    else:
        model.fit(X, labels, weight)
    assert_equal_trees(expected.tree_, model.tree_)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[120, 119\]"):
        model.fit(xp.asarray(sample.values), xp.asarray(y[:119]))


def test_tables_on_the_device_come_to_the_cpu_where_they_must(xp):
    sample = table("gini", False, n=120)
    X, y = xp.asarray(sample.values), xp.asarray(sample.y)
    for model in (DecisionTreeClassifier(device="cpu"), C45Classifier(device="cpu")):
        expected = type(model)(device="cpu").fit(sample.values, sample.y)
        assert_equal_trees(expected.tree_, model.fit(X, y).tree_)


def test_what_is_wrong_with_a_table_on_the_device_is_said(xp):
    y = np.array([0, 1, 0])
    values = np.zeros((3, 2), np.float32)
    values[1, 1] = np.inf
    model = DecisionTreeClassifier(device="cuda")
    with pytest.raises(ValueError, match=r"infinity .* for dtype\('float32'\), in column 1"):
        model.fit(xp.asarray(values), y)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        model.fit(xp.zeros(3), y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(xp.zeros((0, 2)), y)
    model.fit(xp.zeros((3, 2)), y)
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(xp.zeros((3, 3)))


# ------------------------------------------------------------------- host tables
def small_memory(monkeypatch, *, work: int = 1 << 14, block: int = 1 << 10) -> None:
    tune(monkeypatch, "cuda", least_work=work, ample_work=work, block_bytes=block)


def budget(sample: Sample, task: Any, work: int) -> int:
    """Device memory for what growth cannot do without, and `work` bytes."""
    stride = -(-sample.values.shape[1] // 4) * 4
    row_bytes = stride + sharing.ENTRY_BYTES + sharing.statistics_bytes(task)
    return len(sample.y) * row_bytes + work


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("fits", [True, False])
def test_tables_come_in_blocks(cuda_device, monkeypatch, exact, fits):
    """In two pinned buffers in turn; what does not fit is read from the host."""
    small_memory(monkeypatch)
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(binning, "FEWEST_DISTINCT", 30)
    sample = table("gini", False, n=700, d=6, dtype=np.float64)
    work = 1 << 20 if fits else 1 << 15
    task = make_task("gini", sample, exact=exact)
    limited = make_task("gini", sample, exact=exact)
    object.__setattr__(limited, "max_device_memory", budget(sample, task, work))
    expected = grown(new_backend("cpu", sample, task), sample, task, max_bins=8)
    backend = new_backend("cuda", sample, limited, 2)
    assert backend.grower.memory.keeps_values is fits
    found = grown(backend, sample, limited, max_bins=8)
    assert (backend.table.values is None) is not exact
    for name, field in expected.items():
        assert_equal(field, found[name], name)


def test_host_memory_is_released(emulated_device, monkeypatch):
    small_memory(monkeypatch)
    runtime = importlib.import_module("cupy").cuda.runtime
    sample = table("gini", False, n=700, d=6)
    model = DecisionTreeClassifier(device="cuda", max_device_memory=50_000)
    model.fit(sample.values, sample.y)
    assert runtime.registry.ranges == {}


@pytest.fixture
def cupy(emulated_device, monkeypatch):
    """The stand-in for CuPy, on a device without memory for values."""
    small_memory(monkeypatch)
    return importlib.import_module("cupy")


NO_ROOM = 50_000  # for the values of 700 x 6 numbers


@pytest.mark.parametrize("locks_read_only", [0, 1])
def test_files_mapped_to_be_read(cupy, monkeypatch, tmp_path, locks_read_only):
    """Their pages are locked by devices that can, else a copy of them."""
    attributes = cupy.cuda.Device().attributes | {"HostRegisterReadOnlySupported": locks_read_only}
    monkeypatch.setattr(cupy.cuda.Device, "attributes", attributes)
    sample = table("gini", False, n=700, d=6)
    np.save(tmp_path / "X.npy", sample.values)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    locked = []
    register = cupy.cuda.runtime.hostRegister
    monkeypatch.setattr(
        cupy.cuda.runtime, "hostRegister", lambda *a: (register(*a), locked.append(a))
    )
    expected = DecisionTreeClassifier(device="cpu").fit(sample.values, sample.y)
    found = DecisionTreeClassifier(device="cuda", max_device_memory=NO_ROOM).fit(mapped, sample.y)
    assert_equal_trees(expected.tree_, found.tree_)
    assert locked == locks_read_only * [(mapped.ctypes.data, mapped.nbytes, 1 | 2 | 8)]
    assert cupy.cuda.runtime.registry.ranges == {}


@pytest.mark.parametrize("reason", ["device", "locked already"])
def test_memory_that_cannot_be_mapped_is_copied(cupy, monkeypatch, reason):
    sample = table("gini", False, n=700, d=6)
    if reason == "device":
        monkeypatch.setattr(cupy.cuda.Device, "attributes", {"MultiProcessorCount": 2})
    else:
        cupy.cuda.runtime.hostRegister(sample.values.ctypes.data, 8, 0)
    expected = DecisionTreeClassifier(device="cpu").fit(sample.values, sample.y)
    model = DecisionTreeClassifier(device="cuda", max_device_memory=NO_ROOM)
    assert_equal_trees(expected.tree_, model.fit(sample.values, sample.y).tree_)
    cupy.cuda.runtime.registry.ranges.clear()


def test_values_that_can_be_read_nowhere_are_an_error(cupy, monkeypatch):
    def refuse(size, flags):
        raise cupy.cuda.runtime.CUDARuntimeError(2)

    monkeypatch.setattr(cupy.cuda.Device, "attributes", {"MultiProcessorCount": 2})
    monkeypatch.setattr(cupy.cuda, "PinnedMemory", refuse)
    sample = table("gini", False, n=700, d=6)
    model = DecisionTreeClassifier(device="cuda", max_device_memory=NO_ROOM)
    with pytest.raises(
        MemoryError,
        match=r"33,600 bytes, do not fit .* \(cudaErrorNotSupported.*\), and the host cannot lock "
        r"memory for a copy \(cudaErrorMemoryAllocation.*\)\. Use splitter='binned'",
    ):
        model.fit(sample.values, sample.y)
    model.set_params(splitter="binned").fit(sample.values, sample.y)


def test_a_budget_too_small_is_an_error(cuda_device):
    sample = table("gini", False)
    model = DecisionTreeClassifier(device="cuda", max_device_memory=1000)
    with pytest.raises(MemoryError, match=r"at least .* max_device_memory allows 1,000"):
        model.fit(sample.values, sample.y)


@pytest.mark.parametrize("finish_rows", [1, 30])
def test_levels_keep_to_the_budget(emulated_device, monkeypatch, finish_rows):
    """Histograms, gathered and sorted rows: device arrays in use at the same time."""
    small_memory(monkeypatch)
    sample = table("gini", False, n=3000, d=5, dtype=np.float32)
    task = make_task("gini", sample)
    peaks, budgets = [], []
    for work in (1 << 23, 1 << 19):
        budgets.append(budget(sample, task, work))
        object.__setattr__(task, "max_device_memory", budgets[-1])
        memory.peak = before = memory.live
        backend = new_backend("cuda", sample, task)
        monkeypatch.setattr(twins, "HISTOGRAM_BYTES", backend.most_histogram_bytes)
        grown(backend, sample, task, finish_rows=finish_rows)
        peaks.append(memory.peak - before)
    assert peaks[1] <= budgets[1] < peaks[0] <= budgets[0]


def test_categories_keep_to_the_budget(emulated_device, monkeypatch):
    """The search of subsets uses no more memory than gathering rows later does."""
    small_memory(monkeypatch)
    rng = np.random.default_rng(0)
    X = np.append(rng.random((10_000, 1)), rng.integers(0, 12, (10_000, 24)), axis=1)
    nominal = [False, *24 * [True]]
    model = DecisionTreeClassifier(max_depth=8, categorical_features=nominal, device="cuda")
    memory.peak = before = memory.live
    model.set_params(max_device_memory=10_000_000).fit(X, X[:, 1] + X[:, 2] > 11)
    assert memory.peak - before <= 10_000_000


# ------------------------------------------------------------------ large tables
def test_tables_of_more_than_2_31_values(emulated_device):
    """The last rows of a table that is too long for 32-bit places; the others are not touched."""
    sample = table("gini", True, n=200, d=6, dtype=np.float32)
    task = make_task("gini", sample)
    near, cuda = (new_backend("cuda", sample, task) for _ in range(2))
    near.encode(8)
    cuda.encode(8)
    n = 2**31 // 6 + 1000
    far = lambda array: _at_the_end(array, n)  # noqa: E731
    inner = cuda.grower.table
    codes = far(inner.codes)
    moved = inner.with_codes(codes)._replace(values=far(inner.values))
    rows = cuda.grower.rows
    rows = rows._replace(target=far(rows.target), weight=far(rows.weight))
    entries = _at_the_end(cuda.entries, n)
    entries.host[-200:] += n - 200
    cuda.grower = cuda.grower._replace(
        table=moved,
        rows=rows,
        statistics=ROWS.pack(*rows),
        entries=entries,
        sided=far(cuda.grower.sided),
    )
    results = []
    for backend, shift in ((near, 0), (cuda, n - 200)):
        begin, end = np.array([shift]), np.array([shift + 200])
        slots, keys = np.zeros(1, np.int64), np.zeros(1, np.uint64)
        cells = backend.new_histograms(1)
        backend.histogram(begin, end, cells, slots)
        scores = backend.score(cells, slots)
        splits = backend.refine(begin, end, cells, slots, scores, keys)
        middle, threshold = backend.partition(begin, end, splits)
        subtrees = backend.finish(begin, middle, np.zeros(1, np.int64), keys)
        sums = backend.node_statistics(begin, middle)
        last = backend.entries[-200:].get() - shift
        nodes = (subtrees.feature, subtrees.threshold, subtrees.begin - shift)
        results.append((*splits, middle - shift, threshold, *nodes, sums, last))
    for expected, found in zip(*results, strict=True):
        assert_equal(expected, found)


def _at_the_end(array: Any, n: int) -> Any:
    """Rows of `array` as the last of n, the others zero."""
    whole = np.zeros((n, *array.shape[1:]), array.dtype)
    whole[n - len(array) :] = array.host
    return type(array)(whole)


# ------------------------------------------------------------------------ device
def test_copies_to_the_device_are_blocks(emulated_device, monkeypatch):
    """A table of 40 blocks takes 40 copies, not one in pageable memory."""
    sample = table("gini", False, n=640, d=4, dtype=np.float32)
    tune(monkeypatch, "cuda", block_bytes=256)
    backend = new_backend("cuda", sample, make_task("gini", sample))
    before = transfers["to device"]
    resident = backend.data.resident(True, 1)
    assert transfers["to device"] - before == 40
    assert_equal(sample.values, resident.get().view(np.float32))


def test_places_on_the_device(xp):
    array = xp.asarray(np.arange(6.0))
    assert_equal(np.array([5.0, 1.0]), inputs.take_rows(array, np.array([5, 1])))
