"""The page of an edited tree as a widget of notebooks; it imports anywidget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gputree.base.optional import require
from gputree.editing.editor import TreeEditor
from gputree.editing.server import EditingSession, editing_page
from gputree.export.model import fill

anywidget: Any = require("anywidget", "TreeWidget")
traitlets: Any = require("traitlets", "TreeWidget")


class TreeWidget(anywidget.AnyWidget):
    """A widget that edits a tree in a notebook, tried in JupyterLab and marimo.

    Its edits are those of the editor, whose ``estimator`` has the edited tree. Importing it raises
    ImportError where anywidget is missing, which the extra ``notebook`` installs.

    Parameters
    ----------
    editor : TreeEditor
    save : function, default=None
        Called with the edited estimator on request, as ``lambda tree: save_model(tree, path)``;
        None for no such button.
    height : int, default=620
        In pixels.
    language : "en", "zh" or None, default=None
        Of the labels; None for that of the browser.
    """

    _esm = fill("widget.js.txt")
    page = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(620).tag(sync=True)

    def __init__(
        self,
        editor: TreeEditor,
        save: Callable[[Any], Any] | None = None,
        language: str | None = None,
        **traits: Any,
    ) -> None:
        session = EditingSession(editor, save)
        page = editing_page(session, "Decision tree", in_frame=True, language=language)
        super().__init__(page=page, **traits)
        self._session = session
        self.on_msg(self._reply)

    def _reply(self, _: Any, content: Any, buffers: Any) -> None:
        """Reply to a message of the page, under its number."""
        if isinstance(content, dict):
            reply = self._session.reply(content.get("request"))
            self.send({"number": content.get("number"), "reply": reply})
