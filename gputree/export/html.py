"""A tree as a page of HTML that is whole in itself: collapse, prune, zoom, search, try a row."""

import html
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from gputree.base.dtypes import THRESHOLD_SPLIT
from gputree.base.files import FilePath, replaced_file
from gputree.errors import InputError
from gputree.export.describe import Description, descendants, describe
from gputree.export.model import LANGUAGES, Model, fill, model_of
from gputree.export.palette import class_color
from gputree.export.parameters import checked
from gputree.inputs.labels import relative_costs
from gputree.prediction.losses import RoutedRows, node_loss, route
from gputree.tree import Tree
from gputree.tree.weakest_links import weakest_links

_MEASURES = {"poisson": "half deviance"}  # of losses; those of other targets are squared errors
_OPEN_NODES = 40  # levels are open at first as long as they have no more nodes than this
_MOST_DETAILS = 12  # classes listed where the pointer rests
_MOST_CODES = 1 << 18  # categories of all splits together, up to which the page tries rows


class TreePage(str):
    """A page of HTML: a string that notebooks show, and that can be saved."""

    def _repr_html_(self) -> str:
        page = html.escape(self, quote=True)
        return (
            f'<iframe srcdoc="{page}" style="width: 100%; height: 480px; border: 1px solid #ccc" '
            'title="Decision tree"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<TreePage of {len(self):,} characters; save(path) writes it to a file>"

    def save(self, path: FilePath) -> None:
        """Write the page to a file; an older file of that name is replaced, or kept on failure."""
        with replaced_file(path) as file:
            file.write(self.encode())


@checked
def export_html(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    decimals: int | None = 4,
    title: str = "Decision tree",
    validation: Sequence[Any] | None = None,
    language: str | None = None,
) -> TreePage:
    """Draw a fitted tree as a page of HTML, for a browser or a notebook.

    The root is at the left. A box has the condition that leads to it, the prediction, the support
    and a bar of the class proportions (or of the mean target between the minimum and the maximum);
    lines are as thick as the weight of the rows that follow them. A click expands or collapses a
    node (with shift its subtree), arrow keys go from node to node, the wheel zooms, dragging moves,
    the search finds conditions and predictions, and hovering shows the full path. *Prune* shows the
    tree at each step of its cost-complexity path, with the error of the validation rows there;
    *Colour* tints the boxes by class, the proportion of a class or the mean; *What if* takes a
    value for each column that the tree tests, and marks the way of such a row and its prediction.
    The page makes no network requests.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    feature_names, class_names, decimals
        As in `export_text`.
    title : str, default="Decision tree"
    validation : tuple (X, y) or (X, y, sample_weight), default=None
        Rows that the tree was not grown on; of a fitted estimator.
    language : "en", "zh" or None, default=None
        Of the labels; None for that of the browser.

    Returns
    -------
    TreePage
        A string; ``save(path)`` writes it, and a notebook shows it as it is.

    {raises}
    ValueError
        The number of names does not fit the tree, `decimals` is negative, `language` is none of
        these, or `validation` is given for a `Tree`.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import export_html
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target)
    >>> page = export_html(tree, feature_names=iris.feature_names, title="Iris")
    >>> page.save("iris.html")
    """
    data = page_data(estimator_or_tree, feature_names, class_names, decimals)
    if validation is not None:
        if not hasattr(estimator_or_tree, "tree_"):
            raise InputError(
                "'validation' takes a fitted estimator, which reads rows, and no Tree."
            )
        data["validation"] = losses_of(
            estimator_or_tree.tree_, routed(estimator_or_tree, validation)
        )
    return page_of(data, title, language)


def page_of(data: dict[str, Any], title: str, language: str | None = None) -> TreePage:
    """The page of some `page_data`, in a language, or that of the browser."""
    if language not in (None, *LANGUAGES):
        raise InputError(
            f"language must be one of {', '.join(LANGUAGES)}, or None, got {language!r}."
        )
    given = {"title": html.escape(title), "data": as_json(data), "language": language or ""}
    return TreePage(fill("tree.html.txt", **given))


def routed(estimator: Any, rows: Sequence[Any]) -> RoutedRows:
    """Validation rows, (X, y) or (X, y, weight), at the nodes where they stop."""
    X, y, *weight = rows
    return route(estimator, X, y, weight[0] if weight else None)


def losses_of(tree: Tree, data: RoutedRows) -> dict[str, Any]:
    """Losses of validation rows at each node, and their weight, as the page reads them."""
    loss = node_loss(tree, data)
    return {
        "measure": _MEASURES.get(tree.criterion, "mean squared error")
        if tree.task == "regression"
        else "error",
        "weight": float(data.weight.sum()) or 1.0,
        "as_leaf": loss.as_leaf.tolist(),
        "stopped": loss.stopped.tolist(),
    }


def as_json(content: dict[str, Any]) -> str:
    """JSON for a script element, which no text in it can end."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def page_data(
    estimator_or_tree: Any,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    decimals: int | None = 4,
) -> dict[str, Any]:
    """Input of the page's script, as JSON has it; parameters are those of `export_html`."""
    description = describe(estimator_or_tree, feature_names, class_names, decimals, of_targets=True)
    model = model_of(
        estimator_or_tree, description.feature_names, class_names,
        only_shown=True, by_costs=True, of_targets=True,
    )  # fmt: skip
    return _data(description) | _tests(model)


def _data(description: Description) -> dict[str, Any]:
    """Input of the page's script: lists with one entry a node."""
    tree, nodes = description.tree, range(description.tree.n_nodes)
    names, costs = description.class_names, description.costs
    sizes = [level.stop for level in tree.levels()]
    alpha = weakest_links(tree, "impurity").alpha
    return {
        "parent": tree.parent.tolist(),
        "depth": tree.depth.tolist(),
        "weight": tree.weight.tolist(),
        "below": descendants(tree).tolist(),
        "condition": ["", *(str(description.condition(node)) for node in nodes[1:])],
        "prediction": [description.answer(node) for node in nodes],
        "support": [description.support(node) for node in nodes],
        "targets": [*map(description.predictions, nodes)] if tree.n_outputs > 1 else None,
        "bars": _bars(tree),
        "details": [_details(description, node) for node in nodes],
        "alpha": [a if np.isfinite(a) else None for a in alpha.tolist()],
        "colors": [class_color(k) for k in range(tree.n_classes)],
        "costs": None if costs is None else relative_costs(costs).tolist(),
        "legend": [] if names is None else [[name, k] for k, name in enumerate(names)],
        "about": [tree.task, tree.n_leaves, tree.max_depth, float(tree.weight[0])],
        "open": max(sum(size <= _OPEN_NODES for size in sizes) - 1, 1),
    }


def _tests(model: Model) -> dict[str, Any]:
    """Columns that the tree tests, and the test of each node, for rows that are tried.

    A column is [name, categories or None, minimum and maximum of its thresholds]; a test is
    [column, threshold or None, ordinal of the child by code, and of missing and of other values].
    """
    places: dict[int, int] = {}
    columns: list[list[Any]] = []
    tests: list[list[Any] | None] = [None] * model.tree.n_nodes
    n_codes = 0
    for node in np.flatnonzero(~model.tree.is_leaf).tolist():
        split = model.as_sets(model.split(node))
        if split.feature not in places:
            places[split.feature] = len(columns)
            columns.append([model.feature_names[split.feature], _words(model, split.feature)])
            columns[-1] += [np.inf, -np.inf]
        column, x, unseen = columns[places[split.feature]], split.threshold, split.unseen
        n_codes += sum(codes.size for codes in split.codes)
        if n_codes > _MOST_CODES:
            return {"columns": [], "tests": []}
        if x is not None and np.isinf(x):  # only missing values go to the second child
            x, unseen = None, 0
        if x is not None:
            column[2:] = min(column[2], x), max(column[3], x)
        ordinals = {int(code): o for o, codes in enumerate(split.codes) for code in codes}
        tests[node] = [places[split.feature], x, ordinals, split.missing, unseen]
    for column in columns:
        if column[2] > column[3]:
            column[2:] = 0.0, 0.0
    return {"columns": columns, "tests": tests}


def _words(model: Model, feature: int) -> list[str] | None:
    """Categories of a column in the order of their codes; None of a numeric one."""
    if (categories := model.categories[feature]) is not None:
        return [str(category) for category in categories.tolist()]
    tree = model.tree
    nodes = np.flatnonzero((tree.feature == feature) & (tree.split_kind != THRESHOLD_SPLIT))
    if nodes.size == 0:
        return None
    codes = [max(tree.branches(node)[0], default=-1) for node in nodes.tolist()]
    return list(map(str, range(1 + max(codes))))


def _bars(tree: Tree) -> list[list[tuple[float, int]]]:
    """Bars of the nodes; none of several targets."""
    if tree.n_outputs > 1:
        return [[] for _ in range(tree.n_nodes)]
    if tree.task == "regression":  # places of means between the minimum, 0, and the maximum, 1
        mean = tree.answers[:, 0]
        width = float(np.ptp(mean)) or 1.0
        return [[(round(float(x), 4), 0)] for x in (mean - mean.min()) / width]
    shares = tree.predictions  # of the classes that are there
    return [[(round(float(row[k]), 4), int(k)) for k in np.flatnonzero(row)] for row in shares]


def _details(description: Description, node: int) -> list[tuple[str, str, str]]:
    """The heaviest classes: name, weight, share."""
    if description.class_names is None:
        return []
    weights = description.tree.statistics[node]
    heaviest = np.argsort(-weights, kind="stable")[:_MOST_DETAILS]
    whole = float(weights.sum()) or 1.0
    return [
        (description.class_names[k], description.number(weights[k]), f"{weights[k] / whole:.1%}")
        for k in heaviest[weights[heaviest] > 0]
    ]
