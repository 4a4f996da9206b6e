"""Pages that are files of the repository: links between those files lead to their pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

# Files that pages include, and the pages.
PAGES = {
    "README.md": "/index.md",
    "README.zh.md": "/zh/index.md",
    "ARCHITECTURE.md": "/architecture.md",
    "CHANGELOG.md": "/changelog.md",
    "CONTRIBUTING.md": "/contributing.md",
    "gputree/distributed/README.md": "/dask.md",
    "gputree/export/README.md": "/export.md",
    "gputree/pruning/README.md": "/pruning.md",
}
_LINK = re.compile(r"(?<=\]\()([\w./-]+\.(?:md|rst))(?=[#)])")


def lead_to_pages(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Rewrite links of an included file, which are relative to it, as links to pages."""
    included = posixpath.normpath(posixpath.join("docs", Path(path).as_posix()))
    folder = posixpath.dirname(included)

    def page(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        return PAGES.get(target) or "/" + target.removeprefix("docs/")

    content[0] = _LINK.sub(page, content[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("include-read", lead_to_pages)
    return {"parallel_read_safe": True}
