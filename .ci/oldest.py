"""Constraints of pip for the oldest versions that `pyproject.toml` allows: ``name==version``.

    python .ci/oldest.py > oldest.txt; pip install -c oldest.txt -e ".[test]"

Requirements other than ``name>=version``, with or without a bound above, are left as they are: the
linters.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"
EXTRAS = ("test", "plot", "pandas")


def oldest() -> list[str]:
    """One constraint for each requirement with a floor."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in EXTRAS:
        wanted += project["optional-dependencies"][extra]
    found = (re.fullmatch(r"([\w-]+)>=([\w.]+)(?:,<[\w.]+)?", line) for line in wanted)
    return sorted({f"{match[1]}=={match[2]}" for match in found if match})


if __name__ == "__main__":
    print("\n".join(oldest()))
