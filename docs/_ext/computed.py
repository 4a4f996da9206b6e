"""Directives ``shell`` and ``python``: blocks that the build runs, with what they print.

Shell blocks of a page share one scratch folder, Python blocks one namespace, in which they run
from that folder. A block that fails is an error of the page.

    ```{shell}
    gputree show iris.gputree
    ```
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

REPOSITORY = Path(__file__).parents[2]
SECONDS = 300  # a block that takes longer hangs


class Page:
    """What the blocks of one page share."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="gputree-docs-")
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run_shell(self, lines: str) -> str:
        bin_folder = Path(sys.executable).parent
        environment = os.environ | {
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "COLUMNS": "88",
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=self.folder.name,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        if done.returncode:
            raise RuntimeError(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def run_python(self, source: str) -> str:
        """Run statements; the value of a last expression is shown as a prompt shows it."""
        tree = ast.parse(source)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        with contextlib.chdir(self.folder.name), contextlib.redirect_stdout(printed):
            exec(compile(tree, "<page>", "exec"), self.names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<page>", "eval"), self.names)
                if value is not None:
                    print(repr(value))
        return printed.getvalue()


class Computed(SphinxDirective):
    """A block and what it prints; ``:silent:`` leaves the output out."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"silent": directives.flag, "hidden": directives.flag}
    pages: ClassVar[dict[str, Page]] = {}
    language: ClassVar[str]

    def run(self) -> list[nodes.Node]:
        page = self.pages.setdefault(self.env.docname, Page())
        source = "\n".join(self.content)
        try:
            printed = getattr(page, f"run_{self.language}")(source)
        except Exception as error:
            raise self.error(
                f"a {self.language} block failed: {error}\n{traceback.format_exc()}"
            ) from error
        if "hidden" in self.options:
            return []
        blocks = [self.block(self.shown(source), self.highlighter)]
        if printed.strip() and "silent" not in self.options:
            output = self.block(printed.rstrip(), "text")
            output["classes"].append("computed-output")
            blocks.append(output)
        return blocks

    highlighter = "python"

    def shown(self, source: str) -> str:
        return source

    def block(self, text: str, language: str) -> nodes.literal_block:
        block = nodes.literal_block(text, text)
        block["language"] = language
        self.set_source_info(block)
        return block


class Python(Computed):
    language = "python"


class Shell(Computed):
    language, highlighter = "shell", "console"

    def shown(self, source: str) -> str:
        """A prompt before each line that does not go on from the one above."""
        lines, goes_on = [], False
        for line in source.splitlines():
            lines.append(("> " if goes_on else "$ ") + line)
            goes_on = line.endswith("\\")
        return "\n".join(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("python", Python)
    app.add_directive("shell", Shell)
    return {"parallel_read_safe": False}
