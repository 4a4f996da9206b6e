"""`fit` of one tree, end to end from an array or data frame; kernels are compiled beforehand."""

from functools import partial
from typing import ClassVar

import gputree
from benchmarks.common import BACKENDS, skip_without_device, synchronize
from benchmarks.common import timer as timer
from benchmarks.data import (
    census_like,
    classes_table,
    coded_categories,
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


class FitAbsoluteError(FitRegression):
    """Over ranked lists, on the CPU."""

    params = ([10_000, 100_000], [28], [1], ["cpu"])
    estimator = partial(DecisionTreeRegressor, criterion="absolute_error")


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


class FitCategoryColumns:
    """Columns of few and of many categories, and the same codes as numbers; a chain of words."""

    # Numbers and categories of the columns, classes, and the depth of the tree.
    TABLES: ClassVar = {
        "few": (14, (3, 8, 20, 50, 100, 200), 2, 8),
        "one": (27, (6,), 2, 8),
        "many": (14, (100_000,), 2, 8),
        "none": (14, (), 2, 8),
        "words": (0, (86_000,), 5, None),
    }
    params = ([10_000, 100_000, 1_000_000], list(TABLES), ["categories", "numbers"], BACKENDS)
    param_names = ("rows", "table", "read_as", "backend")

    def setup(self, rows, table, read_as, backend):
        skip_without_device(backend)
        numbers, categories, classes, depth = self.TABLES[table]
        if table == "words" and (rows > 100_000 or read_as == "numbers"):
            raise NotImplementedError("a chain is as deep as it has words")
        self.X, self.y, nominal = coded_categories(rows, numbers, categories, classes)
        self.model = DecisionTreeClassifier(
            max_depth=depth,
            categorical_features=nominal if read_as == "categories" else [],
            device=backend,
        )
        self.model.fit(self.X[:WARM_ROWS], self.y[:WARM_ROWS])
        synchronize(backend)

    def time_fit(self, rows, table, read_as, backend):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, rows, table, read_as, backend):
        self.model.fit(self.X, self.y)
