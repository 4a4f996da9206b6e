"""Prediction on the host, from a shallow and from an unlimited tree."""

from benchmarks.data import classes_table
from gputree import DecisionTreeClassifier

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
