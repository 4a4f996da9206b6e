"""Colours of classes and predictions, the same in every picture; axes and fonts of plots."""

import colorsys
import contextlib
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from gputree.base.dtypes import Floats
from gputree.base.optional import require
from gputree.errors import warn
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


_SHOWN = 8  # letters that the warning names
_STANDS_IN = re.compile("Last ?Resort", re.IGNORECASE)  # boxes for every letter there is


def new_axes(ax: Any, caller: str, **figure: Any) -> Any:
    """`ax`, or the axes of a new figure if it is None; ImportError without matplotlib."""
    pyplot = require("matplotlib.pyplot", caller)
    return pyplot.figure(layout="constrained", **figure).add_subplot() if ax is None else ax


def choose_fonts(artist: Any) -> None:
    """Draw letters that the fonts of an artist's texts lack with installed fonts that have them.

    Warn where none has: boxes would be drawn. matplotlib names the letters one by one.
    """
    from matplotlib.text import Text

    lacking = [(text, letters) for text in artist.findobj(Text) if (letters := _missing(text))]
    if not lacking:
        return
    names, left = _families_with(frozenset().union(*(letters for _, letters in lacking)))
    for text, _ in lacking:
        text.set_fontfamily([*text.get_fontfamily(), *names])
    if left:
        shown = "".join(sorted(left)[:_SHOWN]) + ("..." if len(left) > _SHOWN else "")
        warn(
            f"No installed font has {shown}: boxes are drawn in their place. Install one that has "
            "them, for Chinese, Japanese and Korean such as Noto Sans CJK (Debian, Ubuntu: apt "
            "install fonts-noto-cjk), and draw again."
        )


def _missing(text: Any) -> frozenset[str]:
    """Letters of a text that none of its fonts has."""
    letters = frozenset(one for one in text.get_text() if one.isprintable() and one > "~")
    for path in _files(text.get_fontproperties()) if letters else ():
        letters -= _letters_of(path, letters)
    return letters


def _files(properties: Any) -> list[str]:
    """Files of the fonts that matplotlib tries for a text: one for each of its families."""
    from matplotlib import font_manager

    files = []
    for family in properties.get_family():
        single = properties.copy()
        single.set_family(family)
        try:
            files.append(str(font_manager.findfont(single, fallback_to_default=False)))
        except ValueError:  # no such font
            continue
    return files or [str(font_manager.findfont(properties))]


@lru_cache(maxsize=1 << 12)  # opening each installed font takes long
def _letters_of(path: str, letters: frozenset[str]) -> frozenset[str]:
    """Select the letters that the font in a file has; none of a file that is gone, or broken."""
    from matplotlib import font_manager

    try:
        font = font_manager.get_font(path)
    except (OSError, RuntimeError):
        return frozenset()
    return frozenset(one for one in letters if font.get_char_index(ord(one)))


def _families_with(letters: frozenset[str]) -> tuple[list[str], frozenset[str]]:
    """Installed fonts that together have letters, and the letters that none has."""
    names = []
    for add_new in (False, True):
        fonts = _installed(add_new) if letters else []
        while letters and fonts:
            font = max(fonts, key=lambda font: len(_letters_of(font.fname, letters)))
            has = _letters_of(font.fname, letters)
            if not has:
                break
            names.append(_regular(font))
            letters -= has
    return names, letters


def _regular(font: Any) -> str:
    """The family of a font, which can be looked up by the regular weight without a warning."""
    from matplotlib import font_manager

    if not _is_regular(font):
        font_manager.fontManager.ttflist.append(replace(font, weight=400))
    return str(font.name)


def _is_regular(font: Any) -> bool:
    return str(font.weight) in ("400", "normal", "regular")


def _installed(add_new: bool) -> list[Any]:
    """Fonts that matplotlib knows, upright and regular ones without serifs first.

    Its list is of when it was first imported: `add_new` adds the fonts that were installed since.
    """
    from matplotlib import font_manager

    manager = font_manager.fontManager
    if add_new:
        for path in set(font_manager.findSystemFonts()).difference(
            f.fname for f in manager.ttflist
        ):
            with contextlib.suppress(Exception):  # whatever a broken file raises
                manager.addfont(path)
    fonts = [font for font in manager.ttflist if not _STANDS_IN.match(font.name)]
    return sorted(
        fonts, key=lambda f: (f.style != "normal", not _is_regular(f), "Serif" in f.name, f.name)
    )
