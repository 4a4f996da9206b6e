"""Lines of a tree as text, for `gputree show` and `export_text`."""

from __future__ import annotations

from collections.abc import Iterator

from gputree.export.describe import Description, descendants

_BAR = "|   "
_MOST_BARS = 40  # deeper lines name their depth: else text grows with its square


def text_lines(
    description: Description, max_depth: int | None = None, show_weights: bool = False
) -> Iterator[str]:
    """The lines of `export_text`, made one by one: a large tree is much text."""
    return (f"{line}\n" for line in _lines(description, max_depth, show_weights))


def _lines(description: Description, max_depth: int | None, show_weights: bool) -> Iterator[str]:
    tree = description.tree
    limit = tree.max_depth if max_depth is None else max_depth
    below = descendants(tree)
    nodes = [0]  # a stack: trees may be deeper than Python recurses
    while nodes:
        node = nodes.pop()
        shown = tree.children(node) if tree.depth[node] < limit else range(0)
        nodes.extend(reversed(shown))
        head = _indent(tree.depth[node] - 1) + str(description.condition(node)) if node else ""
        if shown:
            if node:
                yield head
            continue
        line = f"{head}: " if node else ""
        line += f"{description.answer(node)} ({description.support(node)})"
        if show_weights and description.class_names is not None:
            line += f" {description.weights(node)}"
        if below[node]:
            line += f" ... {below[node]} more nodes"  # never 1: there are no single children
        yield line


def _indent(depth: int) -> str:
    return _BAR * depth if depth <= _MOST_BARS else f"{_BAR * _MOST_BARS}[{depth}] "
