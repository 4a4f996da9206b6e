"""What the commands share: outputs that are safe to write, and words on the terminal."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from gputree._files import require_destination


def say(message: str) -> None:
    """One line on standard error."""
    print(f"gputree: {' '.join(message.split())}", file=sys.stderr)


def check_output(output: Path, *inputs: str) -> None:
    """What would spoil the output or an input is told before the work, not after it."""
    require_destination(output)
    for path in inputs:
        if output.exists() and os.path.exists(path) and output.samefile(path):
            raise ValueError(f"The output {output} would overwrite the input {path}.")


def size(tree: Any) -> str:
    """Nodes, leaves and depth."""
    leaves = counted(tree.n_leaves, "leaf", "leaves")
    return f"{counted(tree.n_nodes, 'node')}, {leaves}, depth {tree.max_depth}"


def counted(count: int, one: str, more: str | None = None) -> str:
    """A number and its noun."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def aligned(lines: dict[str, str]) -> str:
    """A line for each key, the values below one another."""
    width = max(map(len, lines)) + 2
    return "\n".join(f"{key:{width}}{value}" for key, value in lines.items())


def escape_unknown_characters() -> None:
    """Text for people is to appear on any terminal; predictions must not be changed."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
