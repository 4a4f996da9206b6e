"""Fenced blocks of README.md: ``readme.py sh 2`` prints one, ``readme.py python`` runs all.

Python blocks run one after the other, each in a process of its own and in the current
folder, with the interpreter that runs this file. Exits with the first that fails.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def blocks(language: str) -> list[str]:
    """Contents of the blocks that are fenced as `language`, in order."""
    text = README.read_text("utf-8")
    return re.findall(rf"^```{language}[ \t]*\n(.*?)^```[ \t]*$", text, re.DOTALL | re.MULTILINE)


def main(language: str, place: str | None = None) -> int:
    """Print the block at `place`, or run them all; the exit status."""
    found = blocks(language)
    if place is not None and not 0 < int(place) <= len(found):
        print(f"README.md has {len(found)} blocks of {language}, not {place}", file=sys.stderr)
        return 1
    if place is not None:
        print(found[int(place) - 1], end="")
        return 0
    for number, block in enumerate(found, 1):
        print(f"--- {language} block {number} of {len(found)}", flush=True)
        code = subprocess.run([sys.executable, "-c", block], stdin=subprocess.DEVNULL).returncode
        if code:
            return code
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
