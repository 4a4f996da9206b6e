"""The exact split of the root: bins that can still win are sorted and scanned."""

from benchmarks.stages import CodedStage


class Refine(CodedStage):
    def prepare(self, rows):
        super().prepare(rows)
        self.histogram()
        self.scores = self.score()

    def run(self):
        self.refine(self.scores)

    def track_share_refined(self, rows, columns, classes, backend):
        self.run()
        return self.backend.refined_pairs / self.backend.scanned_pairs

    track_share_refined.unit = "share of (row, feature) pairs"
