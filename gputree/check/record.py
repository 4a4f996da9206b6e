"""What checks of devices found: kept in the process, and in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gputree._files import replaced_file
from gputree.backends.cuda.machine import Identity
from gputree.compilation.folders import user_cache

FORMAT = 1

# What this process knows: what differed on a device, nothing where its check passed.
_known: dict[Identity, list[str]] = {}


def keep(identity: Identity, differences: Sequence[str], *, lasting: bool) -> None:
    """Keep what a check found; for this process only unless `lasting`, or without a folder."""
    remember(identity, differences)
    path = _path(identity)
    if path is None or not lasting:
        return
    content = {"format": FORMAT, **identity._asdict(), "differences": list(differences)}
    try:
        # kernels are kept here, too, and only where no other user may write
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replaced_file(path) as file:
            file.write(json.dumps(content, indent=1).encode())
    except OSError:  # a folder that cannot be written, a full disk
        return


def remember(identity: Identity, differences: Sequence[str]) -> None:
    """Let this process know what a check found."""
    _known[identity] = list(differences)


def find(identity: Identity) -> list[str] | None:
    """What differed in the check of this device; None where it has not been checked."""
    if identity not in _known:
        found = _read(identity)
        if found is None:
            return None
        remember(identity, found)
    return _known[identity]


def _read(identity: Identity) -> list[str] | None:
    """What the file says; None where it is not there, or holds anything else."""
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
    """The file of this device in the user's cache folder; None where there is no home folder."""
    folder = user_cache()
    if folder is None:
        return None
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]
    return Path(folder) / f"check-{digest}.json"
