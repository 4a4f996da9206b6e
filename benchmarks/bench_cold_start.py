"""What a fresh process pays before its first tree: imports, and compilation of the kernels."""

import os
import subprocess
import sys
import tempfile

from benchmarks.common import BACKENDS, skip_without_device

FIRST_FIT = """
import numpy
from gputree import DecisionTreeClassifier

X = numpy.random.default_rng(0).normal(size=({rows}, {columns})).astype(numpy.float32)
y = numpy.arange({rows}) % {classes}
DecisionTreeClassifier(max_depth=8, device="{backend}").fit(X, y)
"""


def timeraw_import():
    return "import gputree"


def timeraw_import_scikit_learn():
    """What an import costs anybody who uses scikit-learn's trees: the base of the comparison."""
    return "import sklearn.tree"


class FirstFit:
    """A process from start to end; 150 rows are interpreted, 20,000 need every kernel."""

    params = ([150, 20_000], [28], [2], BACKENDS)
    param_names = ("rows", "columns", "classes", "backend")
    number = 1
    warmup_time = 0
    timeout = 300

    def setup(self, rows, columns, classes, backend):
        skip_without_device(backend)
        self.code = FIRST_FIT.format(rows=rows, columns=columns, classes=classes, backend=backend)
        self.warm = tempfile.TemporaryDirectory()

    def teardown(self, *parameters):
        if hasattr(self, "warm"):  # not where setup skipped
            self.warm.cleanup()

    def run(self, cache):
        kernels = {"NUMBA_CACHE_DIR": cache, "CUPY_CACHE_DIR": cache, "GPUTREE_JIT": "auto"}
        subprocess.run([sys.executable, "-c", self.code], check=True, env=os.environ | kernels)


class ColdFirstFit(FirstFit):
    repeat = 2

    def time_first_fit(self, *parameters):
        with tempfile.TemporaryDirectory() as cache:
            self.run(cache)


class WarmFirstFit(FirstFit):
    repeat = 5

    def setup(self, *parameters):
        super().setup(*parameters)
        self.run(self.warm.name)

    def time_first_fit(self, *parameters):
        self.run(self.warm.name)
