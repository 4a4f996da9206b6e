"""Attribute lists, stage by stage at the root: columns are coded and sorted, then split."""

from abc import ABC, abstractmethod

import numpy as np

from benchmarks.common import BACKENDS, skip_without_device, synchronize
from benchmarks.common import timer as timer
from benchmarks.compare.timing import THREADS
from benchmarks.data import mixed_table
from gputree.arithmetic.fixed_point import fix_weights
from gputree.backends import get_list_backend
from gputree.backends.devices import code_columns
from gputree.backends.lists import BranchLimits, ListTask, Tests
from gputree.columns import fit_encode
from gputree.criteria.entropy import new_information

WARM_ROWS = 2_000  # of the table that compiles the kernels


def new_task(y, nominal):
    """As C4.5 has it; rows come in parts, for cells are missing."""
    classes, target = np.unique(y, return_inverse=True)
    weights = fix_weights(None, y.size, fractions=True)
    one = 1.0 / weights.unit
    return ListTask(
        information=new_information(weights.total, weights.unit),
        n_classes=classes.size,
        target=target.astype(np.uint8),
        weight=weights.weight,
        nominal=nominal,
        missing_is_category=False,
        limits=BranchLimits(2 * one, 0.1 / classes.size, 25 * one, 1e-6 * one),
    )


class ListStage(ABC):  # asv leaves abstract classes alone
    """The base of a stage's benchmark: `prepare` runs all that comes before it.

    Each sample starts afresh: lists are used up, and their memory is used again.
    """

    params = ([10_000, 100_000], BACKENDS)
    param_names = ("rows", "backend")
    number = 1
    warmup_time = 0

    def setup(self, rows, backend):
        skip_without_device(backend)
        X, y = mixed_table(rows)
        for n in (WARM_ROWS, rows):
            columns, self.values = fit_encode(X[:n], order="F")
            self.nominal, self.backend = columns.nominal, backend
            self.task = new_task(y[:n], self.nominal)
            self.prepare()
            if n < rows:
                self.run()
        synchronize(backend)

    @abstractmethod
    def prepare(self):
        """Bring the root to the stage that is measured."""

    @abstractmethod
    def run(self):
        """The stage itself."""

    def time_run(self, rows, backend):
        self.run()
        synchronize(backend)


class Code(ListStage):
    """Numbers are sorted and ranked, categories sorted: on the host for every backend."""

    params = (ListStage.params[0], ["cpu"])

    def prepare(self):
        """Nothing comes before."""

    def run(self):
        code_columns(self.values, self.nominal, THREADS)


class Score(ListStage):
    """Every cut and every category of all columns."""

    def prepare(self):
        codes, _ = code_columns(self.values, self.nominal, THREADS)
        self.level = get_list_backend(self.backend)(codes, self.task, THREADS).root()

    def run(self):
        self.level.score()


class Assign(Score):
    """The branch of every entry; the column of greatest gain is split."""

    def prepare(self):
        super().prepare()
        found = self.level.score()
        feature = found.gain.argmax(axis=0).astype(np.int32)
        self.tests = Tests(
            node=np.array([0]),
            feature=feature,
            cut=found.cut[feature, 0],
            part=np.array([0, found.parts[feature[0], 0]]),
        )

    def run(self):
        self.parts = self.level.assign(self.tests)


class Descend(Assign):
    """Entries and lists of all branches, rows of missing values in each of them."""

    def prepare(self):
        super().prepare()
        super().run()

    def run(self):
        self.level.descend(np.arange(self.parts.rows.size))
