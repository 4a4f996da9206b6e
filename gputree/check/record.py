"""Results of checks of devices, cached in the process and in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gputree.backends.cuda.machine import Identity
from gputree.base.files import replaced_file
from gputree.compilation.folders import user_cache

FORMAT = 1

# Results in this process: differences on a device, empty if its check passed.
_known: dict[Identity, list[str]] = {}


def keep(identity: Identity, differences: Sequence[str], *, lasting: bool) -> None:
    """Record the result of a check; for this process only unless `lasting`, or without a folder."""
    remember(identity, differences)
    path = _path(identity)
    if path is None or not lasting:
        return
    content = {"format": FORMAT, **identity._asdict(), "differences": list(differences)}
    try:
        # kernels are cached here, too, and only where no other user may write
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replaced_file(path) as file:
            file.write(json.dumps(content, indent=1).encode())
    except OSError:  # a folder that is not writable, a full disk
        return


def remember(identity: Identity, differences: Sequence[str]) -> None:
    """Record the result of a check for this process only."""
    _known[identity] = list(differences)


def find(identity: Identity) -> list[str] | None:
    """Return the differences found by the check of a device; None if it has not been checked."""
    if identity not in _known:
        found = _read(identity)
        if found is None:
            return None
        remember(identity, found)
    return _known[identity]


def _read(identity: Identity) -> list[str] | None:
    """Read the differences from the file; None if it is missing or has other content."""
    path = _path(identity)
    try:
        content: Any = json.loads(path.read_bytes()) if path is not None else None
    except (OSError, ValueError):  # no JSON, or no text
        return None
    if not isinstance(content, dict):
        return None
    differences = content.pop("differences", None)
    if content != {"format": FORMAT, **identity._asdict()} or not isinstance(differences, list):
        return None
    return [str(line) for line in differences]


def _path(identity: Identity) -> Path | None:
    """Path of the file of a device in the user's cache folder; None without a home folder."""
    folder = user_cache()
    if folder is None:
        return None
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]
    return Path(folder) / f"check-{digest}.json"
