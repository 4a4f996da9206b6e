"""The progress bar: seen on a terminal when asked for, and nowhere else."""

import io
import sys
from functools import partial

import pytest
import tqdm

from gputree.growth.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def grow(stream, enabled, monkeypatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(1000, enabled) as progress:
        progress.level(depth=0, open_nodes=1, open_rows=1000, nodes=1)
        progress.level(depth=1, open_nodes=2, open_rows=1000, nodes=3)
        progress.level(depth=12, open_nodes=1, open_rows=250, nodes=1205)
        progress.close()
    return stream.getvalue() if stream else ""


def test_on_a_terminal(monkeypatch):
    monkeypatch.setattr("tqdm.tqdm", partial(tqdm.tqdm, mininterval=0))
    shown = grow(Terminal(), True, monkeypatch)
    assert "level 12, 1,205 nodes, 1 open" in shown
    assert " 75%" in shown
    assert shown.endswith("\r")  # nothing stays behind


@pytest.mark.parametrize(("stream", "enabled"), [(io.StringIO(), True), (Terminal(), False)])
def test_nothing_elsewhere(monkeypatch, stream, enabled):
    assert grow(stream, enabled, monkeypatch) == ""


def test_without_standard_error(monkeypatch):
    assert grow(None, True, monkeypatch) == ""
