"""A tree that is edited from a page: the session, the server that serves the page, and the page."""

import html
import http.client
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browser import BROWSER, OPTIONS

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor, load_model
from gputree.base.dtypes import NO_FEATURE
from gputree.cli import edit as edit_command
from gputree.datasets import load_iris
from gputree.editing import TreeEditor
from gputree.editing.server import MOST_BYTES, EditingServer, EditingSession, editing_page
from gputree.export.model import TEMPLATES

IRIS = load_iris()
X = pd.DataFrame(IRIS.data, columns=IRIS.feature_names)[::2]
X["kind"] = np.where(X["petal width"] > 1.6, "<b>wide</b>", "narrow")
y = IRIS.target[::2]


def new_session(kind: Any = DecisionTreeClassifier, save: Any = None, **params: Any) -> Any:
    return EditingSession(TreeEditor(kind(max_depth=3, **params), X, y, validation=(X, y)), save)


# ------------------------------------------------------------------- session
@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor, C45Classifier])
def test_requests_are_edits(kind):
    """The tree is that of an editor to which the same is done, and replies have its numbers."""
    target = y if kind is not DecisionTreeRegressor else X["sepal length"].to_numpy()
    editor, twin = (TreeEditor(kind(max_depth=3), X, target) for _ in range(2))
    session = EditingSession(editor)
    requests = [
        {"action": "split", "node": 0, "column": "petal width", "threshold": 0.8},
        {"action": "grow", "node": int(editor.numbers.max()) + 2, "limits": {"max_depth": 2}},
        {"action": "prune", "node": 0},
        {"action": "undo"},
        {"action": "split", "node": 0, "column": "kind"},
        {"action": "undo"},
        {"action": "redo"},
    ]
    edits = [
        lambda: twin.split(0, "petal width", threshold=0.8),
        lambda: twin.grow(int(twin.numbers.max()), max_depth=2),
        lambda: twin.prune(0),
        twin.undo,
        lambda: twin.split(0, "kind"),
        twin.undo,
        twin.redo,
    ]
    for request, edit in zip(requests, edits, strict=True):
        reply = session.reply(request)
        edit()
        assert editor.estimator.tree_.equals(twin.estimator.tree_)
        assert reply["data"]["id"] == twin.numbers.tolist()
        assert len(reply["history"]) == len(twin.history)
        assert (reply["can_undo"], reply["can_redo"]) == (twin.can_undo, twin.can_redo)
        json.dumps(reply, allow_nan=False)
    assert reply["history"] == ["split by petal width <= 0.8", "grow max_depth=2", "split by kind"]


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, C45Classifier])
def test_a_node_is_described(kind):
    session = new_session(kind)
    editor = session._editor
    for node in [*editor.numbers.tolist(), None]:
        if node is None:  # the root, as a leaf
            node = 0
            editor.prune(node)
        reply = session.reply({"action": "describe", "node": node})
        found = editor.alternatives(node)
        assert [one["condition"] for one in reply["alternatives"]] == [a.condition for a in found]
        assert reply["summary"] == editor.summary(node)
        assert reply["pruning"] == editor.pruning(node)
        json.dumps(reply, allow_nan=False)  # the page parses no other numbers


@pytest.mark.parametrize("weighted", [False, True])
def test_a_histogram_counts_rows(weighted):
    """Comparing values counts the same rows in each range; one at an edge is below it."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 9, (80, 2)).astype(np.float64)
    table = pd.DataFrame(values, columns=["a", "b"]).assign(c=rng.choice(list("xyz"), 80))
    table.loc[::7, "a"] = np.nan
    label, weight = rng.integers(0, 3, 80), rng.integers(0, 3, 80) if weighted else None
    fitted = DecisionTreeClassifier(max_depth=2).fit(table, label, weight)
    editor = TreeEditor(fitted, table, label, weight)
    for node in editor.numbers.tolist():
        rows = editor.rows(node)
        given = np.ones(80) if weight is None else weight
        for column in ("a", "b", "c"):
            found = editor.histogram(node, column, 4)
            x, w = table[column].to_numpy()[rows], given[rows]
            if column == "c":
                inside = [x == word for word in found["categories"]]
            else:
                ends = found["edges"]
                assert (len(ends), ends[0], ends[-1]) == (5, np.nanmin(x), np.nanmax(x))
                inside = [
                    (x <= b) & ((x > a) | (k == 0)) for k, (a, b) in enumerate(pairwise(ends))
                ]
            expected = [[w[i & (label[rows] == k)].sum() for k in range(3)] for i in inside]
            assert found["weights"] == expected
            assert found["missing"] == w[pd.isna(x)].sum()
            assert found["others"] == 0
    most = editor.histogram(0, "c", 1)
    assert len(most["categories"]) == 1
    assert most["others"] + sum(most["weights"][0]) == given.sum()
    with pytest.raises(ValueError, match="bins must be 1 or more"):
        editor.histogram(0, "c", 0)


def test_a_histogram_of_a_column_without_values_has_no_categories():
    X = np.column_stack([np.full(80, np.nan), np.arange(80.0)])
    fitted = DecisionTreeClassifier(max_depth=2, categorical_features=[0]).fit(X, X[:, 1] > 40)
    found = TreeEditor(fitted, X, X[:, 1] > 40).histogram(0, 0, 3)
    assert found == {"categories": [], "weights": [], "missing": 80.0, "others": 0.0}


def test_columns_without_names_are_called_as_the_page_shows_them():
    editor = TreeEditor(DecisionTreeClassifier(max_depth=2), IRIS.data, IRIS.target)
    session = EditingSession(editor)
    for one in session.reply({"action": "describe", "node": 0})["alternatives"]:
        request = {"node": 0, "column": one["column"]}
        assert "histogram" in session.reply({"action": "histogram"} | request)
        reply = session.reply({"action": "split"} | request)
        assert reply["data"]["condition"][1] == one["condition"]
    limits = {"exclude": ["x2", "x3"]}
    assert session.reply({"action": "grow", "node": 0, "limits": limits})["data"]
    assert set(editor.estimator.tree_.feature.tolist()) <= {0, 1, NO_FEATURE}
    reply = session.reply({"action": "histogram", "node": 0, "column": "x4"})
    assert "There is no column 'x4'." in reply["error"]


def test_targets_have_bars_of_one_part():
    editor = TreeEditor(DecisionTreeRegressor(max_depth=1), X, X["sepal length"].to_numpy())
    reply = EditingSession(editor).reply(
        {"action": "histogram", "node": 0, "column": "petal width"}
    )
    assert sum(map(sum, reply["histogram"]["weights"])) == len(X)
    assert {len(bar) for bar in reply["histogram"]["weights"]} == {1}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (None, "A request has one of the actions state, describe"),
        ([], "A request has one"),
        ({"action": "__class__"}, "A request has one"),
        ({"action": ["prune"]}, "A request has one"),
        ({"action": "prune"}, "A node is named by its number, got None"),
        ({"action": "prune", "node": True}, "got True"),
        ({"action": "prune", "node": 99}, "The tree has no node 99"),
        ({"action": "split", "node": 0, "column": "petal"}, "There is no column 'petal'"),
        ({"action": "split", "node": 0, "column": "kind", "threshold": 1}, "split by 'categories'"),
        ({"action": "split", "node": 0, "column": "petal width", "threshold": "a"}, "be a number"),
        ({"action": "grow", "node": 0, "limits": 3}, "limits of growth are an object"),
        ({"action": "grow", "node": 0, "limits": {"max_depth": -1}}, "max_depth"),
        ({"action": "undo"}, "There is no edit to undo"),
        ({"action": "redo"}, "There is no edit to redo"),
        ({"action": "save"}, "There is no file to save the tree to"),
    ],
)
def test_what_fails_is_an_error_and_changes_nothing(request_, words):
    session = new_session()
    before = session._editor.estimator.tree_
    reply = session.reply(request_)
    assert list(reply) == ["error"]
    assert words in reply["error"]
    assert session._editor.estimator.tree_.equals(before)


def test_what_is_not_saved_is_known():
    saved = []
    session = new_session(save=lambda estimator: saved.append(estimator) or "Saved to a.")
    assert session.is_saved
    assert not session.reply({"action": "prune", "node": 0})["is_saved"]
    assert session.reply({"action": "save"}) == {"message": "Saved to a.", "is_saved": True}
    assert saved[0].tree_.n_nodes == 1
    assert not session.reply({"action": "undo"})["is_saved"]
    assert session.reply({"action": "redo"})["is_saved"]


def test_a_file_that_cannot_be_written_is_an_error():
    def fail(estimator: Any) -> str:
        raise OSError("no space left")

    session = new_session(save=fail)
    session.reply({"action": "prune", "node": 0})
    assert session.reply({"action": "save"}) == {"error": "no space left"}
    assert not session.is_saved


def test_a_function_that_saves_and_fails_is_replied_to(caplog):
    """A page waits for the reply; the log has the traceback."""
    session = new_session(save=lambda estimator: {}[0])
    session.reply({"action": "prune", "node": 0})
    assert session.reply({"action": "save"}) == {"error": "KeyError: 0"}
    assert not session.is_saved
    assert "KeyError" in caplog.text


def test_edits_before_the_page_can_be_saved():
    editor = TreeEditor(DecisionTreeClassifier(max_depth=3), X, y)
    editor.prune(0)
    assert not EditingSession(editor).is_saved
    edited = TreeEditor(editor.estimator, X, y)  # of the history that its file has
    assert EditingSession(edited).is_saved


def test_a_page_that_loads_during_a_request_has_the_tree_after_it():
    """Costs 50 ms, in which the page must not be there."""
    pages: list[str] = []

    def load(estimator: Any) -> None:
        reader.start()
        reader.join(0.05)
        assert reader.is_alive()

    session = new_session(save=load)
    reader = Thread(target=lambda: pages.append(editing_page(session, "tree")))
    session.reply({"action": "prune", "node": 0})
    assert session.reply({"action": "save"})["is_saved"]
    reader.join()
    assert '"is_saved":true' in pages[0]


# -------------------------------------------------------------------- server
@contextmanager
def served(session: Any, title: str = "A <tree>") -> Iterator[Any]:
    """A server at work in another thread."""
    with EditingServer(session, title) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def send(server: Any, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and text of a reply; headers are those of the page unless others are given."""
    kept = {"Host": f"127.0.0.1:{server.server_port}", "Content-Type": "application/json"}
    kept |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, {k: v for k, v in kept.items() if v})
    reply = connection.getresponse()
    found = reply.status, reply.read().decode()
    connection.close()
    return found


def test_the_page_edits_its_tree():
    session = new_session()
    with served(session) as server:
        root = f"/{server.token}/"
        status, page = send(server, "GET", root)
        assert status == 200
        assert "A &lt;tree&gt;" in page
        assert "<b>wide" not in page
        status, text = send(server, "POST", f"{root}edit", {"action": "prune", "node": 0})
        assert (status, json.loads(text)["data"]["id"]) == (200, [0])
        assert session._editor.estimator.tree_.n_nodes == 1
        assert json.loads(send(server, "POST", f"{root}edit", "no object")[1]).keys() == {"error"}


def test_nobody_else_reaches_the_tree():
    session = new_session()
    before = session._editor.estimator.tree_
    prune = {"action": "prune", "node": 0}
    with served(session) as server:
        root, port = f"/{server.token}/", server.server_port
        assert server.server_address[0] == "127.0.0.1"
        refused = [
            send(server, "GET", "/"),
            send(server, "GET", f"/{server.token[:-1]}/"),
            send(server, "GET", root, Host=f"evil.example:{port}"),
            send(server, "GET", root, Host="127.0.0.1"),
            send(server, "GET", root, Origin="http://evil.example"),
            send(server, "POST", "/wrong/edit", prune),
            send(server, "POST", f"{root}edit", prune, Host=f"evil.example:{port}"),
            send(server, "POST", f"{root}edit", prune, Origin=f"http://localhost:{port}"),
            send(server, "POST", f"{root}edit", prune, Origin="null"),
            send(server, "POST", f"{root}edit", prune, Content_Type="text/plain"),
            send(server, "POST", f"{root}edit", prune, Content_Type=""),
            send(server, "POST", f"{root}end", {}, Origin="http://evil.example"),
        ]
        assert {status for status, _ in refused} == {403}
        assert send(server, "GET", f"{root}other")[0] == 404
        assert send(server, "POST", f"{root}other", prune)[0] == 404
        assert send(server, "POST", f"{root}edit", Content_Length=str(MOST_BYTES + 1))[0] == 413
        assert send(server, "POST", f"{root}edit", Content_Length="x")[0] == 413
        assert send(server, "PUT", f"{root}edit", prune)[0] == 501
        for attempt in refused:
            assert server.token not in attempt[1]
    assert session._editor.estimator.tree_ is before


def test_the_server_ends_with_the_page(monkeypatch):
    with EditingServer(new_session(), "tree") as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        root = f"/{server.token}/"
        server.end_soon(60.0)  # the page is closed, and loads again
        assert send(server, "GET", root)[0] == 200
        assert server._end is None
        monkeypatch.setattr(
            EditingServer, "end_soon", lambda self: Thread(target=self.shutdown).start()
        )
        assert send(server, "POST", f"{root}end", {})[0] == 200
        thread.join(20)
        assert not thread.is_alive()


# ------------------------------------------------------------------- command
def test_the_command_serves_and_saves(gputree, tmp_path, monkeypatch):
    X.assign(species=y).to_csv(tmp_path / "iris.csv", index=False)
    table, model, out = (str(tmp_path / name) for name in ("iris.csv", "a.gputree", "b.gputree"))
    gputree("train", table, "--target", "species", "--max-depth", "2", "-o", model)

    def use(address: str) -> None:
        def work() -> None:
            _, port, token = re.fullmatch(r"(http://127.0.0.1):(\d+)/(.*)/", address).groups()
            server = type("Of", (), {"server_port": int(port)})
            for action in ({"action": "prune", "node": 0}, {"action": "save"}, {"action": "undo"}):
                send(server, "POST", f"/{token}/edit", action)
            send(server, "POST", f"/{token}/end", {})

        Thread(target=work).start()

    monkeypatch.setattr(edit_command.webbrowser, "open", use)
    monkeypatch.setattr(EditingServer.end_soon, "__defaults__", (0.05,))
    status, _, errors = gputree("edit", model, "--data", table, "--browser")
    assert (status, "--browser takes -o" in errors) == (2, True)
    options = ("--validation", table, "--browser", "-o", out)
    status, _, errors = gputree("edit", model, "--data", table, *options)
    assert status == 0
    assert "the tree is at http://127.0.0.1:" in errors
    assert f"the last edits were not saved to {out}" in errors
    saved = load_model(out)
    assert saved.tree_.n_nodes == 1
    assert [edit["edit"] for edit in saved.edits_] == ["prune"]


# ---------------------------------------------------------------------- page
USE = """
<script>{
const told = {errors: []}, wait = done => new Promise(resolve => {
  const look = () => done() ? resolve() : setTimeout(look, 20);
  look();
});
addEventListener("error", event => told.errors.push(event.message));
const panel = () => document.getElementById("edit");
const rows = () => panel().querySelectorAll("tr button:not(.plain)");
const press = words =>
  [...document.querySelectorAll("button")].find(one => one.textContent === words).click();
const node = i => document.querySelector('g.node[data-node="' + i + '"]');
const click = i => node(i).dispatchEvent(new MouseEvent("click", {bubbles: true}));
const tell = found => { document.body.textContent = "TOLD" + JSON.stringify(found) + "TOLD"; };
(async () => {
  await wait(() => rows().length);
  told.heading = panel().querySelector("h2").textContent;
  told.splits = [...panel().querySelectorAll("tr")].slice(1).map(row => row.cells[0].textContent);
  told.used = panel().querySelectorAll("tr.used").length;
  const cut = panel().querySelector("tr input");
  told.cut = cut.value;
  await wait(() => panel().querySelector("figcaption"));
  told.bars = panel().querySelectorAll("figure rect").length;
  cut.value = "3";
  rows()[0].click();
  await wait(() => data.id.length === 3 && rows().length);
  told.condition = data.condition[1];
  told.title = document.title;
  press("Undo");
  await wait(() => data.id.length > 3);
  press("Redo");
  await wait(() => data.id.length === 3);
  click(2);
  const heading = () => panel().querySelector("h2").textContent;
  await wait(() => rows().length && heading().startsWith("Node " + data.id[2]));
  told.chosen = document.querySelectorAll("g.node.chosen").length;
  press("Grow again");
  await wait(() => data.id.length > 3);
  told.history = [...panel().querySelectorAll("li")].map(one => one.textContent);
  told.grown = data.id;
  press("Save");
  await wait(() => document.getElementById("said").textContent);
  told.said = document.getElementById("said").textContent;
  told.saved = document.title;
  document.body.replaceChildren();
  tell(told);
})().catch(error => tell({errors: [String(error.stack)]}));
}</script></body>
"""


# The time of scripts passes as it must, in frames as well.
CLOCK = ["--virtual-time-budget=60000", "--disable-features=IsolateSandboxedIframes"]


def seen(address: str, folder: Path) -> Any:
    """Record of a browser that has opened a page."""
    options = [*OPTIONS, f"--user-data-dir={folder}/profile"]
    done = subprocess.run(
        [BROWSER, *options, *CLOCK, "--dump-dom", address],
        capture_output=True,
        timeout=120,
        check=True,
    )
    (text,) = re.findall("TOLD(.*)TOLD", html.unescape(done.stdout.decode()), re.S)[-1:]
    return json.loads(text)


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_the_page_in_a_browser(tmp_path, monkeypatch):
    session = new_session(save=lambda estimator: "Saved to a file.")
    page = EditingServer.page
    monkeypatch.setattr(EditingServer, "page", lambda self: page(self).replace("</body>\n", USE))
    with served(session, "tree") as server:
        told = seen(server.address, tmp_path)
    assert told["errors"] == []
    assert told["heading"].startswith("Node 0")
    assert len(told["splits"]) == X.shape[1]
    assert "kind = <b>wide</b>" in told["splits"]
    assert (told["used"], told["cut"]) == (1, "2.45")
    assert told["condition"] == "petal length <= 3"
    assert (told["title"], told["saved"]) == ("* tree", "tree")
    assert told["chosen"] == 1
    weights = np.array(new_session()._editor.histogram(0, "petal length")["weights"])
    assert told["bars"] == np.count_nonzero(weights)
    assert told["history"] == ["split by petal length <= 3", "grow"]
    assert told["said"] == "Saved to a file."
    assert told["grown"] == session._editor.numbers.tolist()


# -------------------------------------------------------------------- widget
HOST = """<html><body><div id="out"></div><script type="module">
{module}
const page = {page}, replies = {replies}, handlers = [], kinds = [];
const model = {{
  get: name => ({{page, height: 500}})[name],
  send: ({{number, request}}) => {{
    kinds.push(request.action);
    setTimeout(() => handlers.forEach(pass => pass({{number, reply: replies[request.action]}})));
  }},
  on: (name, pass) => handlers.push(pass),
  off: (name, pass) => handlers.splice(handlers.indexOf(pass), 1),
}};
const end = render({{model, el: document.getElementById("out")}});
addEventListener("message", () => {{
  if (!["state", "describe", "histogram"].every(kind => kinds.includes(kind))) return;
  end();
  document.body.textContent = "TOLD" + JSON.stringify({{kinds, left: handlers.length}}) + "TOLD";
}});
</script></body></html>"""


def test_a_widget_replies_under_the_number_of_a_message():
    pytest.importorskip("anywidget", reason="the widget needs the extra notebook")
    from gputree.editing import TreeWidget

    editor = TreeEditor(DecisionTreeClassifier(max_depth=2), X, y)
    saved: list[Any] = []
    widget = TreeWidget(editor, saved.append, height=300)
    sent: list[Any] = []
    widget.send = lambda content, buffers=None: sent.append(content)
    for message in ({"number": 7, "request": {"action": "prune", "node": 0}}, "no object", {}):
        widget._reply(widget, message, [])
    assert [(one["number"], "error" in one["reply"]) for one in sent] == [(7, False), (None, True)]
    assert editor.estimator.tree_.n_nodes == 1
    widget._reply(widget, {"number": 8, "request": {"action": "save"}}, [])
    assert sent[-1] == {"number": 8, "reply": {"message": "Saved.", "is_saved": True}}
    assert saved[0].tree_.n_nodes == 1
    assert widget.height == 300


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_the_frame_of_a_widget_sends_and_reads_messages(tmp_path):
    session = new_session()
    requests = {
        "state": {"action": "state"},
        "describe": {"action": "describe", "node": 0},
        "histogram": {"action": "histogram", "node": 0, "column": "petal width"},
    }
    given = (
        editing_page(session, "tree", True),
        {k: session.reply(v) for k, v in requests.items()},
    )
    page, replies = (json.dumps(value).replace("<", "\\u003c") for value in given)
    module = (
        (TEMPLATES / "widget.js.txt").read_text("utf-8").replace("export default {render};", "")
    )
    file = tmp_path / "notebook.html"
    file.write_text(HOST.format(module=module, page=page, replies=replies), "utf-8")
    told = seen(file.as_uri(), tmp_path)
    assert set(told["kinds"]) == set(requests)
    assert told["left"] == 0
