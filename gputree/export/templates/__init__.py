"""Texts with missing values, from which formats are made."""

from pathlib import Path
from string import Template

_HERE = Path(__file__).parent


def fill(template: str, **fields: str) -> str:
    """The file `template` of this folder with each ``$name`` replaced."""
    return Template((_HERE / template).read_text("utf-8")).substitute(fields)
