"""A backend brought up to each stage of the first level, for the benchmarks of its primitives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from benchmarks.common import BACKENDS, skip_without_device, synchronize, timer
from benchmarks.compare.timing import THREADS
from benchmarks.data import classes_table
from gputree.backends import get_backend, new_table
from gputree.backends.base import Backend, Limits, Rows, Task
from gputree.criteria import Gini

MAX_BINS = 256


def new_backend(rows: int, columns: int, classes: int, name: str) -> Backend:
    """A backend that holds `classes_table`, not coded yet; every column can be refined."""
    X, y = classes_table(rows, columns, classes)
    limits = Limits(
        max_depth=rows,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_leaf=0,
        min_decrease=0.0,
        max_features=columns,
        rounded=False,
    )
    task = Task(
        criterion=Gini(classes, 1.0),
        limits=limits,
        rows=Rows(y, None, None, None),
        exact=True,
    )
    table = new_table(name, X, np.zeros(columns, np.bool_))
    return get_backend(name)(table, task, THREADS)


class Stage(ABC):  # asv leaves abstract classes alone
    """The base of a primitive's benchmark: `prepare` runs all that comes before it.

    Each sample starts afresh, for several primitives work in place.
    """

    params = ([10_000, 100_000], [28], [2, 7], BACKENDS)
    param_names = ("rows", "columns", "classes", "backend")
    number = 1
    warmup_time = 0
    timer = staticmethod(timer)

    def setup(self, rows, columns, classes, backend):
        skip_without_device(backend)
        for n in (1_000, rows):  # the small table compiles the kernels
            self.backend = new_backend(n, columns, classes, backend)
            self.prepare(n)
            if n < rows:
                self.run()
        synchronize(backend)

    @abstractmethod
    def prepare(self, rows: int) -> None:
        """Bring `self.backend` to the stage that is measured."""

    @abstractmethod
    def run(self) -> Any:
        """The primitive itself."""

    def time_run(self, rows, columns, classes, backend):
        self.run()
        synchronize(backend)


class CodedStage(Stage):
    """The root of a coded table, with room for its histogram."""

    def prepare(self, rows):
        self.backend.encode(MAX_BINS)
        self.begin, self.end = np.array([0]), np.array([rows])
        self.slots = np.array([0])
        self.keys = np.zeros(1, np.uint64)
        self.histograms = self.backend.new_histograms(1)

    def histogram(self):
        self.backend.histogram(self.begin, self.end, self.histograms, self.slots)

    def score(self):
        return self.backend.score(self.histograms, self.slots)

    def refine(self, scores):
        return self.backend.refine(
            self.begin, self.end, self.histograms, self.slots, scores, self.keys
        )
