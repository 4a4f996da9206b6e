"""Memory that levels are lent: theirs alone while they refer to it, and given back at the end."""

from __future__ import annotations

import gc
import importlib

import numpy as np
import pytest
from cuda_emulator import LaunchError, memory
from cuda_traffic import numeric_table
from devices import new_backend, tune
from strategies import make_task
from twins import grown

from gputree.backends.cuda.workspace import ALIGNMENT, Room, SendingRoom, Workspace, bytes_of

NUMBERS = [(3, np.int64), ((2, 5), np.uint8)]


def most() -> int:
    return 100_000


def places(arrays):
    return [array.data.ptr for array in arrays]


def test_rooms_are_lent_again_once_nothing_refers_to_them(cuda_device):
    room = Room()
    first = room.carve(NUMBERS, most)
    where = places(first)
    assert [array.shape for array in first] == [(3,), (2, 5)]
    assert where[1] - where[0] == ALIGNMENT
    view = first.pop()[1:]
    del first[:]
    assert not room.is_free
    assert places(room.carve(NUMBERS, most))[0] != where[0]
    del view
    assert room.is_free
    assert places(room.carve(NUMBERS, most)) == where


def test_rooms_are_as_large_as_any_level_needs(cuda_device, monkeypatch):
    tune(monkeypatch, "cuda", ample_room=0)
    room, sizes = Room(), []
    for n in (1, 900, 1900, 30_000, 99_000, 150_000):
        room.carve([(n, np.uint8)], most)
        sizes.append(room.nbytes)
    # twice as large as asked, but not larger than any level is; unless one is after all
    assert sizes == [1024, 1024, 4096, 60_416, 100_000, 150_016]
    tune(monkeypatch, "cuda", ample_room=1 << 20)
    room = Room()
    room.carve([(1, np.uint8)], most)
    assert room.nbytes == 100_000
    room.release()
    assert room.nbytes == 0


def test_what_is_given_back_lasts_while_something_refers_to_it(cuda_device):
    room = Room()
    (array,) = room.carve([(4, np.int64)], most)
    array.fill(7)
    room.release()
    others = room.carve([(4, np.int64)], most)
    others[0].fill(8)
    assert array.get().tolist() == [7] * 4


def test_what_is_lent_again_holds_anything(cuda_device):
    if not cuda_device.endswith("checked"):
        pytest.skip("reads of undefined memory are reported where accesses are checked")
    room = Room()
    room.carve([(4, np.int64)], most)[0].fill(7)
    with pytest.raises(LaunchError, match="undefined"):
        room.carve([(4, np.int64)], most)[0].get()


def test_arrays_sent(cuda_device):
    """Of any types and sizes, one after another, to rooms that are free or not."""
    room, rng = SendingRoom(), np.random.default_rng(0)
    held = []
    for n in (3, 1, 0, 2000, 5):
        arrays = [rng.integers(0, 99, n), rng.random((2, n)), rng.random(n) < 0.5]
        sent = room.send(arrays, most)
        for own, there in zip(arrays, sent, strict=True):
            assert there.get().tolist() == own.tolist()
            assert there.dtype == own.dtype
        if n == 2000:
            held = [arrays, sent]
    for own, there in zip(*held, strict=True):
        assert there.get().tolist() == own.tolist()


def test_locked_memory_is_not_written_while_it_is_copied(cuda_device, monkeypatch):
    if cuda_device == "cuda":
        pytest.skip("nothing runs ahead on the emulator: this one pretends")
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
    room = SendingRoom()
    for _ in range(2):
        room.send([np.arange(3)], most)
    room.send([np.arange(10_000)], most)
    del room
    gc.collect()
    assert [event.log for event in events] == [
        ["sent", "waited", "sent", "waited", "sent", "waited"]
    ]


@pytest.mark.parametrize("exact", [True, False])
def test_growth_gives_its_memory_back(cuda_device, exact):
    """Before it finishes nodes, which takes all there is."""
    if cuda_device == "cuda":
        pytest.skip("the emulator counts what is alive")
    sample = numeric_table(500, 4, "gini")
    task = make_task("gini", sample, exact=exact, max_depth=5)
    backend = new_backend("cuda", sample, task)
    backend.encode(16)
    most_held = []
    release = Workspace.release

    def released(own: Workspace) -> None:
        most_held.append(own.nbytes)
        release(own)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Workspace, "release", released)
        before = memory.live
        grown(backend, sample, task, max_bins=16, finish_rows=30)
    assert backend.grower.workspace.nbytes == 0
    assert len(most_held) == 1
    widest = 16  # nodes of the last level
    width = backend.grower.cells * task.channels
    cells = 2 * bytes_of(((widest, width), np.uint32)) + bytes_of(((widest, width), np.int64))
    assert most_held[0] > cells
    gc.collect()
    assert memory.live == before
