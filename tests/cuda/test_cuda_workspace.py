"""Memory of levels: exclusive while they refer to it, and released at the end."""

import gc
import importlib
import weakref

import numpy as np
import pytest
import twins
from cuda_emulator import LaunchError, memory
from cuda_traffic import numeric_table
from devices import new_backend, tune
from strategies import make_task
from twins import grown

from gputree.backends.cuda import workspace
from gputree.backends.cuda.workspace import ALIGNMENT, Buffer, Workspace, bytes_of

NUMBERS = [(3, np.int64), ((2, 5), np.uint8)]


def most() -> int:
    return 100_000


def places(arrays):
    return [array.data.ptr for array in arrays]


def test_rooms_are_lent_again_once_nothing_refers_to_them(cuda_device):
    room = Buffer()
    first = room.allocate(NUMBERS, most)
    where = places(first)
    assert [array.shape for array in first] == [(3,), (2, 5)]
    assert where[1] - where[0] == ALIGNMENT
    view = first.pop()[1:]
    del first[:]
    assert not room.is_free
    assert places(room.allocate(NUMBERS, most))[0] != where[0]
    del view
    assert room.is_free
    assert places(room.allocate(NUMBERS, most)) == where


def test_rooms_are_as_large_as_any_level_needs(cuda_device, monkeypatch):
    tune(monkeypatch, "cuda", ample_buffer=0)
    room, sizes = Buffer(), []
    for n in (1, 900, 1900, 30_000, 99_000, 150_000):
        room.allocate([(n, np.uint8)], most)
        sizes.append(room.nbytes)
    # twice as large as required, but not larger than any level is; unless one is after all
    assert sizes == [1024, 1024, 4096, 60_416, 100_000, 150_016]
    tune(monkeypatch, "cuda", ample_buffer=1 << 20)
    room = Buffer()
    room.allocate([(1, np.uint8)], most)
    assert room.nbytes == 100_000
    room.release()
    assert room.nbytes == 0


def test_rooms_give_back_before_they_take_more(emulated_device, monkeypatch):
    tune(monkeypatch, "cuda", ample_buffer=0)
    room = Buffer()
    room.allocate([(4096, np.uint8)], most)
    memory.peak = before = memory.live
    room.allocate([(10_240, np.uint8)], most)
    assert memory.peak - before == 2 * 10_240 - 2 * 4096


def test_what_is_given_back_lasts_while_something_refers_to_it(cuda_device):
    room = Buffer()
    (array,) = room.allocate([(4, np.int64)], most)
    array.fill(7)
    room.release()
    others = room.allocate([(4, np.int64)], most)
    others[0].fill(8)
    assert array.get().tolist() == [7] * 4


def test_what_is_lent_again_holds_anything(cuda_device):
    if not cuda_device.endswith("checked"):
        pytest.skip("reads of undefined memory are reported where accesses are checked")
    room = Buffer()
    room.allocate([(4, np.int64)], most)[0].fill(7)
    with pytest.raises(LaunchError, match="undefined"):
        room.allocate([(4, np.int64)], most)[0].get()


def test_arrays_sent(cuda_device, monkeypatch):
    """Arrays of any types and sizes, one after another, sent to buffers that are free or not."""
    tune(monkeypatch, "cuda", ample_buffer=0)
    room, rng = Buffer(), np.random.default_rng(0)
    held = []
    for n in (3, 1, 0, 200, 2000, 5):
        arrays = [rng.integers(0, 99, n), rng.random((2, n)), rng.random(n) < 0.5]
        sent = room.send(arrays, most)
        for array, there in zip(arrays, sent, strict=True):
            assert there.get().tolist() == array.tolist()
            assert there.dtype == array.dtype
        if n == 2000:
            held = [arrays, sent]
    for array, there in zip(*held, strict=True):
        assert there.get().tolist() == array.tolist()


def test_locked_memory_is_not_written_while_it_is_copied(emulated_device, monkeypatch):
    events = []

    class Event:
        done = True

        def __init__(self, disable_timing: bool) -> None:
            self.log = []
            events.append(self)

        def record(self, stream: object) -> None:
            self.done = False
            self.log.append("sent")

        def synchronize(self) -> None:
            self.done = True
            self.log.append("waited")

    monkeypatch.setattr(importlib.import_module("cupy").cuda, "Event", Event)
    room = Buffer()
    for _ in range(2):
        room.send([np.arange(3)], most)
    room.send([np.arange(10_000)], most)
    del room
    gc.collect()
    assert [event.log for event in events] == [
        ["sent", "waited", "sent", "waited", "sent", "waited"]
    ]


@pytest.mark.parametrize("exact", [True, False])
def test_growth_gives_its_memory_back(emulated_device, exact):
    """Before it finishes nodes, which takes all there is."""
    sample = numeric_table(500, 4, "gini")
    task = make_task("gini", sample, exact=exact, max_depth=5)
    backend = new_backend("cuda", sample, task)
    backend.encode(16)
    most_held = []
    release = Workspace.release

    def released(workspace: Workspace) -> None:
        most_held.append(workspace.nbytes)
        release(workspace)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Workspace, "release", released)
        before = memory.live
        grown(backend, sample, task, max_bins=16, finish_rows=30)
    assert backend.grower.workspace.nbytes == 0
    assert len(most_held) == 1
    widest = 16  # nodes of the last level
    width = backend.grower.table.cells * task.channels
    cells = 2 * bytes_of(((widest, width), np.uint32)) + bytes_of(((widest, width), np.int64))
    assert most_held[0] > cells
    gc.collect()
    assert memory.live == before


def test_batches_of_a_level_take_turns(cuda_device, monkeypatch):
    """Histograms and scores of one are given up before those of the next; plans are kept."""
    tune(monkeypatch, "cuda", ahead_levels=0)
    sample = numeric_table(500, 4, "gini")
    task = make_task("gini", sample, max_depth=6)
    backend = new_backend("cuda", sample, task)
    backend.encode(16)
    others = []
    allocate = workspace.allocate
    monkeypatch.setattr(
        workspace, "allocate", lambda *arrays: others.append(arrays) or allocate(*arrays)
    )
    monkeypatch.setattr(twins, "HISTOGRAM_BYTES", 3 * backend.histogram_bytes)
    grown(backend, sample, task, max_bins=16, finish_rows=1)
    assert others
    width = backend.grower.table.cells * task.channels
    shapes = [shape for arrays in others for shape, _ in arrays if isinstance(shape, tuple)]
    assert not any(shape[1:] == (width,) for shape in shapes)


def test_nodes_of_a_level_at_most(cuda_device):
    sample = numeric_table(500, 4, "gini")
    for limits, most_nodes in (
        ({"max_depth": 1}, 1),
        ({"max_depth": 5}, 16),
        ({"max_depth": 10**9}, 250),
        ({"min_samples_split": 100}, 5),
    ):
        backend = new_backend("cuda", sample, make_task("gini", sample, **limits))
        backend.encode(16)
        assert backend.grower.most_nodes == most_nodes
        grower = backend.grower
        few = grower.memory._replace(histogram_bytes=3 * backend.histogram_bytes + 1)
        assert grower._replace(memory=few).most_nodes == min(most_nodes, 3)


def test_arrays_of_cupy_keep_what_lends_their_memory():
    """A reference of CuPy's arrays that buffers rely on; it needs no device."""
    cupy = pytest.importorskip("cupy")

    class Lease:
        pass

    lease = Lease()
    lent = weakref.ref(lease)
    memory_ = cupy.cuda.UnownedMemory(ALIGNMENT, 2 * ALIGNMENT, lease, 0)
    array = cupy.ndarray((4,), np.int64, memptr=cupy.cuda.MemoryPointer(memory_, 0) + ALIGNMENT)
    del lease, memory_
    view = array[1:]
    del array
    assert lent() is not None
    assert isinstance(cupy.cuda.Event.__dict__["done"], property)
    del view
    assert lent() is None
