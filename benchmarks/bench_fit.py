"""`fit` of one tree, end to end from a NumPy array; kernels are compiled beforehand."""

from benchmarks.common import BACKENDS, skip_without_device, synchronize
from benchmarks.data import classes_table, regression_table
from gputree import DecisionTreeClassifier, DecisionTreeRegressor

WARM_ROWS = 5_000  # enough to leave the path of small nodes


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
        return report["refined_rows"] / max(report["scanned_rows"], 1)

    track_share_refined.unit = "share of (row, feature) pairs"


class FitRegression(Fit):
    params = ([10_000, 100_000], [28], [1], BACKENDS)
    estimator = DecisionTreeRegressor

    @staticmethod
    def table(rows, columns, classes):
        return regression_table(rows, columns)
