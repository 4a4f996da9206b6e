"""Numbers keep their units beside them where lines break: 0.25 s, 1,000,000 x 28."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

_GAP = re.compile(r"(?<=\d) (?=(?:s|ms|µs|us|min|[KMG]i?B)\b|x \d)|(?<=\d x) (?=\d)")


class Units(SphinxTransform):
    default_priority = 999

    def apply(self, **kwargs: Any) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if isinstance(text.parent, (nodes.literal, nodes.literal_block, nodes.math)):
                continue
            joined = _GAP.sub("\N{NO-BREAK SPACE}", text)
            if joined != text:
                text.parent.replace(text, nodes.Text(joined))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_transform(Units)
    return {"parallel_read_safe": True}
