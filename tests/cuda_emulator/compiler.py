"""Kernel source, unmodified, to a shared library: g++ behind the words of `cuda.h`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
CACHE = Path(tempfile.gettempdir()) / f"gputree-cuda-emulator-{os.getuid()}"
COMPILER = os.environ.get("CXX", "g++")

RUNTIME = ("fibers.cpp", "faults.cpp", "collectives.cpp", "scheduler.cpp", "checker.cpp")
COMMON = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing"]
COMMON += ["-w"]
FAST = ["-O2"]
# Every access is instrumented; what is undefined in C++ traps.
CHECKED = ["-O1", "-g", "-fsanitize=thread", "-fsanitize-undefined-trap-on-error"]
CHECKED += ["-fsanitize=shift,signed-integer-overflow,float-cast-overflow,bounds"]

_EXTERN_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s+)?([A-Za-z_][\w\s:]*?)\s+(\w+)\s*\[\s*\]\s*;"
)
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\(\s*(\d+)[^)]*\)\s*)?(\w+)\s*\('
)


class Built(NamedTuple):
    """A shared library, its kernels with their thread limits, and its shared variables."""

    path: Path
    kernels: dict[str, int]
    shared: list[str]


def unavailable() -> str | None:
    """Why nothing can be emulated here, or None."""
    if os.uname().machine != "x86_64":
        return f"the CUDA emulator is written for x86-64, not {os.uname().machine}"
    if shutil.which(COMPILER) is None:
        return f"the CUDA emulator needs {COMPILER}, which is not installed"
    return None


def build(source: str, macros: tuple[str, ...], check: bool) -> Built:
    """Compile `source` with the options `macros` (-D...), or find it compiled."""
    words = "".join((HERE / name).read_text() for name in ("cuda.h", "runtime.h", *RUNTIME))
    key = hashlib.sha256(repr((source, macros, check, COMPILER, words)).encode()).hexdigest()[:20]
    folder = CACHE / key
    library = folder / "kernels.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _compile(source, macros, check, Path(scratch), _runtime(words))
            os.replace(Path(scratch) / "shared.txt", folder / "shared.txt")
            os.replace(Path(scratch) / "kernels.txt", folder / "kernels.txt")
            os.replace(Path(scratch) / "kernels.so", library)
    lines = (folder / "kernels.txt").read_text().splitlines()
    kernels = {name: int(limit) for name, limit in map(str.split, lines)}
    return Built(library, kernels, (folder / "shared.txt").read_text().split())


def _runtime(words: str) -> list[Path]:
    """The compiled runtime, which all libraries share."""
    folder = CACHE / ("runtime-" + hashlib.sha256((words + COMPILER).encode()).hexdigest()[:20])
    objects = [folder / name.replace(".cpp", ".o") for name in RUNTIME]
    if not all(path.exists() for path in objects):
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in zip(RUNTIME, objects, strict=True):
            part = path.with_suffix(f".{os.getpid()}")
            run([COMPILER, *COMMON, *FAST, "-c", str(HERE / name), "-o", str(part)])
            os.replace(part, path)
    return objects


def _compile(
    source: str, macros: tuple[str, ...], check: bool, scratch: Path, runtime: list[Path]
) -> None:
    body = _EXTERN_SHARED.sub(r"\1* const \2 = (\1*)emulator::dynamic_shared();", source)
    if re.search(r"extern\s+__shared__", body):
        raise RuntimeError("an 'extern __shared__' declaration was not understood")
    kernels = _kernels(source, macros, scratch)
    lines = [f"EMULATOR_KERNEL({name})" for name in kernels]
    text = scratch / "kernels.cpp"
    text.write_text("\n".join(['#line 1 "kernel.cu"', body, *lines]))
    output = scratch / "kernels.o"
    header = ["-I", str(HERE), "-include", "cuda.h"]
    mode = CHECKED if check else FAST
    run([COMPILER, *COMMON, *mode, *macros, *header, "-c", str(text), "-o", str(output)])
    run([COMPILER, "-shared", "-o", str(scratch / "kernels.so"), str(output), *map(str, runtime)])
    (scratch / "shared.txt").write_text("\n".join(_shared_variables(output)))
    limits = (f"{name} {limit}" for name, limit in kernels.items())
    (scratch / "kernels.txt").write_text("\n".join(limits))


def _kernels(source: str, macros: tuple[str, ...], scratch: Path) -> dict[str, int]:
    """Names of the kernels and the most threads a block of each may have."""
    text = scratch / "source.cu"
    text.write_text(source)
    seen = run([COMPILER, "-E", "-P", "-x", "c++", *macros, str(text)])
    return {name: int(limit or 1024) for limit, name in _KERNEL.findall(seen)}


def _shared_variables(compiled: Path) -> list[str]:
    """Symbols of the static variables inside kernels: their __shared__ memory."""
    found = []
    for line in run(["nm", "-S", "--defined-only", str(compiled)]).splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "bBdDuVv" and fields[3].startswith("_ZZ"):
            found.append(fields[3])
    return [name for name in found if not name.startswith("_ZZN8emulator")]


def run(command: list[str]) -> str:
    """Output of a tool; its messages as an error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[:8000]}")
    return done.stdout
