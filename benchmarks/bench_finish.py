"""Subtrees of small nodes, grown whole."""

import numpy as np

from benchmarks.stages import CodedStage

NODE_ROWS = 500


class Finish(CodedStage):
    """The whole table as nodes of 500 rows each, taken in the order of the rows."""

    def prepare(self, rows):
        super().prepare(rows)
        self.begin = np.arange(0, rows, NODE_ROWS)
        self.end = np.minimum(self.begin + NODE_ROWS, rows)
        self.depth = np.zeros(self.begin.size, np.int64)
        self.keys = np.zeros(self.begin.size, np.uint64)

    def run(self):
        self.backend.finish(self.begin, self.end, self.depth, self.keys)
