"""Scores of all bin boundaries of the root, and the bounds of its bins."""

from benchmarks.stages import CodedStage


class Score(CodedStage):
    def prepare(self, rows):
        super().prepare(rows)
        self.histogram()

    def run(self):
        self.score()
