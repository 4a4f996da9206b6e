"""Prediction on the host, from a shallow and from an unlimited tree."""

import numba

from benchmarks.common import timer as timer
from benchmarks.data import classes_table, mixed_table
from gputree import C45Classifier, DecisionTreeClassifier, prediction

TRAINING_ROWS = 10_000


class Predict:
    params = ([10_000, 1_000_000], [28], [2, 7], ["depth 8", "unlimited"])
    param_names = ("rows", "columns", "classes", "tree")

    def setup(self, rows, columns, classes, tree):
        self.X, y = classes_table(rows, columns, classes)
        depth = 8 if tree == "depth 8" else None
        self.model = DecisionTreeClassifier(max_depth=depth, device="cpu")
        self.model.fit(self.X[:TRAINING_ROWS], y[:TRAINING_ROWS])
        self.model.predict(self.X[:10])

    def time_predict(self, rows, columns, classes, tree):
        self.model.predict(self.X)

    def time_predict_proba(self, rows, columns, classes, tree):
        self.model.predict_proba(self.X)

    def time_apply(self, rows, columns, classes, tree):
        self.model.apply(self.X)

    def peakmem_predict_proba(self, rows, columns, classes, tree):
        self.model.predict_proba(self.X)


class PredictParts:
    """A C4.5 tree of about 1,000 nodes, 5% of cells missing: the coded table alone."""

    params = ([1_000_000], ["class_distributions", "apply", "stopping_shares"])
    param_names = ("rows", "descent")

    def setup(self, rows, descent):
        X, y = mixed_table(rows)
        model = C45Classifier(device="cpu").fit(X[: 2 * TRAINING_ROWS], y[: 2 * TRAINING_ROWS])
        self.tree, self.values = model.tree_, model._values(X)
        self.descent = getattr(prediction, descent)
        self.descent(self.tree, self.values[:10])

    def time_descent(self, rows, descent):
        self.descent(self.tree, self.values, numba.config.NUMBA_NUM_THREADS)
