"""Figures for drawings, and a test of overlapping parts."""

from itertools import combinations

import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

OVERLAP = 0.5  # pixels: borders of boxes are drawn on their edges


@pytest.fixture(autouse=True)
def close_figures():
    """For modules that import it."""
    yield
    pyplot.close("all")


def overlap(a, b):
    """Return True if two window extents share more than a border."""
    wide = min(a.x1, b.x1) - max(a.x0, b.x0) > OVERLAP
    return wide and min(a.y1, b.y1) - max(a.y0, b.y0) > OVERLAP


def any_overlap(extents):
    return any(overlap(a, b) for a, b in combinations(extents, 2))
