"""The axes of a plot, and letters that none of its fonts has: which, and what font to take."""

from __future__ import annotations

import contextlib
import re
from typing import Any

from gputree._optional import require
from gputree._warnings import warn

_SHOWN = 8  # letters that the warning names
_STANDS_IN = re.compile("Last ?Resort", re.IGNORECASE)  # boxes for every letter there is


def new_axes(ax: Any, caller: str, **figure: Any) -> Any:
    """`ax`, or the axes of a new figure if it is None; ImportError without matplotlib."""
    pyplot = require("matplotlib.pyplot", caller)
    return pyplot.figure(layout="constrained", **figure).add_subplot() if ax is None else ax


def hint_at_fonts(ax: Any) -> None:
    """Warn where texts of the figure have letters that would be drawn as boxes.

    matplotlib names the letters one by one, and not the font that has them.
    """
    missing = sorted(_missing(ax.figure))
    if not missing:
        return
    shown = "".join(missing[:_SHOWN]) + ("..." if len(missing) > _SHOWN else "")
    name = _font_with(missing)
    setting = "matplotlib.rcParams['font.sans-serif'] = ['{}', 'DejaVu Sans'] before plotting"
    if name is not None:
        advice = f"{name} is installed and has them: set {setting.format(name)}."
    else:
        advice = (
            "No installed font has all of them. Install one, for Chinese, Japanese and Korean such "
            "as Noto Sans CJK (Debian, Ubuntu: apt install fonts-noto-cjk), delete the files "
            f"fontlist-*.json in matplotlib.get_cachedir(), and set {setting.format('its name')}."
        )
    warn(f"The font has no {shown}: boxes are drawn in their place. {advice}")


def _missing(figure: Any) -> set[str]:
    """Letters of the figure's texts that none of their fonts has."""
    from matplotlib.text import Text

    missing: set[str] = set()
    for text in figure.findobj(Text):
        letters = {letter for letter in text.get_text() if letter.isprintable() and letter > "~"}
        for path in _files(text.get_fontproperties()) if letters else ():
            letters -= _letters_of(path, letters)
        missing |= letters
    return missing


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


def _letters_of(path: str, letters: set[str]) -> set[str]:
    """Those of the letters that the font in a file has."""
    from matplotlib import font_manager

    font = font_manager.get_font(path)
    return {letter for letter in letters if font.get_char_index(ord(letter))}


def _font_with(letters: list[str]) -> str | None:
    """An installed font that has all of the letters."""
    from matplotlib import font_manager

    wanted = set(letters)
    for font in font_manager.fontManager.ttflist:
        if _STANDS_IN.match(font.name):
            continue
        with contextlib.suppress(OSError, RuntimeError):  # gone since the list was made, or broken
            if _letters_of(font.fname, wanted) == wanted:
                return str(font.name)
    return None
