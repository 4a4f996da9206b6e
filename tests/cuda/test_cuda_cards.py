"""Small cards: few multiprocessors and little shared memory, as settings of the emulator."""

import numpy as np
import pytest
from cuda_emulator import Card, LaunchError, emulated_cuda, library
from devices import needs_emulator, of_source
from mixed_tables import MixedTable
from sklearn.base import clone
from strategies import make_task
from tunings import finishing
from twin_lists import grow_both_ways
from twins import assert_same_tree, table

from gputree import C45Classifier, RandomForestClassifier
from gputree.backends.cuda import kernels

pytestmark = needs_emulator

KB = 1024
# Compute capability 8.6 and 8.9, then 7.5, then what every device has.
CARDS = [Card(20, 99 * KB), Card(14, 64 * KB), Card(1, 48 * KB)]


@pytest.fixture(params=CARDS, ids=lambda card: f"{card.shared_bytes // KB} KB")
def card(request):
    with emulated_cuda(card=request.param) as cupy:
        assert cupy.cuda.Device().attributes["MultiProcessorCount"] == request.param.multiprocessors
        yield request.param


@pytest.mark.parametrize(
    ("criterion", "finish_rows", "limits"),
    [("gini", 1, {"max_depth": 4}), ("squared_error", None, {"max_features": 2})],
)
def test_trees(card, criterion, finish_rows, limits):
    """Levels, and subtrees in shared memory."""
    sample = table(criterion, weighted=False, n=120, d=4, seed=3)
    task = make_task(criterion, sample, **limits)
    assert_same_tree(sample, task, finish_rows=finish_rows, max_bins=8)


def test_entropy_trees(card):
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=100).round(1), rng.integers(0, 5, 100)], axis=1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] > 0) + (np.nan_to_num(X[:, 1]) == 2)
    data = MixedTable(X, np.array([False, True]), y.astype(int), None)
    model = C45Classifier(categorical_features=data.nominal, pruning=None)
    grow_both_ways(model, data.X, data.y, data.weight)


def test_forests(card):
    sample = table("gini", False, n=80, d=4, seed=4)
    forest = RandomForestClassifier(n_estimators=2, random_state=0, n_jobs=1)
    with finishing(30):
        expected, found = (
            clone(forest).set_params(device=device).fit(sample.values, sample.y)
            for device in ("cpu", "cuda")
        )
    for one, other in zip(expected.estimators_, found.estimators_, strict=True):
        assert one.tree_.equals(other.tree_)


@of_source
def test_a_block_has_what_its_card_grants(card):
    """Up to 48 KB by default, more where the kernel requests it, never more than the card has."""
    code = 'extern "C" __global__ void k(int* o) { __shared__ int s[256]; s[0] = 1; o[0] = s[0]; }'
    cupy = kernels.cupy()
    kernel, o = cupy.RawModule(code=code).get_function("k"), cupy.zeros(1, dtype=np.int32)
    most = library.SHARED_BYTES - KB
    kernel((1,), (1,), (o,), shared_mem=most)
    with pytest.raises(LaunchError, match="bytes of dynamic shared memory beside 1024"):
        kernel((1,), (1,), (o,), shared_mem=most + 1)
    kernel.max_dynamic_shared_size_bytes = card.shared_bytes - KB
    kernel((1,), (1,), (o,), shared_mem=card.shared_bytes - KB)
    with pytest.raises(LaunchError, match="the device grants no"):
        kernel.max_dynamic_shared_size_bytes = card.shared_bytes
