"""Colours of classes and predictions, the same in every picture."""

import colorsys

import numpy as np

from gputree.base.dtypes import Floats
from gputree.export.model import labels_of
from gputree.inputs.labels import Costs
from gputree.tree import Tree

# matplotlib's tab10; then hues in turn.
_FIRST = ["1f77b4", "ff7f0e", "2ca02c", "d62728", "9467bd"]
_FIRST += ["8c564b", "e377c2", "7f7f7f", "bcbd22", "17becf"]
_STRENGTH = 0.55  # of the purest leaf's colour: black text stays readable on it
_GOLDEN = 0.618033988749895  # of the circle of hues, from one to the next


def class_color(k: int) -> str:
    """The colour of class k, as ``#rrggbb``; mean targets have the colour of class 0."""
    if k < len(_FIRST):
        return f"#{_FIRST[k]}"
    return hex_color(np.array(colorsys.hls_to_rgb(k * _GOLDEN % 1.0, 0.45 + 0.2 * (k % 2), 0.6)))


def rgb(color: str) -> tuple[float, float, float]:
    """Red, green and blue of ``#rrggbb``, from 0 to 1."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def answer_colors(tree: Tree, costs: Costs | None = None) -> Floats:
    """Red, green and blue of each node, a light tint of its prediction's colour; shape (N, 3).

    The class, the stronger the purer, or the mean target, the stronger the greater; of several
    targets one colour, the stronger the purer.
    """
    if tree.n_outputs > 1:
        purity = 1.0 - tree.impurity / (tree.impurity.max() or 1.0)
        return _tints(np.array([rgb(class_color(0))]), purity)
    if tree.task == "regression":
        mean = tree.answers[:, 0]
        share = (mean - mean.min()) / (np.ptp(mean) or 1.0)
        return _tints(np.array([rgb(class_color(0))]), share)
    if tree.lower is not None or costs is not None:
        return class_tints(tree.predictions, costs)
    weight = np.where(tree.weight > 0, tree.weight, 1.0)
    return class_tints(tree.statistics / weight[:, None])


def class_tints(shares: Floats, costs: Costs | None = None) -> Floats:
    """Tints, (N, 3), of the classes with probabilities, (N, K): the stronger the purer."""
    n_classes = shares.shape[1]
    colors = np.array([rgb(class_color(k)) for k in range(n_classes)])
    chance = 1 / n_classes
    purity = (shares.max(axis=1) - chance) / (1 - chance or 1.0)
    return _tints(colors[labels_of(shares, costs)], purity)


def _tints(color: Floats, strength: Floats) -> Floats:
    strength = _STRENGTH * np.clip(strength, 0.0, 1.0)[:, None]
    return 1 - strength * (1 - color)


def hex_color(rgb: Floats) -> str:
    """``#rrggbb`` of red, green and blue from 0 to 1."""
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in rgb)
