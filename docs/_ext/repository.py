"""Links between files of the repository lead to the pages that show those files."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# Files that pages include, and the pages.
PAGES = {
    "README.md": "index.md",
    "README.zh.md": "zh/readme.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "gputree/distributed/README.md": "dask.md",
    "gputree/export/README.md": "export.md",
    "gputree/pruning/README.md": "pruning.md",
}
_LINK = re.compile(r"(?<=\]\()([\w./-]+\.md)(?=[#)])")


def with_pages(text: str, folder: str) -> str:
    """The Markdown of a file in `folder` of the repository, its links made to lead to pages."""

    def page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        return "/" + PAGES.get(target, target.removeprefix("docs/"))

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
