"""The widget from end to end: a notebook of marimo, in a browser, edits and saves a tree."""

import os
import re
import socket
import subprocess
import sys
import time

import pytest
from browser import BROWSER, Tab

from gputree import load_model

NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    from gputree import DecisionTreeClassifier, save_model
    from gputree.datasets import load_iris
    from gputree.editing import TreeEditor, TreeWidget

    editor = TreeEditor(DecisionTreeClassifier(max_depth=2), *load_iris(return_X_y=True))
    TreeWidget(editor, save=lambda tree: save_model(tree, {path!r}), language="en")
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.mark.process
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_a_notebook_edits_and_saves_its_tree(write, tmp_path):
    pytest.importorskip("anywidget", reason="the widget needs the extra notebook")
    pytest.importorskip("marimo", reason="marimo is not installed")
    path = tmp_path / "edited.gputree"
    notebook = write(NOTEBOOK.format(path=str(path)), "notebook.py")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
    command = [sys.executable, "-m", "marimo", "run", str(notebook), *options]
    environment = os.environ | {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        address = f"http://127.0.0.1:{port}/"
        _wait_for(server, port)
        with Tab(address, tmp_path) as tab:
            tab.wait("document.querySelectorAll('#edit figcaption').length")
            assert tab.wait("document.documentElement.lang === 'en' && data.id.length") == 5
            tab.wait(_press("Make a leaf"))
            tab.wait("globalThis.document?.title.startsWith('*') && data.id.length === 1")
            tab.wait(_press("Save"))
            tab.wait("document.getElementById('said')?.textContent === 'Saved.'")
            assert [error for error in tab.errors if re.search("edit|tree", error)] == []
        saved = load_model(path)
        assert saved.tree_.n_nodes == 1
        assert [edit["edit"] for edit in saved.edits_] == ["prune"]
    finally:
        server.kill()
        server.wait()


def _press(words: str) -> str:
    """Script that presses a button once it is there."""
    found = f"[...document.querySelectorAll('button')].find(b => b.textContent === {words!r})"
    return f"(b => b && !b.disabled && (b.click(), true))({found})"


def _wait_for(server: subprocess.Popen, port: int) -> None:
    """Wait until the notebook is served."""
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("marimo has not started.")
