"""The axes of a plot, and fonts for letters that the fonts of its texts lack."""

import contextlib
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gputree.base.optional import require
from gputree.base.warnings import warn

_SHOWN = 8  # letters that the warning names
_STANDS_IN = re.compile("Last ?Resort", re.IGNORECASE)  # boxes for every letter there is


def new_axes(ax: Any, caller: str, **figure: Any) -> Any:
    """`ax`, or the axes of a new figure if it is None; ImportError without matplotlib."""
    pyplot = require("matplotlib.pyplot", caller)
    return pyplot.figure(layout="constrained", **figure).add_subplot() if ax is None else ax


def choose_fonts(artist: Any) -> None:
    """Draw letters that the fonts of texts lack with installed fonts that have them.

    Warn where none has: boxes would be drawn. matplotlib names the letters one by one.

    Parameters
    ----------
    artist : matplotlib Artist
        Whose texts, or itself; those that lack letters get further families.
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
    return sorted(fonts, key=_order)


def _order(font: Any) -> tuple[bool, bool, bool, str]:
    return font.style != "normal", not _is_regular(font), "Serif" in font.name, font.name
