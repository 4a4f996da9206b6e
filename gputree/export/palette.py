"""Colours of classes, the same in every picture."""

from __future__ import annotations

import colorsys

# matplotlib's tab10; then hues in turn.
_FIRST = ["1f77b4", "ff7f0e", "2ca02c", "d62728", "9467bd"]
_FIRST += ["8c564b", "e377c2", "7f7f7f", "bcbd22", "17becf"]
_GOLDEN = 0.618033988749895  # of the circle of hues, from one to the next


def class_color(k: int) -> str:
    """The colour of class k, as ``#rrggbb``; mean targets take that of class 0."""
    if k < len(_FIRST):
        return f"#{_FIRST[k]}"
    rgb = colorsys.hls_to_rgb(k * _GOLDEN % 1.0, 0.45 + 0.2 * (k % 2), 0.6)
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)
