"""Kernels as they are compiled give the trees that they give as Python, in every variant."""

import numpy as np
import pytest
from tunings import finishing
from variants import AXES, COVER, Variant, estimator_of, pairs_of, possible_pairs, table_of

from gputree.backends.cpu.backend import CpuBackend
from gputree.compilation import tiers
from gputree.criteria.dispatch import row_by_row


def test_every_pair_of_values_is_compiled():
    assert set().union(*map(pairs_of, COVER)) == possible_pairs()
    assert len(COVER) == len(AXES.criterion) * len(AXES.dtype)  # no cover is smaller


# Each compiles for 15 to 30 s. By default what grows small nodes whole is compiled in all tests
# (`hot_kernels`), and `.ci/run` grows a classification of two classes each time, with the oldest
# versions or the newest.
@pytest.mark.full
@pytest.mark.parametrize("variant", COVER, ids=["-".join(map(str, each)) for each in COVER])
def test_compiled_kernels_grow_the_interpreted_tree(variant: Variant, monkeypatch):
    X, y, weight = table_of(variant)
    kinds = criteria_of_tasks(monkeypatch)
    trees = {}
    for mode in ("never", "always"):
        # Nodes of more rows by histograms, smaller ones whole.
        with tiers.forced(mode), finishing(30):
            trees[mode] = estimator_of(variant).fit(X, y, weight)
            answers = trees[mode].predict(X)
        if mode == "never":
            expected = answers
    assert set(kinds) == {variant.criterion}
    assert trees["always"].tree_.n_nodes > 20
    assert trees["always"].tree_.equals(trees["never"].tree_)
    np.testing.assert_array_equal(answers, expected)


def criteria_of_tasks(monkeypatch) -> list[str]:
    """Types of criteria that backends work by from here on, as they are appended."""
    kinds: list[str] = []
    made = CpuBackend.__init__

    def init(self, table, task, *rest, **named):
        kinds.append(type(row_by_row(task.criterion)).__name__)
        made(self, table, task, *rest, **named)

    monkeypatch.setattr(CpuBackend, "__init__", init)
    return kinds
