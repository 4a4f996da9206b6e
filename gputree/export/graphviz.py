"""A tree in DOT, the language of Graphviz."""

from collections.abc import Iterator, Sequence
from typing import Any

from gputree.export.describe import Description, describe, shown_part, wrapped
from gputree.export.palette import answer_colors, hex_color
from gputree.export.parameters import checked

_LINE = 36  # letters, before a set of categories goes on below
_WIDEST = 8.0  # points of the line that all rows would follow


@checked
def export_graphviz(
    estimator_or_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int | None = None,
    decimals: int | None = 4,
    rotate: bool = False,
    lines_by_weight: bool = False,
    all_categories: bool = False,
) -> str:
    r"""Write a fitted tree in DOT, which Graphviz draws: ``dot -Tsvg tree.dot -o tree.svg``.

    A node says the column that it tests, its prediction and, in parentheses, its support; an edge
    the values that follow it. Missing values are named as in `export_text`, and edges that name
    them are dashed. The colour shows the prediction: the class, more saturated for purer
    nodes, or the mean target, more saturated for larger values.

    Parameters
    ----------
    estimator_or_tree : fitted estimator or Tree
    feature_names, class_names, decimals
        As in `export_text`.
    max_depth : int or None, default=None
        Depth of the deepest nodes shown, the root's being 0; "..." stands for those below.
    rotate : bool, default=False
        Draw the root at the left instead of at the top.
    lines_by_weight : bool, default=False
        Make lines as wide as the fraction of the training weight that follows them.
    all_categories : bool, default=False
        Name all categories of a long set, not the first 20.

    Returns
    -------
    str

    {raises}
    ValueError
        The number of names does not fit the tree, or `max_depth` or `decimals` is negative.

    Examples
    --------
    >>> from gputree import DecisionTreeClassifier
    >>> from gputree.datasets import load_iris
    >>> from gputree.export import export_graphviz
    >>> iris = load_iris()
    >>> tree = DecisionTreeClassifier(max_depth=1).fit(iris.data, iris.target)
    >>> print(export_graphviz(tree, feature_names=iris.feature_names), end="")
    digraph tree {
    node [shape=box, style="filled, rounded", color="#999999", fontname="Helvetica"];
    edge [color="#666666", fontname="Helvetica"];
    0 [label="petal length\nsetosa (150/100)", fillcolor="#ffffff"];
    1 [label="setosa (50)", fillcolor="#84b4d6"];
    0 -> 1 [label=" <= 2.45 "];
    2 [label="versicolor (100/50)", fillcolor="#ffedde"];
    0 -> 2 [label=" > 2.45 "];
    }
    """
    whole = describe(
        estimator_or_tree, feature_names, class_names, decimals, all_categories, of_targets=True
    )
    shown = shown_part(whole, max_depth)
    lines = ["digraph tree {"]
    if rotate:
        lines.append("rankdir=LR;")
    lines.append(
        'node [shape=box, style="filled, rounded", color="#999999", fontname="Helvetica"];'
    )
    lines.append('edge [color="#666666", fontname="Helvetica"];')
    lines += _statements(shown, whole, lines_by_weight)
    return "\n".join([*lines, "}\n"])


def _statements(shown: Description, whole: Description, by_weight: bool) -> Iterator[str]:
    """The nodes, each but the root with the edge that leads to it."""
    tree, colors = shown.tree, answer_colors(shown.tree, shown.costs)
    for node in range(tree.n_nodes):
        label = f"{shown.answer(node)} ({shown.support(node)})"
        if tree.n_children[node]:
            label = f"{shown.feature_names[tree.feature[node]]}\n{label}"
        elif whole.tree.n_children[node]:
            label += " ..."
        yield f"{node} [label={_quoted(label)}, fillcolor={_quoted(hex_color(colors[node]))}];"
        parent = int(tree.parent[node])
        if parent >= 0:
            yield f"{parent} -> {node} [{', '.join(_edge(shown, node, by_weight))}];"


def _edge(shown: Description, node: int, by_weight: bool) -> Iterator[str]:
    tree, condition = shown.tree, shown.condition(node)
    words = [] if condition.operator in ("=", "in", "is") else [condition.operator]
    words.append(condition.operand.strip("{}") if condition.operator == "in" else condition.operand)
    if condition.or_missing:
        words.append("or missing")
    lines = wrapped(" ".join(words), _LINE)
    label = "\n".join(f" {line} " for line in lines)  # with space for the edge on both sides
    yield f"label={_quoted(label)}"
    if condition.or_missing or (condition.operator, condition.operand) == ("is", "missing"):
        yield "style=dashed"
    if by_weight:
        width = _WIDEST * float(tree.weight[node]) / (float(tree.weight[0]) or 1.0)
        yield f"penwidth={max(width, 0.3):.2f}"


def _quoted(text: str) -> str:
    """A string of DOT that stands for itself: no escapes, no entities of HTML."""
    for letter, written in (("&", "&amp;"), ("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n")):
        text = text.replace(letter, written)
    return f'"{text}"'
