"""Attribute lists on CUDA and on the CPU: level by level, and whole trees, bit for bit."""

import numpy as np
import pytest
import tables
from cuda_comparisons import light_rows
from devices import tune
from hypothesis import given
from hypothesis import strategies as st
from mixed_tables import MixedTable, mixed_tables, random_mixed_table, random_mixed_tables
from strategies import examples
from twin_lists import assert_same_trees, grow_both_ways

from benchmarks import data
from gputree import (
    BoostedC45Classifier,
    BoostedC45Rules,
    C45Classifier,
    DecisionTreeClassifier,
    ID3Classifier,
)

# Small tables of many categories: one in every row, whose warning does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:.* has a unique value in:UserWarning")

# Some lists are walked by many warps, some by one; some need several pieces.
LONG_LISTS = st.sampled_from([1, 40, 10**9])
ENTROPY_TREES = st.sampled_from([C45Classifier, ID3Classifier])


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch):
    tune(monkeypatch, "cuda", lists_chunk_places=100)


def new_model(kind: type, nominal, **parameters):
    return kind(categorical_features=nominal, pruning=None, **parameters)


def check(kind: type, table: MixedTable, **parameters) -> None:
    """Trees of a table, grown on both devices at once."""
    model = new_model(kind, table.nominal, **parameters)
    grow_both_ways(model, table.X, table.y, table.weight)


def checked_rows(cuda_device: str, rows: int) -> int:
    """Fewer rows where every access is checked."""
    return rows // 4 if cuda_device.endswith("checked") else rows


def wide_table(n: int, n_classes: int, weighted: bool) -> MixedTable:
    """Numbers, an id of every row, hundreds of categories, constants and missing values only."""
    rng = np.random.default_rng(0)
    X = np.stack(
        [
            rng.normal(size=n).round(1),
            np.arange(n),
            rng.integers(0, 300, n),
            rng.integers(0, 3, n),
            np.full(n, 7.0),
            np.full(n, np.nan),
            np.where(rng.random(n) < 0.9, np.nan, rng.integers(0, 4, n)),
            rng.normal(size=n),
        ],
        axis=1,
    )
    X[rng.random(n) < 0.2, 0] = np.nan
    X[rng.random(n) < 0.1, 3] = np.nan
    signal = np.nan_to_num(X[:, 0]) + X[:, 2] % 3 + rng.normal(size=n)
    y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
    weight = rng.choice([0.3, 1.0, 2.0], n) if weighted else None
    return MixedTable(X, np.array([0, 1, 1, 1, 0, 0, 1, 0], bool), y, weight)


# ------------------------------------------------------------------------ every level
@pytest.mark.parametrize("long_list", [1, 200, 10**9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [C45Classifier, ID3Classifier])
def test_levels(cuda_device, monkeypatch, kind, weighted, long_list):
    tune(monkeypatch, "cuda", lists_long=long_list)
    check(kind, wide_table(checked_rows(cuda_device, 700), 3, weighted))


@pytest.mark.parametrize("shared_bytes", [0, 16 * 1024])
@pytest.mark.parametrize("n_classes", [2, 70])
def test_class_weights_in_shared_and_in_global_memory(
    cuda_device, monkeypatch, n_classes, shared_bytes
):
    """Blocks that take turns, too: each clears what the one before left."""
    tune(monkeypatch, "cuda", lists_shared_bytes=shared_bytes)
    tune(monkeypatch, "cuda", lists_scratch_bytes=10_000)
    tune(monkeypatch, "cuda", lists_long=150)
    tune(monkeypatch, "cuda", lists_most_blocks=3)
    check(C45Classifier, wide_table(checked_rows(cuda_device, 500), n_classes, False))


def test_more_classes_than_rows_of_a_node(cuda_device):
    rng = np.random.default_rng(0)
    n = checked_rows(cuda_device, 1200)
    X = np.stack([rng.normal(size=n), rng.integers(0, 9, n)], axis=1)
    y = np.append(np.arange(n // 2), rng.integers(0, n // 2, n - n // 2))
    check(C45Classifier, MixedTable(X, np.array([False, True]), y, None), max_depth=4)


@given(st.integers(0, 10**6), st.integers(30, 40), LONG_LISTS)
@examples(15)
def test_rows_so_light_that_gains_tie(cuda_device, seed, light, long_list):
    """The first of equal cuts depends on the cuts that are compared."""
    rng, n = np.random.default_rng(seed), 600
    y = (np.arange(n) // 250 + (rng.random(n) < 0.05)) % 2
    X = np.stack([np.arange(n), np.arange(n) // 3, rng.normal(size=n)], axis=1)
    table = MixedTable(X, np.zeros(3, bool), y, light_rows(rng, n, 2.0**-light))
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, "cuda", lists_long=long_list)
        check(C45Classifier, table, min_samples_leaf=0.25, mdl_correction=False, max_depth=2)


def test_values_that_span_warps(cuda_device, monkeypatch):
    """Runs of one value, and of one class, longer than a warp's part of a list."""
    tune(monkeypatch, "cuda", lists_long=1)
    n = 2000
    x, z = np.arange(n) // 450, np.arange(n) // 130
    y = (np.arange(n) // 700 + (np.arange(n) % 450 < 3)) % 3
    X = np.stack([x, z, x, z, np.arange(n)], axis=1).astype(float)
    for weight in (None, np.arange(n) % 3 + 0.5):
        table = MixedTable(X, np.array([0, 0, 1, 1, 0], bool), y, weight)
        check(C45Classifier, table, max_depth=2)


@given(st.one_of(mixed_tables(), random_mixed_tables(120)), ENTROPY_TREES, LONG_LISTS)
def test_random_tables(cuda_device, table, kind, long_list):
    with pytest.MonkeyPatch.context() as patch:
        tune(patch, "cuda", lists_long=long_list)
        check(kind, table)


def test_columns_compared_by_the_gain(cuda_device):
    """The host chooses by it; the tree is not that of the gain ratio."""
    table = random_mixed_table(1, 150, True)
    check(C45Classifier, table, criterion="gain")
    trees = [
        new_model(C45Classifier, table.nominal, criterion=criterion, device="cuda")
        .fit(table.X, table.y, table.weight)
        .tree_
        for criterion in ("gain", "gain_ratio")
    ]
    assert not trees[0].equals(trees[1])


@pytest.mark.filterwarnings("ignore:C45Classifier excludes")
@pytest.mark.parametrize("leaves", [0.0, 0.02])
def test_the_rules_of_c50(cuda_device, monkeypatch, leaves):
    """The host chooses by them from the candidates of the device."""
    monkeypatch.setattr(C45Classifier, "_bits_share", lambda *_: 0.5)
    monkeypatch.setattr(C45Classifier, "_leaves_per_weight", leaves)
    table = wide_table(checked_rows(cuda_device, 500), 3, True)
    check(C45Classifier, table, exclude_high_cardinality=True, mdl_gain_threshold=True)


# ------------------------------------------------------------------------ whole trees


@pytest.mark.parametrize("kind", [BoostedC45Classifier, BoostedC45Rules])
def test_boosted_trees_on_the_device(cuda_device, kind):
    table = random_mixed_table(4, 200, True)
    found, expected = (
        kind(n_trials=3, categorical_features=table.nominal, device=device)
        .fit(table.X, table.y, table.weight)
        .estimators_
        for device in ("cuda", "cpu")
    )
    assert len(found) == len(expected) > 1
    for ours, theirs in zip(found, expected, strict=True):
        assert_same_trees(*(getattr(one, "estimator_", one).tree_ for one in (theirs, ours)))


@pytest.mark.parametrize("winnow", [False, True])
def test_reports_tell_the_device(cuda_device, winnow):
    table = random_mixed_table(4, 60, True)
    for device in ("cpu", "cuda"):
        model = new_model(C45Classifier, table.nominal, device=device, winnow=winnow)
        model.fit(table.X, table.y, table.weight)
        assert model.growth_report_ == {"device": device}
    cart = DecisionTreeClassifier(categorical_features=table.nominal, device="cuda")
    assert cart.fit(table.X, table.y).growth_report_["device"] == "cuda"


@pytest.mark.parametrize("entries", [1, 40])
def test_levels_in_groups_of_nodes(cuda_device, monkeypatch, entries):
    """Parts of a level are requested more than once."""
    name = "gputree.estimators.growing_lists._most_entries"
    monkeypatch.setattr(name, lambda *_: entries)
    check(C45Classifier, random_mixed_table(2, 150, False))


@tables.each_real_table
def test_real_tables(cuda_device, name):
    pytest.importorskip("pandas")
    table = data.frame_table(name)
    if not table.classes:
        pytest.skip("a table of numbers to predict")
    rows = np.random.default_rng(0).permutation(len(table.y))[: checked_rows(cuda_device, 1000)]
    grow_both_ways(C45Classifier(pruning=None), table.X.iloc[rows], table.y[rows])
