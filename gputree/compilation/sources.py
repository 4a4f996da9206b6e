"""Source files of a compiled kernel: its module, and all modules whose code it contains.

    finish.py  --imports-->  criteria/__init__.py  --names-->  dispatch.py
                                                                    ^
                                        gini.py  --gives formulas to

Numba marks a cached kernel with the kernel's file only, so that a change in a file that the kernel
calls would go unnoticed. A digest here covers them all, and the version: an import at the top of a
module counts (code that kernels call is found by the names of their module), and so does code that
takes a stub's place, which is an import in reverse. Files that were replaced while the process runs
are not those that it imported: there is no digest of them. A package whose names are imported from
modules stands for these.
"""

import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from functools import cache

from gputree import __version__

PACKAGE = __name__.partition(".")[0]

# Modules imported by kernels' modules, or by the decorators, from which no machine code is made.
NO_CODE = frozenset(
    {f"{PACKAGE}.base.memory", f"{PACKAGE}.base.threads", f"{PACKAGE}.errors"}
    | {
        f"{PACKAGE}.compilation.{name}"
        for name in (
            "sources", "store", "tiers", "waits",
        )
    }
)  # fmt: skip
# The module that compiles all of them; none imports it.
COMPILER = f"{PACKAGE}.compilation.dispatchers"

_IMPORT = re.compile(
    rf"^(?:from ({PACKAGE}[\w.]*) import (\([^)]*\)|.*)|import ({PACKAGE}[\w.]*))", re.MULTILINE
)
_COMMENT = re.compile(r"#.*")
_BEGAN = time.time()
_given: dict[str, set[str]] = {}  # modules whose code takes the place of stubs, by stubs' module


def link(stub: str, implementing: str) -> None:
    """Register that kernels that call stubs of a module contain code of another, `implementing`."""
    _given.setdefault(stub, set()).add(implementing)
    _digest.cache_clear()


def digest(module: str) -> str | None:
    """Digest of all sources of the kernels of `module`; None if one of them is unavailable."""
    return _digest(module, __version__)


@cache
def _digest(module: str, version: str) -> str | None:
    sums = {name: _sum(name) for name in sorted(files(module))}
    if None in sums.values():
        return None
    return hashlib.sha256(repr((version, sums)).encode()).hexdigest()


def files(module: str) -> set[str]:
    """Modules whose code may be in a kernel of `module`, itself included."""
    found = {module, COMPILER}
    pending = [module, COMPILER]
    while pending:
        name = pending.pop()
        new = (_imported(name) | _given.get(name, set())) - found - NO_CODE
        found |= new
        pending.extend(new)
    return found


@cache
def _imported(module: str) -> frozenset[str]:
    """Modules of the package that `module` imports, or names of, at its top."""
    names = {home for package, name in _imports(module) for home in _homes(package, name)}
    return frozenset(names - {PACKAGE})


def _imports(module: str) -> Iterator[tuple[str, str]]:
    """Modules and packages from which names are imported, and the names; "" for a whole module."""
    for package, imported, plain in _IMPORT.findall(_source(module) or ""):
        if plain:
            yield plain, ""
        for name in _COMMENT.sub("", imported).strip("() \n").split(","):
            if name.strip():
                yield package, name.split()[0]


def _homes(package: str, name: str) -> Iterator[str]:
    """Modules that ``from package import name`` imports code from."""
    if name and _source(f"{package}.{name}") is not None:
        yield f"{package}.{name}"
    elif (home := _passed_on(package).get(name)) is not None:
        yield from _homes(home, name)
    elif _source(package) is not None:
        yield package


@cache
def _passed_on(package: str) -> dict[str, str]:
    """Names that a package imports from modules, with these; empty for a module."""
    if not _text(package)[1]:
        return {}
    return {name: home for home, name in _imports(package) if home != package}


@cache
def _sum(module: str) -> str | None:
    source = _source(module)
    return None if source is None else hashlib.sha256(source.encode()).hexdigest()


def _source(module: str) -> str | None:
    return _text(module)[0]


def _is_newer(file: str) -> bool:
    """Return True if a file was replaced since this process began."""
    try:
        return os.stat(file).st_mtime > _BEGAN
    except OSError:  # in an archive
        return False


@cache
def _text(module: str) -> tuple[str | None, bool]:
    """Source of a module of the package, and True if it is a package itself."""
    package, *path = module.split(".")
    if package != PACKAGE:
        return None, False
    top = sys.modules[PACKAGE]
    stem = os.path.join(os.path.dirname(str(top.__file__)), *path)
    for file, is_package in ((f"{stem}.py", False), (os.path.join(stem, "__init__.py"), True)):
        try:  # archives have files, too
            data = top.__spec__.loader.get_data(file)  # type: ignore[union-attr]
        except OSError:
            continue
        return None if _is_newer(file) else data.decode(), is_package
    return None, False
