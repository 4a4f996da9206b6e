"""Scores of columns and cut points by MDL, from arrays in memory."""

import numpy as np

from benchmarks.common import BACKENDS, skip_without_device
from benchmarks.common import timer as timer
from benchmarks.discretization import normal_table
from gputree import MDLPDiscretizer, gini_gain, information_gain, variance_reduction

WARM_ROWS = 2_000  # of the table that compiles the kernels
SCORES = {kind.__name__: kind for kind in (information_gain, gini_gain, variance_reduction)}


class Scores:
    """28 columns of different numbers, each cut where it scores best."""

    params = ([10_000, 200_000], list(SCORES), BACKENDS)
    param_names = ("rows", "score", "backend")

    def setup(self, rows, score, backend):
        skip_without_device(backend)
        self.X, self.y = normal_table(rows)
        if score == "variance_reduction":
            self.y = self.y + self.X[:, 0]
        self.time_scores(WARM_ROWS, score, backend)
        self.time_scores(rows, score, backend)

    def time_scores(self, rows, score, backend):
        SCORES[score](self.X[:rows], self.y[:rows], device=backend)


class Discretize:
    """28 columns of different numbers, three of which tell about the labels."""

    params = ([100_000, 1_000_000], ["float32", "float64"])
    param_names = ("rows", "dtype")
    timeout = 120

    def setup(self, rows, dtype):
        X, self.y = normal_table(rows)
        self.X = X.astype(np.dtype(dtype))
        self.fitted = MDLPDiscretizer().fit(self.X[:WARM_ROWS], self.y[:WARM_ROWS])

    def time_fit(self, rows, dtype):
        MDLPDiscretizer().fit(self.X, self.y)

    def time_transform(self, rows, dtype):
        self.fitted.transform(self.X)
