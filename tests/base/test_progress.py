"""Progress bars: shown on a terminal or in a notebook if requested, and nowhere else."""

import io
import re
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import tqdm
import tqdm.auto
from table_files import write_table

from gputree import RandomForestClassifier
from gputree.base import progress
from gputree.base.progress import Progress, in_notebook
from gputree.datasets import load_iris, read_table, sources


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def every_step(monkeypatch):
    """Show each step of a bar, however soon after the one before."""
    eager = partial(tqdm.auto.tqdm, mininterval=0)
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **options: eager(**{**options, "delay": 0}))


@pytest.fixture
def notebook(monkeypatch):
    """Modules that the kernel of a notebook has loaded."""
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def grow(stream, enabled, monkeypatch, fails=False) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(1000, enabled) as progress:
        progress.level(depth=0, open_nodes=1, open_rows=1000, nodes=1)
        progress.level(depth=1, open_nodes=2, open_rows=1000, nodes=3)
        progress.ahead(depth=2, open_rows=1000)
        progress.level(depth=12, open_nodes=1, open_rows=250, nodes=1205)
        progress.level(depth=13, open_nodes=0, open_rows=900, nodes=1207)
        if fails:
            raise KeyboardInterrupt
    return stream.getvalue() if stream else ""


# --------------------------------------------------------------------------------- growth
@pytest.mark.usefixtures("every_step")
def test_on_a_terminal(monkeypatch):
    shown = grow(Terminal(), True, monkeypatch)
    assert shown.index("levels from 2 on, 1,000 rows open") < shown.index("level 12")
    assert "level 12, 1,205 nodes, 250 rows open" in shown
    percents = [int(percent) for percent in re.findall(r"(\d+)%", shown)]
    assert percents == sorted(percents)  # rows set aside were placed before they are finished
    assert 75 in percents
    finishing = next(line for line in shown.split("\r") if "building small subtrees" in line)
    assert " 75%" in finishing
    assert "900 rows" in finishing
    assert percents[-1] == 100
    assert shown.endswith("\r")  # nothing stays behind


@pytest.mark.usefixtures("every_step")
def test_no_guess_at_the_time_that_is_left(monkeypatch):
    """A level without a leaf says nothing of how long the tree takes."""
    shown = grow(Terminal(), True, monkeypatch)
    times = {found for line in shown.split("\r") for found in re.findall(r"\d+:\d+", line)}
    assert times == {"00:00"}  # what has passed
    assert "?" not in shown
    assert "/s" not in shown


@pytest.mark.usefixtures("every_step")
def test_an_interrupted_bar_is_not_full(monkeypatch):
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt):
        grow(stream, True, monkeypatch, fails=True)
    assert "75%" in stream.getvalue()
    assert "100%" not in stream.getvalue()


@pytest.mark.parametrize(("stream", "enabled"), [(io.StringIO(), True), (Terminal(), False)])
def test_nothing_elsewhere(monkeypatch, stream, enabled):
    assert grow(stream, enabled, monkeypatch) == ""


def test_without_standard_error(monkeypatch):
    assert grow(None, True, monkeypatch) == ""


@pytest.mark.usefixtures("every_step", "notebook")
def test_in_a_notebook(monkeypatch):
    """Its standard error is no terminal, and it is seen all the same."""
    assert "level 12, 1,205 nodes" in grow(io.StringIO(), True, monkeypatch)
    assert grow(io.StringIO(), False, monkeypatch) == ""


@pytest.mark.usefixtures("every_step")
def test_a_forest_counts_its_trees(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    forest = RandomForestClassifier(5, verbose=1, n_jobs=1).fit(IRIS.data, IRIS.target)
    shown = stream.getvalue()
    assert re.findall(r"\d+/5", shown) == [f"{done}/5" for done in range(6)]
    assert "trees: 100%" in shown
    assert shown.endswith("\r")
    stream.seek(0)
    stream.truncate()
    forest.set_params(warm_start=True, n_estimators=7).fit(IRIS.data, IRIS.target)
    assert "2/2" in stream.getvalue()  # those that are new


def test_a_forest_writes_lines_where_there_is_no_terminal(monkeypatch):
    """At most one in some seconds, and one at the end."""
    for seconds, lines in ((0.0, [1, 2, 3]), (1e9, [3])):
        monkeypatch.setattr(progress, "LINE_SECONDS", seconds)
        monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
        RandomForestClassifier(3, verbose=1, n_jobs=2).fit(IRIS.data, IRIS.target)
        found = re.findall(r"^trees: (\d) of 3, \d+\.\d s$", stream.getvalue(), re.MULTILINE)
        assert list(map(int, found)) == lines


def test_what_is_no_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not in_notebook()
    for shell in (None, SimpleNamespace(config={"TerminalIPythonApp": {}})):
        module = SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        assert not in_notebook()


# ---------------------------------------------------------------------------------- files
IRIS = load_iris()


def write(folder, name):
    """The file `name` with iris in it, as its ending says."""
    return write_table(read_table(IRIS.filename).columns, folder / name)


NAMES = ["iris.csv", "iris.csv.gz", "iris.CSV.ZST", "iris.parquet"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("every_step")
def test_reading_shows_bytes(tmp_path, monkeypatch, name):
    path = write(tmp_path, name)
    quiet = read_table(path, "species")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    table = read_table(path, "species", verbose=True)
    assert table.columns.equals(quiet.columns)
    assert np.array_equal(table.target, quiet.target)
    shown = stream.getvalue()
    size = tqdm.tqdm.format_sizeof(path.stat().st_size, divisor=1024)
    assert f"reading {name}:" in shown
    assert f"/{size}" in shown
    percents = [int(percent) for percent in re.findall(r"(\d+)%", shown)]
    assert percents[-1] == 100
    assert shown.endswith("\r")


@pytest.mark.parametrize("name", NAMES)
def test_reading_is_silent_unless_asked(tmp_path, monkeypatch, name):
    path = write(tmp_path, name)
    for stream, verbose in ((Terminal(), False), (io.StringIO(), True)):
        monkeypatch.setattr(sys, "stderr", stream)
        read_table(path, verbose=verbose)
        assert stream.getvalue() == ""


def test_a_short_read_is_not_shown(tmp_path, monkeypatch):
    """A bar that comes and goes at once is a flicker."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    read_table(write(tmp_path, "iris.csv"), verbose=True)
    assert "iris" not in stream.getvalue()


@pytest.mark.usefixtures("every_step")
def test_a_file_that_cannot_be_read_takes_its_bar_away(tmp_path, monkeypatch):
    path = tmp_path / "broken.csv"
    path.write_text("a,b\n1,2\n3\n")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(ValueError, match=r"broken\.csv"):
        read_table(path, verbose=True)
    assert stream.getvalue().endswith("\r")


@pytest.mark.usefixtures("every_step")
def test_ends_that_are_read_twice_count_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    path = write(tmp_path, "iris.csv")
    size = path.stat().st_size
    with sources.opened(path, verbose=True) as file:
        for _ in range(2):
            file.seek(0)
            assert len(file.read(size)) == size
