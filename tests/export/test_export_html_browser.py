"""The page of a tree in a browser: it opens, closes, zooms, finds and reports."""

import json
import re
import subprocess

import numpy as np
import pytest
from browser import BROWSER, OPTIONS

from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.datasets import load_iris
from gputree.export import export_html
from gputree.pruning import CostComplexity

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no browser is installed")

IRIS = load_iris()

# What a user does, by the events that the browser would send.
USE = """
<script>{
const told = {errors: []};
addEventListener("error", event => told.errors.push(event.message));
const count = () => document.querySelectorAll("g.node").length;
const node = i => document.querySelector('g.node[data-node="' + i + '"]');
const send = (target, kind, what, more) =>
  target.dispatchEvent(new kind(what, {bubbles: true, cancelable: true, ...more}));
told.first = count();
send(node(0), MouseEvent, "click");
told.closed = count();
send(node(0), MouseEvent, "click", {shiftKey: true});
told.all = count();
document.getElementById("few").click();
told.few = count();
document.getElementById("all").click();
told.expanded = count();
document.getElementById("fit").click();
told.fitted = box.k;
const at = canvas.getBoundingClientRect();
const x = Math.round(at.left + 300), y = Math.round(at.top + 200);
const under = () => [(x - at.left - box.x) / box.k, (y - at.top - box.y) / box.k];
const before = under();
send(canvas, WheelEvent, "wheel", {deltaY: -300, clientX: x, clientY: y});
told.zoomed = box.k;
told.slipped = Math.hypot(under()[0] - before[0], under()[1] - before[1]);
const from = {...box};
send(node(0), PointerEvent, "pointerdown", {clientX: x, clientY: y});
send(canvas, PointerEvent, "pointermove", {clientX: x + 50, clientY: y - 30});
send(canvas, PointerEvent, "pointerup", {});
send(node(0), MouseEvent, "click");  // as browsers do after a drag
told.dragged = [box.x - from.x, box.y - from.y];
told.kept = count();
send(node(1), MouseEvent, "mousemove", {clientX: x, clientY: y});
told.tip = document.getElementById("tip").textContent;
send(canvas, MouseEvent, "mouseleave");
told.gone = document.getElementById("tip").style.display;
document.getElementById("few").click();
search.value = "VIRGINICA";
send(search, Event, "input");
told.found = document.getElementById("count").textContent;
told.marked = document.querySelectorAll("g.node.found").length;
send(search, KeyboardEvent, "keydown", {key: "Enter"});
told.next = document.getElementById("count").textContent;
search.value = "";
send(search, Event, "input");
told.cleared = document.querySelectorAll("g.node.found").length;
const step = document.getElementById("step");
step.value = step.max;
send(step, Event, "input");
told.pruned = document.getElementById("steps").textContent;
document.getElementById("all").click();
told.left = count();
step.value = 0;
send(step, Event, "input");
document.getElementById("few").click();
send(node(0), KeyboardEvent, "keydown", {key: "ArrowRight"});
told.focused = document.activeElement.dataset.node;
send(node(1), KeyboardEvent, "keydown", {key: "ArrowDown"});
told.below = document.activeElement.dataset.node;
send(node(2), KeyboardEvent, "keydown", {key: "ArrowLeft"});
told.parent = document.activeElement.dataset.node;
document.getElementById("try").click();
const fields = [...document.querySelectorAll("#what fieldset")];
told.fields = fields.map(field => field.textContent);
told.outcome = document.getElementById("outcome").textContent;
told.lit = document.querySelectorAll("g.node.lit").length;
const number = fields[0].querySelector("input[type=number]");
number.value = 1e9;
send(number, Event, "input");
told.high = [...lit.keys()];
number.value = "";
send(number, Event, "input");
told.missing = [...lit.keys()];
told.unsure = document.getElementById("outcome").textContent;
document.getElementById("try").click();
told.dark = document.querySelectorAll("g.node.lit").length;
document.body.replaceChildren();
document.body.textContent = "TOLD" + JSON.stringify(told) + "TOLD";
}</script></body>
"""


def use(page, folder, script=USE):
    """Record of a browser that has used the page."""
    file = folder / "tree.html"
    file.write_text(page.replace("</body>\n", script), "utf-8")
    options = [*OPTIONS, f"--user-data-dir={folder}/profile"]
    done = subprocess.run(
        [BROWSER, *options, "--window-size=1000,700", "--dump-dom", file.as_uri()],
        capture_output=True,
        timeout=120,
        check=True,
    )
    (text,) = re.findall("TOLD(.*)TOLD", done.stdout.decode().replace("&gt;", ">"), re.S)[-1:]
    return json.loads(text.replace("&lt;", "<"))


def test_a_small_tree(tmp_path):
    model = DecisionTreeClassifier(max_depth=3).fit(IRIS.data, IRIS.target)
    told = use(export_html(model, feature_names=IRIS.feature_names), tmp_path)
    assert told["errors"] == []
    assert (told["first"], told["closed"], told["all"]) == (9, 1, 9)
    assert (told["few"], told["expanded"], told["kept"]) == (3, 9, 9)
    assert told["zoomed"] > told["fitted"]
    assert told["slipped"] == pytest.approx(0.0, abs=1e-6)
    assert told["dragged"] == pytest.approx([50.0, -30.0])
    assert told["tip"].startswith("petal length <= 2.45setosa (50)")
    assert told["gone"] == "none"
    n_found = sum("virginica" in word for word in _answers(model))
    assert told["found"] == f"1 of {n_found}"
    assert told["next"] == f"2 of {n_found}"
    assert 0 < told["marked"] <= n_found
    assert told["cleared"] == 0
    assert (told["pruned"], told["left"]) == ("1 leaf, alpha 0.333", 1)
    assert (told["focused"], told["below"], told["parent"]) == ("1", "2", "0")
    assert told["fields"] == ["petal length", "petal width"]
    assert told["outcome"].startswith("versicolor (")
    assert told["lit"] == 4
    assert told["high"][:2] == [0, 2]
    assert told["missing"][:2] == [0, 1 + int(model.tree_.missing_child[0])]
    assert told["dark"] == 0


def _answers(model):
    return model.classes_[model.tree_.statistics.argmax(axis=1)]


def test_rows_that_go_down_every_branch_have_the_class_of_the_least_cost(tmp_path):
    X, y = np.array([[0.0], [0], [0], [0], [1], [1]]), np.array(list("aaabbc"))
    for costs, answer in ((None, "a (50.0%)"), ([[0, 1, 1], [8, 0, 9], [30, 6, 0]], "b (44.7%)")):
        model = C45Classifier(misclassification_costs=costs, min_samples_leaf=1, pruning=None)
        told = use(export_html(model.fit(X, y)), tmp_path)
        assert told["errors"] == []
        assert told["unsure"] == answer
        assert model.predict([[np.nan]])[0] == answer[0]


def test_a_thousand_leaves(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2200, 2))
    y = rng.choice(["setosa", "versicolor", "virginica"], 2200)
    model = DecisionTreeClassifier(max_leaf_nodes=1000).fit(X, y)
    told = use(export_html(model), tmp_path)
    assert told["errors"] == []
    assert 1 < told["first"] <= 40
    assert (told["closed"], told["all"], told["expanded"]) == (1, 1999, 1999)
    assert told["zoomed"] > told["fitted"]
    assert re.fullmatch(r"2 of \d+", told["next"])


# The slider from end to end, the options of colour and width, the keyboard, in Chinese.
LOOK = """
<script>{
const told = {errors: [], errors_of_rows: []};
addEventListener("error", event => told.errors.push(event.message));
const step = document.getElementById("step"), paint = document.getElementById("paint");
told.language = document.documentElement.lang;
told.title = document.title;
told.about = document.getElementById("about").textContent;
told.colours = [...paint.options].map(option => option.textContent);
const labels = [...document.querySelectorAll("header button, header label")];
const words = labels.map(one => one.textContent.trim().replace(/setosa|versicolor|virginica/g, ""));
told.english = words.filter(one => /[a-z]/.test(one));
told.steps = steps;
for (let s = 0; s < steps.length; s++) {
  step.value = s;
  step.dispatchEvent(new Event("input"));
  told.errors_of_rows.push(losses[s][1]);
}
told.pruned = document.getElementById("steps").textContent;
step.value = 0;
step.dispatchEvent(new Event("input"));
for (const kind of ["none", "class", "2"]) {
  paint.value = kind;
  paint.dispatchEvent(new Event("change"));
  const tints = [...document.querySelectorAll(".paint")];
  (told.tints ??= []).push(tints.map(one => Number(one.getAttribute("fill-opacity"))));
}
const wide = document.getElementById("wide");
const edges = () => [...document.querySelectorAll(".edge")];
const widths = () => edges().map(one => one.getAttribute("stroke-width"));
told.wide = new Set(widths()).size > 1;
wide.click();
told.thin = new Set(widths()).size;
const places = () => [...view.querySelectorAll('g.node[tabindex="0"]')];
const stops = () => places().map(node => Number(node.dataset.node));
told.stops = [stops()];
for (const key of ["End", "ArrowUp", "Home"]) {
  document.activeElement.closest?.("g.node") ?? view.querySelector("g.node").focus();
  const event = new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true});
  document.activeElement.dispatchEvent(event);
  told.stops.push(stops());
}
document.body.replaceChildren();
document.body.textContent = "TOLD" + JSON.stringify(told) + "TOLD";
}</script></body>
"""


def test_the_slider_has_the_errors_of_validation_rows(tmp_path):
    X, y = IRIS.data, IRIS.target
    model = DecisionTreeClassifier().fit(X[::2], y[::2])
    rows = X[1::2], y[1::2]
    told = use(export_html(model, validation=rows, language="zh"), tmp_path, LOOK)
    assert told["errors"] == []
    pruned = [CostComplexity(alpha=max(alpha, 0.0)).prune(model) for alpha in told["steps"]]
    expected = [1.0 - tree.score(*rows) for tree in pruned]
    assert told["errors_of_rows"] == pytest.approx(expected)
    assert len(set(told["errors_of_rows"])) > 1
    assert told["pruned"].startswith("1 个叶结点, \u03b1 = 0.333, 验证集错误率 66.7%")
    assert (told["language"], told["title"], told["english"]) == ("zh-CN", "决策树", [])
    assert told["about"].startswith(f"分类树, {model.tree_.n_nodes} 个结点")
    assert told["colours"][:3] == ["无", "按类别", "比例\uff1asetosa"]
    none, by_class, share = told["tints"]
    assert none == []
    assert by_class[0] == 0.0  # as many of each class
    assert share[0] == 0.15
    assert (told["wide"], told["thin"]) == (True, 1)
    last = told["stops"][1][0]
    assert told["stops"][0] == told["stops"][3] == [0]
    assert last not in (0, *told["stops"][2])


def test_one_node_and_one_row_are_no_plural(tmp_path):
    page = export_html(DecisionTreeRegressor().fit([[0.0]], [1.0]), language="en")
    script = """<script>document.body.textContent = "TOLD" + JSON.stringify(
        document.getElementById("about").textContent) + "TOLD";</script></body>\n"""
    assert use(page, tmp_path, script) == "regression, 1 node, 1 leaf, depth 0, 1 row"


@pytest.mark.parametrize(("targets", "shown"), [(2, 2), (4, 4), (5, 3)])
def test_boxes_have_a_line_for_each_of_several_targets(targets, shown, tmp_path):
    y = np.arange(6.0)[:, np.newaxis] + 1000.0 * np.arange(targets)
    page = export_html(DecisionTreeRegressor(max_depth=1).fit(y[:, :1], y))
    script = """<script>document.body.textContent = "TOLD" + JSON.stringify(
        [...document.querySelector(".node").querySelectorAll("text")].map(line => line.textContent)
        ) + "TOLD";</script></body>"""
    first = ["2.5", "1002.5", "2002.5", "3002.5"][:shown]
    left = [] if shown >= targets else ["\u2026"]
    assert use(page, tmp_path, script) == ["all rows", *first, *left, "(6, mse 2.917)"]


def test_several_targets_have_no_colours(tmp_path):
    script = """<script>document.body.textContent =
    "TOLD" + document.getElementById("colours").hidden + "TOLD";</script></body>"""
    for targets, hidden in ((1, False), (2, True)):
        y = np.column_stack([IRIS.target] * targets)
        model = DecisionTreeClassifier(max_depth=2).fit(IRIS.data, y if targets > 1 else y[:, 0])
        assert use(export_html(model), tmp_path, script) is hidden
