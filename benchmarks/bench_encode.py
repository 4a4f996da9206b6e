"""Bin edges and codes of a whole table."""

from benchmarks.stages import MAX_BINS, Stage


class Encode(Stage):
    def prepare(self, rows):
        """Nothing comes before."""

    def run(self):
        self.backend.encode(MAX_BINS)
