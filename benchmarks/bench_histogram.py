"""The histogram of the root: every row, every column."""

from benchmarks.stages import CodedStage


class Histogram(CodedStage):
    def run(self):
        self.histogram()
