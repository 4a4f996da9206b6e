"""A level on the device while its splits are searched, and its candidate bins."""

from __future__ import annotations

from typing import Any, NamedTuple

from gputree.backends.cuda.categories import MASK_WORDS, Sides
from gputree.backends.cuda.layout import TALLY_WORDS, DeviceChunks, LevelPlan
from gputree.backends.cuda.partition import RECORD_WORDS
from gputree.backends.cuda.score import DeviceScores
from gputree.backends.cuda.structs import Packed


class SearchLevel(NamedTuple):
    """Nodes whose splits are searched."""

    rows: int
    largest: int  # rows of the largest node
    plan: LevelPlan
    histograms: Any
    scores: DeviceScores
    visits: tuple[Any, ...]  # the fields of Visits in cut.cuh
    cuts: Any  # (m, CUT_WORDS) int64
    lead: Any  # (m,) int32
    results: Any  # int64: the host reads it, see `Results`
    lefts: Any  # of the parts that are partitioned, int64
    sides: Sides | None
    packed: Packed  # its histograms, for kernels
    visited: Packed  # `visits`
    scored: Packed  # `scores`

    @property
    def nodes(self) -> int:
        return self.scores.total.shape[0]

    @property
    def chunks(self) -> DeviceChunks:
        return self.plan.chunks

    @property
    def records(self) -> Any:
        """(m, RECORD_WORDS) int64: the splits."""
        return Results.of(self.results, self.nodes).records


class Results(NamedTuple):
    """Results of m nodes that the host reads in one copy, int64."""

    tally: Any  # (TALLY_WORDS,)
    records: Any  # (m, RECORD_WORDS): the splits
    masks: Any  # (m, MASK_WORDS): categories that go left; none without categorical columns

    @classmethod
    def of(cls, words: Any, m: int) -> Results:
        """Views of `words`, which are contiguous."""
        first, last = TALLY_WORDS, TALLY_WORDS + m * RECORD_WORDS
        masks = words[last:].reshape(-1, MASK_WORDS)
        return cls(words[:first], words[first:last].reshape(-1, RECORD_WORDS), masks)


class CandidateSubBins(NamedTuple):
    """Sub-bins of bins that may contain the best cut, and the slots of their rows."""

    # (3, m x d + 1) int64: slots, candidates, and those too large for a warp, in the columns
    # before.
    starts: Any
    grid: Packed  # for kernels: sub-bins that have rows
    counted: Packed  # their statistics
    free_bytes: int  # for gathering rows


class Batch(NamedTuple):
    """Columns ``begin .. end``, counted through all nodes, that are refined at once."""

    begin: int
    end: int
    rows: int
    candidates: int
    sorts: bool  # each is sorted by the warp that scans it
    row_start: Any  # (m x d + 1,) int64: relative to the batch's first
    first: Any  # the same for candidates
