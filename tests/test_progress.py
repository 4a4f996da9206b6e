"""The progress bar: seen on a terminal when asked for, and nowhere else."""

import io
import re
import sys
from functools import partial

import pytest
import tqdm

from gputree.growth.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def grow(stream, enabled, monkeypatch, fails=False) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(1000, enabled) as progress:
        progress.level(depth=0, open_nodes=1, open_rows=1000, nodes=1)
        progress.level(depth=1, open_nodes=2, open_rows=1000, nodes=3)
        progress.level(depth=12, open_nodes=1, open_rows=250, nodes=1205)
        progress.level(depth=13, open_nodes=0, open_rows=900, nodes=1207)
        if fails:
            raise KeyboardInterrupt
    return stream.getvalue() if stream else ""


def test_on_a_terminal(monkeypatch):
    monkeypatch.setattr("tqdm.tqdm", partial(tqdm.tqdm, mininterval=0))
    shown = grow(Terminal(), True, monkeypatch)
    assert "level 12, 1,205 nodes, 1 open" in shown
    percents = [int(percent) for percent in re.findall(r"(\d+)%", shown)]
    assert percents == sorted(percents)  # rows set aside were placed before they are finished
    assert 75 in percents
    finishing = next(line for line in shown.split("\r") if "finishing small nodes" in line)
    assert " 75%" in finishing
    assert "900 rows" in finishing
    assert percents[-1] == 100
    assert shown.endswith("\r")  # nothing stays behind


def test_an_interrupted_bar_is_not_full(monkeypatch):
    monkeypatch.setattr("tqdm.tqdm", partial(tqdm.tqdm, mininterval=0))
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
