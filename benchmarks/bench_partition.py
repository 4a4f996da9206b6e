"""The root's entries go to its children."""

from benchmarks.stages import CodedStage


class Partition(CodedStage):
    def prepare(self, rows):
        super().prepare(rows)
        self.histogram()
        self.splits = self.refine(self.score())

    def run(self):
        self.backend.partition(self.begin, self.end, self.splits)
