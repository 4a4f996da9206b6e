"""`fit` of one tree, end to end from an array or data frame; kernels are compiled beforehand."""

import gputree
from benchmarks.common import BACKENDS, skip_without_device, synchronize
from benchmarks.data import (
    census_like,
    classes_table,
    connections_like,
    mixed_table,
    regression_table,
)
from gputree import DecisionTreeClassifier, DecisionTreeRegressor

WARM_ROWS = 5_000  # enough to leave the path of small nodes
TABLES = {"census": census_like, "connections": connections_like, "mixed": mixed_table}


class Fit:
    params = ([10_000, 100_000], [28], [2, 7], BACKENDS)
    param_names = ("rows", "columns", "classes", "backend")
    table = staticmethod(classes_table)
    estimator = DecisionTreeClassifier

    def setup(self, rows, columns, classes, backend):
        skip_without_device(backend)
        self.X, self.y = self.table(rows, columns, classes)
        self.shallow = self.estimator(max_depth=8, device=backend)
        self.deep = self.estimator(device=backend)
        self.shallow.fit(self.X[:WARM_ROWS], self.y[:WARM_ROWS])
        synchronize(backend)

    def time_depth_8(self, rows, columns, classes, backend):
        self.shallow.fit(self.X, self.y)
        synchronize(backend)

    def time_unlimited(self, rows, columns, classes, backend):
        self.deep.fit(self.X, self.y)
        synchronize(backend)

    def peakmem_unlimited(self, rows, columns, classes, backend):
        self.deep.fit(self.X, self.y)
        synchronize(backend)

    def track_share_refined(self, rows, columns, classes, backend):
        report = self.shallow.fit(self.X, self.y).growth_report_
        return report["refined_pairs"] / max(report["scanned_pairs"], 1)

    track_share_refined.unit = "share of (row, feature) pairs"


class FitRegression(Fit):
    params = ([10_000, 100_000], [28], [1], BACKENDS)
    estimator = DecisionTreeRegressor

    @staticmethod
    def table(rows, columns, classes):
        return regression_table(rows, columns)


class FitCategories:
    """From a data frame with strings and holes to the tree, pruned where that is the default."""

    params = (
        [10_000, 100_000],
        list(TABLES),
        ["C45Classifier", "ID3Classifier", "DecisionTreeClassifier"],
        BACKENDS,
    )
    param_names = ("rows", "table", "estimator", "backend")

    def setup(self, rows, table, estimator, backend):
        skip_without_device(backend)
        self.X, self.y = TABLES[table](rows)
        self.model = getattr(gputree, estimator)(device=backend)
        self.model.fit(self.X[:WARM_ROWS], self.y[:WARM_ROWS])
        synchronize(backend)

    def time_fit(self, rows, table, estimator, backend):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, rows, table, estimator, backend):
        self.model.fit(self.X, self.y)
