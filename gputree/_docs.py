"""Docstrings that share parts, each written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])


def fill(**texts: str) -> Callable[[Documented], Documented]:
    """Put texts, indented as in a function, in the place of ``{name}`` in a docstring."""

    def filled(thing: Documented) -> Documented:
        if thing.__doc__:  # python -OO has none
            doc = inspect.cleandoc(thing.__doc__)  # as Python 3.13 does by itself
            for name, text in texts.items():
                doc = doc.replace(f"{{{name}}}", text.replace("\n    ", "\n"))
            thing.__doc__ = doc
        return thing

    return filled
