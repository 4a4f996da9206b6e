"""Refinement by sub-bins: whatever is counted or subdivided, the tree is the same."""

import numpy as np
import pytest
from devices import new_table
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact_tree
from strategies import Sample, make_task, problems, random_problems, random_sample
from tunings import DEVICE, HOST, tuned
from twins import assert_equal, grown

from gputree.backends.cpu.backend import CpuBackend
from gputree.backends.cpu.table import CpuTable, FineCodes
from gputree.backends.cpu.tuning import TUNING, CpuTuning
from gputree.backends.cuda import tuning as cuda_tuning

# Of each kind of formula one: every kind is compiled twice over.
KINDS = (
    ("gini", False),
    ("wide_gini", True),
    ("entropy", False),
    ("squared_error", True),
    ("poisson", False),
)


@pytest.fixture(scope="module")
def tunings(device):
    return HOST if device == "cpu" else DEVICE


@pytest.fixture(scope="module")
def assert_same_trees(grow_tree, tunings):
    """Check that a task's tree is the one expected, however nodes are refined."""

    def check(sample, task, expected, max_bins):
        for name, tuning in tunings.items():
            with tuned(tuning):
                tree = grow_tree(sample, task, n_threads=2, finish_rows=1, max_bins=max_bins)
            assert tree == expected, name

    return check


@given(problems(kinds=KINDS), st.integers(2, 4))
def test_tiny_tables_of_ties(assert_same_trees, problem, max_bins):
    criterion, sample = problem
    task = make_task(criterion, sample)
    expected = exact_tree(sample.values, task)
    assert_same_trees(sample, task, expected, max_bins)


@given(
    random_problems(80, KINDS),
    st.integers(2, 6),
    st.integers(1, 8),
    st.integers(0, 9),
    st.sampled_from([0.0, 1e-3, 0.05]),
    st.integers(1, 3),
    st.booleans(),
)
def test_limits(assert_same_trees, problem, max_bins, leaf, weight, decrease, max_features, ties):
    criterion, sample = problem
    task = make_task(
        criterion,
        sample,
        min_samples_leaf=leaf,
        min_weight_leaf=weight,
        min_decrease=decrease * len(sample.y),
        max_features=min(max_features, sample.values.shape[1]),
        random_ties=ties,
    )
    expected = exact_tree(sample.values, task)
    assert_same_trees(sample, task, expected, max_bins)


def test_fine_codes_are_shared_by_growths_and_not_needed(monkeypatch):
    """Fine codes live as long as growths that use them; without memory there are none."""
    sample = random_sample(5, 200, 3, 2, False)
    task = make_task("gini", sample)
    table = new_table("cpu", sample)
    with tuned(HOST["always"]):
        backends = [CpuBackend(table, task, 1) for _ in range(2)]
        trees = [grown(backend, sample, task, finish_rows=20, max_bins=4) for backend in backends]
        assert table.fine_codes(4).known.sum() == 0  # of no growth: they are gone
        kept = table.fine_codes(4)
        trees.append(grown(CpuBackend(table, task, 1), sample, task, finish_rows=20, max_bins=4))
        assert kept.known.any()
        trees.append(grown(CpuBackend(table, task, 1), sample, task, finish_rows=20, max_bins=4))
        none = FineCodes((0, 3))
        monkeypatch.setattr(CpuTable, "fine_codes", lambda *_: none)
        trees.append(grown(CpuBackend(table, task, 1), sample, task, finish_rows=20, max_bins=4))
        assert not none.known.any()
    for tree in trees[1:]:
        for name, field in trees[0].items():
            assert_equal(field, tree[name], name)


# ------------------------------------------------------------ crowded values
def _neighbours(rng, n):
    return 1.0 + rng.integers(0, 40, n) * 2.0**-52


CROWDED = {
    "exponential": lambda rng, n: np.exp(40.0 * rng.normal(size=n)),
    "one far away": lambda rng, n: np.append(rng.normal(size=n - 1), 1e300),
    "huge range": lambda rng, n: rng.choice([-1.7e308, 1.7e308], n) * rng.random(n),
    "neighbours": _neighbours,
    "neighbours of another": lambda rng, n: np.append(_neighbours(rng, n - 1), -1e9),
    "denormals": lambda rng, n: rng.integers(-50, 50, n) * 5e-324,
    "around zero": lambda rng, n: rng.choice([-0.0, 0.0, 5e-324, -5e-324, 1e-300], n),
    "clusters": lambda rng, n: rng.integers(0, 4, n) + 1e-13 * rng.integers(0, 9, n),
    "duplicated": lambda rng, n: np.round(rng.normal(size=n), 1),
}


@pytest.mark.full
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("kind", CROWDED)
def test_crowded_values(assert_same_trees, kind, criterion):
    """Values that equal widths do not part: cells of many rows, of one value, of no width."""
    rng = np.random.default_rng(3)
    n = 160
    values = np.stack([CROWDED[kind](rng, n), rng.normal(size=n), CROWDED[kind](rng, n)], axis=1)
    values[rng.random(values.shape) < 0.05] = np.nan
    y = rng.integers(0, 3, n).astype(np.uint8 if criterion == "gini" else np.float64)
    sample = Sample(values, y, None)
    task = make_task(criterion, sample)
    assert_same_trees(sample, task, exact_tree(values, task), 4)


def test_a_boundary_and_a_cut_inside_tie(assert_same_trees):
    """Mirrored targets: two cuts are worth the same, on either side of any boundary."""
    for n in range(6, 40, 3):
        column = np.arange(float(n))
        y = ((column > 1) & (column < n - 2)).astype(np.uint8)
        sample = Sample(np.stack([column, column], axis=1), y, None)
        task = make_task("gini", sample)
        expected = exact_tree(sample.values, task)
        assert (expected.feature[0], expected.threshold[0]) == (0, 1.5)
        assert_same_trees(sample, task, expected, 2)


@pytest.mark.full
@pytest.mark.parametrize(("criterion", "n_classes"), [("entropy", 90), ("gini", 70)])
def test_many_classes(grow_tree, tunings, criterion, n_classes):
    rng = np.random.default_rng(n_classes)
    n = 400
    sample = Sample(rng.normal(size=(n, 2)), rng.integers(0, n_classes, n).astype(np.uint8), None)
    task = make_task(criterion, sample, n_classes=n_classes, max_depth=4)
    always = tunings["always"]
    if isinstance(always, CpuTuning):  # more counters than a cache holds
        always = always._replace(column_bytes=1 << 20)
    expected = exact_tree(sample.values, task)
    with tuned(always):
        assert grow_tree(sample, task, finish_rows=1, max_bins=5) == expected


# ---------------------------------------------------------------- the counts
def root(backend, sample, task, max_bins):
    """The device, and the arguments of `refine` for the root."""
    device = backend(sample, task)
    device.encode(max_bins)
    begin, end, slots = np.array([0]), np.array([len(sample.y)]), np.array([0])
    histograms = device.new_histograms(1)
    device.histogram(begin, end, histograms, slots)
    scores = device.score(histograms, slots)
    return device, (begin, end, histograms, slots, scores, np.zeros(1, np.uint64))


@pytest.mark.full
def test_most_pairs_of_noise_are_never_sorted(backend, device):
    rng = np.random.default_rng(0)
    on_host = device == "cpu"
    n, max_bins = (60_000, 32) if on_host else (3_000, 3)
    values = rng.normal(size=(n, 3)).astype(np.float32)
    sample = Sample(values, rng.integers(0, 2, n).astype(np.uint8), None)
    often = (
        TUNING._replace(counted_table_rows=0, counted_rows=0)
        if on_host
        else cuda_tuning.CudaTuning(fewest_slots=1, cell_rows=16)
    )
    splits, pairs = [], []
    for tuning in ((HOST if on_host else DEVICE)["never"], often):
        with tuned(tuning):
            growth, arguments = root(backend, sample, make_task("gini", sample), max_bins)
            splits.append(growth.refine(*arguments))
            pairs.append(growth.refined_pairs)
    assert all(np.array_equal(a, b) for a, b in zip(*splits, strict=True))
    assert pairs[0] > 0.5 * 3 * n
    assert 0 < pairs[1] < 0.3 * pairs[0]
