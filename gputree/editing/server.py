"""A page that edits a tree by requests and replies as JSON: in a browser, or in a notebook.

It is served to the browser of this machine alone. The address has a secret token. Requests are
accepted for the loopback address only, from this page only: the headers Host, Origin and
Content-Type are checked, so that neither a page of another site nor a name that resolves to this
machine reaches the tree. Nothing is requested from anywhere else.

In a notebook, a widget shows the same page in a frame, which is isolated from the notebook
(``sandbox``): the page and the widget exchange messages.
"""

import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, RLock, Timer
from typing import Any

from gputree.editing.editor import TreeEditor
from gputree.editing.history import Edit
from gputree.errors import GputreeError, InputError
from gputree.export.html import as_json, page_of
from gputree.export.model import fill

MOST_ALTERNATIVES = 40

_log = logging.getLogger("gputree")


class EditingSession:
    """Replies to the requests of one page, which edits and saves one tree.

    A request is an object with an ``action`` and its arguments; a reply is an object, of a request
    that fails with an ``error`` alone: the tree is as before. `save` may return a line that says
    where it has saved the edited estimator.
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


HOST = "127.0.0.1"
MOST_BYTES = 1 << 20  # of a request
GRACE = 3.0  # seconds that a page may take to load again before its end is the server's

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class EditingServer(ThreadingHTTPServer):
    """Serves the page of one session until the page is closed; `language` as of `TreeWidget`."""

    daemon_threads = True

    def __init__(self, session: EditingSession, title: str, language: str | None = None) -> None:
        super().__init__((HOST, 0), _Handler)
        self.session, self.title, self.language = session, title, language
        self.token = secrets.token_urlsafe(24)
        self._lock = Lock()
        self._end: Timer | None = None

    @property
    def origin(self) -> str:
        """Scheme, address and port."""
        return f"http://{HOST}:{self.server_port}"

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"{self.origin}/{self.token}/"

    def end_soon(self, seconds: float = GRACE) -> None:
        """End `serve_forever` unless a request follows: a page that loads again ends first."""
        with self._lock:
            self._forget_end()
            self._end = Timer(seconds, self.shutdown)
            self._end.daemon = True
            self._end.start()

    def go_on(self) -> None:
        """Cancel an end that was to come."""
        with self._lock:
            self._forget_end()

    def _forget_end(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def page(self) -> str:
        """The page, with the tree as it is now."""
        return editing_page(self.session, self.title, language=self.language)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that has closed a connection."""


class _Handler(BaseHTTPRequestHandler):
    """Replies to a request of the page, and to no other."""

    server: EditingServer
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        if not self._is_of_page():
            return self._send(HTTPStatus.FORBIDDEN, "text/plain", "Not the page of this tree.")
        if self.path != f"/{self.server.token}/":
            return self._send(HTTPStatus.NOT_FOUND, "text/plain", "There is one page only.")
        self.server.go_on()
        return self._send(HTTPStatus.OK, "text/html", self.server.page())

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isascii() and length.isdigit() else -1
        if not 0 <= size <= MOST_BYTES:
            self.close_connection = True  # what it sends is not read
            return self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "text/plain", "Too large.")
        body = self.rfile.read(size)
        kind = self.headers.get_content_type()
        if not self._is_of_page() or kind != "application/json":
            return self._send(HTTPStatus.FORBIDDEN, "text/plain", "Not the page of this tree.")
        if self.path == f"/{self.server.token}/end":
            self.server.end_soon()
            return self._send(HTTPStatus.OK, "application/json", "{}")
        if self.path != f"/{self.server.token}/edit":
            return self._send(HTTPStatus.NOT_FOUND, "text/plain", "There is one page only.")
        self.server.go_on()
        try:
            request = json.loads(body)
        except (ValueError, RecursionError):
            request = None
        reply = json.dumps(self.server.session.reply(request), ensure_ascii=False)
        return self._send(HTTPStatus.OK, "application/json", reply)

    def _is_of_page(self) -> bool:
        """Return whether the request names this server, from its page, with its token."""
        origin, server = self.headers.get("Origin"), self.server
        given = self.path.split("/")[1].encode()
        return (
            self.headers.get("Host") == f"{HOST}:{server.server_port}"
            and origin in (None, server.origin)
            and secrets.compare_digest(given, server.token.encode())
        )

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        return "gputree"

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""
