"""A tree that a page edits: requests and replies as JSON, independent of what sends them."""

import logging
from collections.abc import Callable
from dataclasses import asdict
from threading import RLock
from typing import Any

from gputree.editing.editor import TreeEditor
from gputree.editing.history import Edit
from gputree.errors import GputreeError, InputError
from gputree.export.html import as_json, page_of
from gputree.export.templates import fill

MOST_ALTERNATIVES = 40

_log = logging.getLogger("gputree")


class EditingSession:
    """Replies to the requests of one page, which edits and saves one tree.

    A request is an object with an ``action`` and its arguments; a reply is an object, of a request
    that fails with an ``error`` alone: the tree is as before.

    Parameters
    ----------
    editor : TreeEditor
    save : function of the edited estimator, or None
        May return a line that says where it has saved it.
    """

    def __init__(self, editor: TreeEditor, save: Callable[[Any], Any] | None = None) -> None:
        self._editor, self._save = editor, save
        self._saved = list(editor._before)  # edits before this session are not saved either
        self._lock = RLock()

    @property
    def is_saved(self) -> bool:
        """True if the tree is as it was saved last, or as its editor began with it."""
        with self._lock:  # a request in progress may save
            return self._editor.history == self._saved

    def reply(self, request: Any) -> dict[str, Any]:
        """Carry out a request; one at a time."""
        action = request.get("action") if isinstance(request, dict) else None
        if not isinstance(action, str) or action not in _ACTIONS:
            return {"error": f"A request has one of the actions {', '.join(_ACTIONS)}."}
        with self._lock:
            try:
                return _ACTIONS[action](self, request)
            except (GputreeError, OSError) as error:
                return {"error": str(error)}
            except Exception as error:  # of a user's `save`, say: the page waits for a reply
                _log.exception("A request of the page failed.")
                return {"error": f"{type(error).__name__}: {error}"}

    def state(self, request: Any = None) -> dict[str, Any]:
        """The tree as `gputree.export.html.page_data` has it, and the edits that led to it."""
        editor = self._editor
        with self._lock:  # a page may load during an edit
            return {
                "data": editor.page_data(),
                "history": list(map(_in_words, editor.history)),
                "can_undo": editor.can_undo,
                "can_redo": editor.can_redo,
                "can_save": self._save is not None,
                "is_saved": self.is_saved,
            }

    def _describe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Figures of a node, what pruners would do there, and the best splits of all columns."""
        node = _node(request)
        found = self._editor.alternatives(node, MOST_ALTERNATIVES)
        return {
            "summary": self._editor.summary(node),
            "pruning": self._editor.pruning(node),
            "alternatives": [
                asdict(one)
                | {
                    "worth": one.gain if one.gain_ratio is None else one.gain_ratio,
                    "measure": "gain" if one.gain_ratio is None else "gain ratio",
                }
                for one in found
            ],
        }

    def _draw_column(self, request: dict[str, Any]) -> dict[str, Any]:
        """Distribution of the rows at a node over a column."""
        return {"histogram": self._editor.histogram(_node(request), request.get("column"))}

    def _split(self, request: dict[str, Any]) -> dict[str, Any]:
        threshold, categories = request.get("threshold"), request.get("categories")
        self._editor.split(_node(request), request.get("column"), threshold, categories)
        return self.state()

    def _grow(self, request: dict[str, Any]) -> dict[str, Any]:
        limits = request.get("limits", {})
        if not isinstance(limits, dict):
            raise InputError("The limits of growth are an object.")
        self._editor.grow(_node(request), **limits)
        return self.state()

    def _prune(self, request: dict[str, Any]) -> dict[str, Any]:
        self._editor.prune(_node(request))
        return self.state()

    def _undo(self, request: dict[str, Any]) -> dict[str, Any]:
        self._editor.undo()
        return self.state()

    def _redo(self, request: dict[str, Any]) -> dict[str, Any]:
        self._editor.redo()
        return self.state()

    def _save_tree(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._save is None:
            raise InputError("There is no file to save the tree to.")
        message = self._save(self._editor.estimator)
        self._saved = self._editor.history
        return {"message": "Saved." if message is None else str(message), "is_saved": True}


def editing_page(
    session: EditingSession, title: str, in_frame: bool = False, language: str | None = None
) -> str:
    """The page that edits the tree of a session; `in_frame` where a frame shows it."""
    state = session.state()
    page = page_of(state.pop("data"), title, language)
    panel = fill("edit.html.txt", state=as_json(state | {"in_frame": in_frame}))
    return page.replace("</body>\n", panel + "</body>\n")


def _node(request: dict[str, Any]) -> int:
    """The number of the node that a request names."""
    node = request.get("node")
    if not isinstance(node, int) or isinstance(node, bool):
        raise InputError(f"A node is named by its number, got {node!r}.")
    return node


def _in_words(edit: Edit) -> str:
    """An edit as a line of a history."""
    kind = str(edit["edit"])
    if kind == "prune":
        return "prune" if len(edit["paths"]) == 1 else f"prune {len(edit['paths'])} nodes"
    if kind == "grow":
        limits = [f"{name}={_listed(value)}" for name, value in edit.get("limits", {}).items()]
        return " ".join(["grow", *limits])
    column, threshold = edit["column"], edit.get("threshold")
    name = f"x{column}" if isinstance(column, int) else column
    if threshold is not None:
        shown = f"{threshold:.6g}" if isinstance(threshold, float) else threshold
        return f"split by {name} <= {shown}"
    words = edit.get("categories")
    return f"split by {name}" + ("" if words is None else " in " + ", ".join(map(str, words)))


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_ACTIONS: dict[str, Callable[[EditingSession, dict[str, Any]], dict[str, Any]]] = {
    "state": EditingSession.state,
    "describe": EditingSession._describe,
    "histogram": EditingSession._draw_column,
    "split": EditingSession._split,
    "grow": EditingSession._grow,
    "prune": EditingSession._prune,
    "undo": EditingSession._undo,
    "redo": EditingSession._redo,
    "save": EditingSession._save_tree,
}
