"""Trees over partitions are the same whatever workers count on: CPUs, CUDA devices, or both."""

import pytest
from devices import needs_emulator

pytest.importorskip("dask.dataframe", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")

from emulated_worker import EmulatedDevice, launched, launched_on  # noqa: E402
from test_distributed import noisy_table, on_dask, spread  # noqa: E402

from gputree import DecisionTreeClassifier  # noqa: E402
from gputree.backends.cuda.memory import Copies  # noqa: E402
from gputree.backends.sharded import cuda_shard  # noqa: E402

# Small tables of many categories: one in every row, which is warned of and does not matter here.
VISIBLE, HOST = "CUDA_VISIBLE_DEVICES", "127.0.0.1"

pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")


def test_nothing_stays_on_the_device(cuda_device, monkeypatch):
    monkeypatch.setattr(cuda_shard, "COPIES", Copies())
    X, y = noisy_table()
    model = DecisionTreeClassifier(max_depth=2, max_bins=16, n_jobs=1, device="cuda")
    found = on_dask(model).fit(*spread((100, 150), X[:250], y[:250]))
    assert found.tree_.equals(model.set_params(device="cpu").fit(X[:250], y[:250]).tree_)
    assert cuda_shard.COPIES.nbytes == 0


# ----------------------------------------------------------------- a cluster of processes
@pytest.mark.parametrize("mark", [pytest.param(0, marks=needs_emulator)])
def test_a_cluster_of_both_kinds(mark, monkeypatch):
    X, y = noisy_table()
    model = DecisionTreeClassifier(max_depth=5, max_bins=32, n_jobs=1)
    expected = model.fit(X, y).tree_
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(EmulatedDevice([0]))
        partitions = spread((400,) * 7 + (200,), X, y)
        assert on_dask(model, client).fit(*partitions).tree_.equals(expected)
        few, many = sorted(client.run(launched).values())
        assert few == 0 < many
        with pytest.raises((RuntimeError, ImportError), match=r"A worker on .* has no device"):
            on_dask(model.set_params(device="cuda"), client).fit(*partitions)


@pytest.mark.parametrize("mark", [pytest.param(0, marks=needs_emulator)])
def test_a_device_for_each_worker(mark):
    """Each sees all of them, its own first, as workers that `dask cuda worker` starts do."""
    X, y = noisy_table()
    X, y = X[:600], y[:600]
    tree = DecisionTreeClassifier(max_depth=3, max_bins=16, n_jobs=1)
    options = {"host": HOST, "nthreads": 1}
    workers = {
        number: {"cls": distributed.Nanny, "options": {**options, "env": {VISIBLE: cards}}}
        for number, cards in enumerate(["0,1", "1,0"])
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": ":0", "host": HOST}}
    with (
        distributed.SpecCluster(workers, scheduler, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.register_plugin(EmulatedDevice([0, 1]))
        partitions = spread((200,) * 3, X, y)
        found = on_dask(tree.set_params(device="cuda"), client).fit(*partitions)
        assert found.tree_.equals(tree.set_params(device="cpu").fit(X, y).tree_)
        used = client.run(launched_on).values()
        assert sorted(used) == [("0000:00:00.0",), ("0000:01:00.0",)]
        with pytest.raises(ValueError, match=r"takes no number of a device: .*device='cuda:1'"):
            on_dask(tree.set_params(device="cuda:1"), client).fit(*partitions)
