"""Refuse allocations that do not fit the memory, before the system is requested to make them.

Linux grants more than it has, and ends whoever uses it. So where the system reports it
(Linux does, others do not), what clearly does not fit is refused with advice. Requested sizes are
the minimum that is needed, and what is available is estimated generously: a fit that would work
is never refused.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gputree.errors import GputreeError

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")

MARGIN = 1.25  # what the system calls available is an estimate
NEGLIGIBLE = 1 << 26  # bytes that are not checked: to look takes longer than some fits


class _Group(NamedTuple):
    """Names of a control group's files: its limit, what it uses, and the key of file pages."""

    limit: str
    usage: str
    pages: str


_VERSION_1 = _Group("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache")
_VERSION_2 = _Group("memory.max", "memory.current", "file")


class OutOfMemory(MemoryError, GputreeError):  # in this order, or it cannot be unpickled
    """More is needed than there is: the reason, and advice."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason, advice)
        self.reason = reason

    def __str__(self) -> str:
        return " ".join(self.args)


def require_memory(needed: float, purpose: str, advice: str) -> None:
    """Raise `OutOfMemory` if `needed` bytes, beyond what is taken already, are clearly more than
    there are.

    `purpose` begins a sentence that says what they are for, `advice` is one: what to do instead.
    """
    available = None if needed < NEGLIGIBLE else available_bytes()
    if available is not None and needed > MARGIN * available:
        raise OutOfMemory(
            f"{purpose} takes at least {_gigabytes(needed)} of memory, and "
            f"{_gigabytes(available)} are available.",
            advice,
        )


def private_bytes() -> int | None:
    """Memory of this process without pages of files; None where it is unknown."""
    kilobytes = _table(PROC / "self/status").get("RssAnon")
    return None if kilobytes is None else kilobytes << 10


def resident_bytes(without: str, enough: int = 0) -> int | None:
    """Memory of this process, libraries included, without files that are mapped from a folder.

    With those where that is not more than `enough`, which is faster; None where it is unknown.
    """
    kilobytes = _table(PROC / "self/status").get("VmRSS")
    if kilobytes is None or kilobytes << 10 <= enough:
        return None if kilobytes is None else kilobytes << 10
    mapped, is_of_folder = 0, False
    for line in _lines(PROC / "self/smaps"):
        words = line.split()
        if not words[0].endswith(":"):  # first line of a mapping: its path is the sixth
            is_of_folder = len(words) > 5 and words[5].startswith(without)
        elif is_of_folder and words[0] == "Rss:":
            mapped += int(words[1])
    return (kilobytes - mapped) << 10


def available_bytes() -> int | None:
    """Memory that this process can still get, swap included; None where it is unknown.

    The minimum of what the system, the control groups and the limit of address space leave.
    """
    system = _table(PROC / "meminfo")
    if "MemAvailable" not in system:
        return None
    swap = system.get("SwapFree", 0) << 10
    rooms = [(system["MemAvailable"] << 10) + swap, *_in_groups(swap), *_in_address_space()]
    return max(min(rooms), 0)


def _in_groups(swap: int) -> Iterator[int]:
    """Yield the free bytes of each control group of this process, with file pages and all swap."""
    for line in _lines(PROC / "self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield from _up(CGROUPS, path, _VERSION_2, swap)
        elif "memory" in controllers.split(","):
            yield from _up(CGROUPS / "memory", path, _VERSION_1, swap)


def _up(root: Path, path: str, names: _Group, swap: int) -> Iterator[int]:
    """Yield the free bytes of a group and those above it; a container may show only the root."""
    group = root / path.lstrip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(root):
            return
        limit, usage = (_number(folder / name) for name in (names.limit, names.usage))
        if limit is not None and usage is not None:
            yield limit - usage + _table(folder / "memory.stat").get(names.pages, 0) + swap


def _in_address_space() -> Iterator[int]:
    """Yield the bytes that ``ulimit -v`` leaves, if it is set."""
    import resource  # not on all systems

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = "".join(_lines(PROC / "self/statm")).split()
    if limit != resource.RLIM_INFINITY and pages:
        yield limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    """Lines of a file of the system; none where it is not to be had."""
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _number(path: Path) -> int | None:
    """The only number in a file; None where there is another word, such as "max"."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _table(path: Path) -> dict[str, int]:
    """Names and numbers of a file of such lines."""
    words = [line.replace(":", " ").split() for line in _lines(path)]
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdecimal()}


def _gigabytes(size: float) -> str:
    number = size / 2**30
    return f"{number:,.3g} GiB" if number < 999.5 else f"{number:,.0f} GiB"
