"""Links between files of the repository lead to the pages that show those files."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
_INCLUDE = re.compile(r"^```\{include\} (\S+)", re.MULTILINE)
_LINK = re.compile(r"(?<=\]\()([\w./-]+\.(?:md|py))(?=[#)])")
_GALLERIES = {"docs/examples": "/gallery", "docs/zh/tutorial": "/zh/steps"}


@cache
def pages() -> dict[str, str]:
    """The page of each file that a page includes, by paths in the repository and in docs."""
    found: dict[str, str] = {}
    for page in sorted(DOCS.glob("**/*.md")):
        for file in _INCLUDE.findall(page.read_text("utf-8")):
            path = (page.parent / file).resolve().relative_to(DOCS.parent)
            found.setdefault(path.as_posix(), page.relative_to(DOCS).as_posix())
    return found


def with_pages(text: str, folder: str) -> str:
    """The Markdown of a file in `folder` of the repository, its links made to lead to pages."""

    def page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        scripts, name = posixpath.split(target)
        if scripts in _GALLERIES:
            return f"{_GALLERIES[scripts]}/{name.removesuffix('.py')}.rst"
        if target.endswith(".py"):
            return link[1]
        if target.startswith("benchmarks/results/") and target not in pages():
            return "/benchmarks.md"
        return "/" + pages().get(target, target.removeprefix("docs/"))

    return _LINK.sub(page, text)


def read_page(app: Sphinx, name: str, content: list[str]) -> None:
    content[0] = with_pages(content[0], posixpath.dirname(f"docs/{name}"))


def read_included(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    file = posixpath.normpath(posixpath.join("docs", Path(path).as_posix()))
    content[0] = with_pages(content[0], posixpath.dirname(file))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    return {"parallel_read_safe": True}
