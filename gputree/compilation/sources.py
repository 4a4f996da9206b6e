"""What a compiled kernel was made of: its module, and all that this one takes code from.

    finish.py  --imports-->  criteria/__init__.py  --imports-->  dispatch.py
                                                                    ^
                                        gini.py  --gives formulas to

Numba marks what it keeps with the file of the kernel alone, so that a change in a file
that the kernel calls would go unnoticed. A digest here covers them all, and the version:
an import at the top of a module counts (code that kernels call is found by the names of
their module), and so does code that takes a stub's place, which is an import turned round.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from functools import cache

from gputree import __version__

PACKAGE = __name__.partition(".")[0]

_IMPORT = re.compile(
    rf"^(?:from ({PACKAGE}[\w.]*) import (\([^)]*\)|.*)|import ({PACKAGE}[\w.]*))", re.MULTILINE
)
_given: dict[str, set[str]] = {}  # modules whose code takes the place of stubs, by stubs' module


def link(stub: str, implementing: str) -> None:
    """Note that kernels that call stubs of a module hold code of another, `implementing`."""
    _given.setdefault(stub, set()).add(implementing)
    _source(implementing)


def read(module: str) -> None:
    """Read all that a module imports, as it is now.

    Files may be replaced while a process runs: the digest is of those that it imported.
    """
    files(module)


def digest(module: str) -> str | None:
    """Digest of all sources that a kernel of `module` is made of; None if one is not to be had."""
    sources = {name: _source(name) for name in sorted(files(module))}
    if any(source is None for source in sources.values()):
        return None
    parts = [__version__, *(f"{name} {source}" for name, source in sources.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def files(module: str) -> set[str]:
    """Modules whose code may be in a kernel of `module`, itself included."""
    found = {module}
    pending = [module]
    while pending:
        name = pending.pop()
        new = (_imported(name) | _given.get(name, set())) - found
        found |= new
        pending.extend(new)
    return found


@cache
def _imported(module: str) -> frozenset[str]:
    """Modules of the package that `module` imports at its top."""
    names = set()
    for package, imported, plain in _IMPORT.findall(_source(module) or ""):
        names |= {package or plain} | {f"{package}.{name}" for name in re.findall(r"\w+", imported)}
    return frozenset(name for name in names - {PACKAGE} if _source(name) is not None)


@cache
def _source(module: str) -> str | None:
    """The text of a module of the package."""
    package, *path = module.split(".")
    if package != PACKAGE:
        return None
    top = sys.modules[PACKAGE]
    stem = os.path.join(os.path.dirname(str(top.__file__)), *path)
    for file in (f"{stem}.py", os.path.join(stem, "__init__.py")):
        try:  # archives have files, too
            return top.__spec__.loader.get_data(file).decode()  # type: ignore[union-attr]
        except OSError:
            continue
    return None
