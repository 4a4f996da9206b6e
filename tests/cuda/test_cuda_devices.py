"""Several devices: the one that a table lies on works, whichever is current."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cuda_emulator import Kernel, emulated_cuda
from devices import needs_emulator, new_backend
from strategies import make_task
from test_cuda_inputs import KINDS, assert_equal_trees
from twins import assert_equal, table

from gputree import DecisionTreeClassifier
from gputree.backends import devices as inputs

pytestmark = needs_emulator

LIMITS = {
    "finished": {},
    "refined": {"max_leaf_nodes": 9},
    "binned": {"splitter": "binned"},
    "drawn": {"max_features": 2, "random_state": 0},
    "held out": {"pruning": "reduced_error", "random_state": 0},
}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", ["cupy", "interface", "dlpack"])
def test_the_device_of_a_table_works(kind, limits):
    """Another device is current: arrays of two devices are never used together."""
    sample = table("gini", True, n=300, dtype=np.float32)
    expected, found = (
        DecisionTreeClassifier(device=device, max_bins=16, **LIMITS[limits])
        for device in ("cpu", "cuda")
    )
    with emulated_cuda(devices=2) as cupy:
        with cupy.cuda.Device(1):
            X = KINDS[kind](cupy.asarray(sample.values))
            y = cupy.asarray(sample.y)
        found.fit(X, y, cupy.asarray(sample.weight))
        assert cupy.cuda.Device().id == 0
        assert_equal(
            expected.fit(sample.values, sample.y, sample.weight).predict(sample.values),
            found.predict(X),
        )
    assert_equal_trees(expected.tree_, found.tree_)


def test_tables_of_the_host_go_to_the_current_device():
    sample = table("gini", False, n=200)
    task = make_task("gini", sample)
    with emulated_cuda(devices=2) as cupy:
        with cupy.cuda.Device(1):
            backend = new_backend("cuda", sample, task)
        backend.encode(16)  # entered again by the backend
        assert backend.table.codes.device.id == backend.entries.device.id == 1


def test_integers_of_another_device_are_looked_at_there():
    with emulated_cuda(devices=2) as cupy:
        with cupy.cuda.Device(1):
            X = cupy.asarray(np.array([[1, 2], [2**30, 3]]))
        matrix = inputs.device_matrix(X)
        assert matrix.dtype == np.float64
        assert matrix.device.id == 1


def test_a_growth_keeps_the_stream_that_it_began_with(monkeypatch):
    """In threads, where the null stream is current, and where another one has become current.

    Only what comes from the host is coded in streams that copy it.
    """
    sample = table("gini", True, n=200)
    seen = []
    launch = Kernel.__call__

    def counted(self, *args, **kwargs):
        seen.append((self.name, cupy.cuda.get_current_stream()))
        launch(self, *args, **kwargs)

    with emulated_cuda(devices=2) as cupy, ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(Kernel, "__call__", counted)
        with cupy.cuda.Device(1):
            first, other = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
            with first:
                backend = new_backend("cuda", sample, make_task("gini", sample))
            backend.encode(16)
            pool.submit(backend.new_histograms, 1).result()
            with other:
                begin, end = np.array([0]), np.array([200])
                backend.node_statistics(begin, end)
            pool.submit(backend.node_statistics, begin, end).result()
            assert cupy.cuda.get_current_stream() == cupy.cuda.Stream.null
        elsewhere = {name for name, stream in seen if stream is not first}
        assert {name for name, _ in seen} - elsewhere == {
            "column_keys",
            "fit_bins",
            "node_statistics",
        }
        assert elsewhere == {"encode_values"}
