"""A level on the device while its splits are searched, and its results."""

from __future__ import annotations

from typing import Any, NamedTuple

from gputree.backends.cuda.categories import MASK_WORDS, Sides
from gputree.backends.cuda.kernels import FOUND, Packed
from gputree.backends.cuda.layout import LevelPlan
from gputree.backends.cuda.partition import RECORD_WORDS
from gputree.backends.cuda.score import DeviceScores
from gputree.backends.cuda.workspace import DeviceChunks

# A cut on the device, as int64: see cut.cuh.
CUT_WORDS = 5


class Tally(NamedTuple):
    """Counters of a search, int64: see found.cuh."""

    cells: int
    pairs: int
    slots: int
    candidates: int
    overflows: int


class SearchExtent(NamedTuple):
    """Numbers of nodes whose splits are searched and of their rows, or upper bounds."""

    nodes: int
    rows: int
    largest: int  # rows of the largest node


class SearchLevel(NamedTuple):
    """Nodes whose splits are searched."""

    extent: SearchExtent
    plan: LevelPlan
    chunks: DeviceChunks
    scores: DeviceScores
    cuts: Any  # (m, CUT_WORDS) int64
    best_boundaries: Any  # (m,) int64, as the next two: see Found of found.cuh
    best_scores: Any
    latest: Any  # (m,) int32
    results: Any  # int64: the host reads it, see `Results`
    records: Any  # (m, RECORD_WORDS) int64, in `results`: the splits
    lefts: Any  # of the parts that are partitioned, int64
    sides: Sides | None
    packed: Packed  # its histograms, for kernels
    visited: Packed  # columns that nodes visit, see Visits of cut.cuh
    scored: Packed  # `scores`

    def found(self, earlier: Any = None, cuts: Any = None) -> Packed:
        """Pack the cuts found inside bins, with memory for them."""
        return FOUND.pack(
            self.results, self.best_boundaries, self.best_scores, self.latest, earlier, cuts
        )


class Results(NamedTuple):
    """Results of m nodes that the host reads in one copy, int64."""

    tally: Any  # of `Tally`
    records: Any  # (m, RECORD_WORDS): the splits
    masks: Any  # (m, MASK_WORDS): categories that go left; none without categorical columns

    @classmethod
    def of(cls, words: Any, m: int) -> Results:
        """Views of `words`, which are contiguous."""
        first = len(Tally._fields)
        last = first + m * RECORD_WORDS
        masks = words[last:].reshape(-1, MASK_WORDS)
        return cls(words[:first], words[first:last].reshape(-1, RECORD_WORDS), masks)
