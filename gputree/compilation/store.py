"""Compiled kernels on disk: one file for each kernel and signature.

    backends.cpu.finish.finish_nodes-d1a14fe07c2b-37c0f1f8d5a7e5b24a8c9d33.nbc
    kernel                           sources      signature, machine, compiler

A file is written under another name first and contains a check sum, so that processes that compile
at the same time, or die, leave only complete files. Kernels are cached in these folders:

    NUMBA_CACHE_DIR         if set: only there
    next to the code        as for Python's bytecode
    the user's cache        where the folder of the code is not writable

Kernels are searched for in all of them and written to the first writable one, so an image with
kernels next to the code is used unchanged, on a read-only file system.

    first process      lock, search, compile, store, unlock
    second             lock ................ waits ........ search, found, unlock

Each kernel has a byte of one file in the folder, and its lock ends with the process that has it.
Where files cannot be locked, each process compiles.
"""

import contextlib
import glob
import hashlib
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from gputree.compilation import sources, tiers, waits
from gputree.errors import warn

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_NEXT_TO_CODE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__pycache__"
)
# Subfolder of this installation in folders outside of the package: no version deletes the kernels
# of another.
_INSTALLATION = "gputree-" + hashlib.sha256(_NEXT_TO_CODE.encode()).hexdigest()[:16]

LOCKS = "turns"  # the file whose bytes are locked

# Seconds after which a process stops waiting for one that may be stopped: longer than a
# compilation.
PATIENCE = 60.0

# Seconds between attempts.
PAUSE = 0.05


def folders() -> list[str]:
    """Return the folders of kernels, in the order in which they are searched and written."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [os.path.join(chosen, _INSTALLATION)]
    user = user_cache()
    return [_NEXT_TO_CODE, *([os.path.join(user, _INSTALLATION)] if user else [])]


def user_cache() -> str | None:
    """The user's cache folder for gputree; None without a home folder."""
    from platformdirs import user_cache_dir

    path = user_cache_dir("gputree", appauthor=False)
    return path if os.path.isabs(path) else None


def in_use() -> str | None:
    """Return the folder for a kernel compiled now, by the modes of files; None if there is none."""
    for folder in folders():
        place = folder
        while not os.path.exists(place) and place != os.path.dirname(place):
            place = os.path.dirname(place)
        if os.access(place, os.W_OK | os.X_OK):
            return folder
    return None


def lock(kernel: str) -> bool:
    """Wait until no other process compiles `kernel`; False if files cannot be locked."""
    try:
        if _try_lock(kernel):
            return True
        with waits.timed():
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                waits.pause(PAUSE)
                if _try_lock(kernel):
                    return True
    except OSError:  # no folder, or a file system without locks
        pass
    return False


def unlock(kernel: str) -> None:
    """Unlock `kernel` for other processes."""
    with contextlib.suppress(OSError):
        fcntl.lockf(_open_locks(in_use()), fcntl.LOCK_UN, 1, _byte(kernel))


def _try_lock(kernel: str) -> bool:
    """Return False while another process has the lock of `kernel`."""
    file = _open_locks(in_use())
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(kernel))
    except (BlockingIOError, PermissionError):
        return False
    return True


@cache
def _open_locks(folder: str | None) -> int:
    """Open the file of locks for good: closing it would release all of them."""
    if fcntl is None or folder is None:
        raise FileNotFoundError
    os.makedirs(folder, exist_ok=True)
    return os.open(os.path.join(folder, LOCKS), os.O_RDWR | os.O_CREAT, 0o666)


def _byte(kernel: str) -> int:
    """Byte of a kernel; two kernels may share one, and then exclude each other."""
    return int.from_bytes(hashlib.sha256(kernel.encode()).digest()[:4])


SUFFIX = ".nbc"
_SUM_BYTES = hashlib.sha256().digest_size

_log = logging.getLogger("gputree")
_warned = False


def any_kept(function: Callable) -> bool:
    """Return True if a kernel is cached for any kind of arguments, made of the current sources.

    Folders are searched once in a process.
    """
    digest = sources.digest(function.__module__)
    if digest is None:
        return False
    name = _prefix(function) + digest[:12]
    return any(name in _kernels_in(folder) for folder in folders())


@cache
def _kernels_in(place: str) -> frozenset[str]:
    """Names of files in a folder, up to the part that depends on kinds of arguments."""
    try:
        return frozenset(name.rpartition("-")[0] for name in os.listdir(place))
    except OSError:
        return frozenset()


class KernelStore:
    """The cached forms of one kernel, a function of gputree, as numba's dispatchers use them."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self._missing: set[Any] = set()  # signatures that are not on disk
        self._locked: str | None = None  # one at a time, since all of numba is locked

    @property
    def cache_path(self) -> str:
        """Folder of a kernel that is compiled now, if it is writable; numba's `stats` reads it."""
        return folders()[0]

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the kernel for a signature, or None if it must be compiled here and now."""
        name = self._name(signature, target_context.codegen())
        found = None if name is None else self._find(name, signature, target_context)
        if found is None and not tiers.must_compile():
            self._missing.add(_arguments(signature))
            raise tiers.NotCompiled
        if found is None and name is not None and lock(name):
            self._locked = name
            found = self._find(name, signature, target_context)  # compiled while we waited
            if found is not None:
                self.unlock()
        return found

    def lacks(self, signature: Any) -> bool:
        """Return True if a kernel for a signature was searched for before, in vain."""
        return _arguments(signature) in self._missing

    def _find(self, name: str, signature: Any, target_context: Any) -> Any:
        """Return the kernel in the file `name`, or None if that is missing or incomplete."""
        from gputree.compilation import numba_internals

        for folder in folders():
            payload = _read(os.path.join(folder, name))
            if payload is not None:
                with contextlib.suppress(Exception):  # incompatible: it is compiled again
                    found = numba_internals.load(target_context, payload)
                    if found.signature.args == _arguments(signature):
                        return found
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Cache a kernel, in the first writable folder."""
        from gputree.compilation import numba_internals

        try:
            name = self._name(signature, result.codegen)
            if name is not None and numba_internals.has_addresses(result.library):
                # Only the time of every process is affected, which no user can change: the same
                # level as messages of compilation.
                _log.info("%s cannot be kept: it holds addresses of this process", name)
            elif name is not None:
                self._keep(name, numba_internals.dump(result))
        finally:
            self.unlock()

    def unlock(self) -> None:
        """Allow other processes to compile this kernel, cached or not."""
        locked, self._locked = self._locked, None
        if locked is not None:
            unlock(locked)

    @staticmethod
    def _keep(name: str, payload: bytes) -> None:
        for folder in folders():
            with contextlib.suppress(OSError):
                os.makedirs(folder, exist_ok=True)
                file = os.path.join(folder, name)
                _write(file, payload)
                _clear_away(file)
                return
        _warn_once()

    def _name(self, signature: Any, codegen: Any) -> str | None:
        """File of a signature; None where kernels cannot be distinguished, so are not cached."""
        digest = sources.digest(self.function.__module__)
        if digest is None:
            return None
        from gputree.compilation import numba_internals

        arguments = _arguments(signature)
        kind = (str(arguments), *_fields(arguments))
        key = repr((digest, *numba_internals.compiler_key(codegen), kind))
        rest = hashlib.sha256(key.encode()).hexdigest()[:24]
        return f"{_prefix(self.function)}{digest[:12]}-{rest}{SUFFIX}"


def _prefix(function: Callable) -> str:
    package, _, module = function.__module__.partition(".")
    return f"{module or package}.{function.__qualname__}-"


def _arguments(signature: Any) -> tuple:
    return tuple(signature) if isinstance(signature, (tuple, list)) else tuple(signature.args)


def _fields(kinds: Any) -> Iterator[tuple]:
    """Names of fields in the order in which machine code finds them: numba's texts omit them.

    With them, a record of arguments need not be among the sources of all kernels that take it.
    """
    for kind in kinds:
        yield from _fields(getattr(kind, "types", ()))  # of a tuple
        if (record := getattr(kind, "instance_class", None)) is not None:
            yield record.__module__, record.__qualname__, kind.fields


def _read(path: str) -> bytes | None:
    """Read the bytes of `_write`; None if missing or incomplete."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    checksum, payload = data[:_SUM_BYTES], data[_SUM_BYTES:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def _write(path: str, payload: bytes) -> None:
    """Write a complete file or none."""
    unfinished = f"{path}.{uuid.uuid4().hex[:12]}.tmp"
    try:
        with open(unfinished, "xb") as file:
            file.write(hashlib.sha256(payload).digest() + payload)
        os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        raise


def _clear_away(file: str) -> None:
    """Remove the forms of the same kernel that were made of other sources."""
    kernel, digest, _ = file.rsplit("-", 2)
    for other in glob.glob(f"{glob.escape(kernel)}-*-*{SUFFIX}"):
        if other.rsplit("-", 2)[1] != digest:
            with contextlib.suppress(OSError):
                os.unlink(other)


def _warn_once() -> None:
    global _warned
    if _warned:
        return
    warn(
        "Compiled kernels cannot be kept: gputree can write neither "
        f"{' nor '.join(folders())}. Every process compiles them again. "
        "Set NUMBA_CACHE_DIR to a folder that can be written and lasts, or compile the kernels "
        "where gputree is installed, when it is (an image, say)."
    )
    _warned = True  # now: where warnings are errors, every fit raises
