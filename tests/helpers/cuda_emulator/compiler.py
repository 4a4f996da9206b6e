"""Kernel source, unmodified, to a shared library: g++ behind the words of `cuda.h`.

Or what NVRTC makes of it: its PTX in C++ (`translator.py`), behind those of `ptx.h`, too.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .nvrtc import CUPY_OPTIONS, libraries, newest
from .translator import translate

HERE = Path(__file__).parent
CACHE = Path(tempfile.gettempdir()) / f"gputree-cuda-emulator-{os.getuid()}"
COMPILER = os.environ.get("CXX", "g++")

# A third of the usual linker's time.
LINKER = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []

RUNTIME = ("fibers.cpp", "faults.cpp", "collectives.cpp", "scheduler.cpp", "checker.cpp")
COMMON = ["-std=c++20", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-strict-aliasing"]
COMMON += ["-w"]
FAST = ["-O2"]
QUICK = ["-O0"]  # the last -O holds: half the time of compiling, twice that of running
# Every access is instrumented; what is undefined in C++ traps.
CHECKED = ["-O1", "-g1", "-fsanitize=thread", "-fsanitize-undefined-trap-on-error"]
CHECKED += ["-fsanitize=shift,signed-integer-overflow,float-cast-overflow,bounds"]
# Registers do not fit a fibre's stack with -O0, -O1 takes longer; signed sums wrap.
OF_PTX = ["-Og", "-fwrapv"]

# That PTX is made for.
ARCHITECTURE = 90

# Patterns and their replacements.
Changes = tuple[tuple[str, str], ...]

_EXTERN_SHARED = re.compile(
    r"extern\s+__shared__\s+(?:__align__\s*\(\s*\d+\s*\)\s+)?([A-Za-z_][\w\s:]*?)\s+(\w+)\s*\[\s*\]\s*;"
)
_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\s*\(\s*(\d+)[^)]*\)\s*)?(\w+)\s*\('
)


class Built(NamedTuple):
    """A shared library, its kernels with their thread limits, and the places of its variables."""

    path: Path
    kernels: dict[str, int]
    anchor: int  # address of `emulator_anchor`
    shared: list[tuple[str, int, int]]  # function, offset and size of each shared variable


def unavailable() -> str | None:
    """Return the reason why nothing can be emulated here, or None."""
    if os.uname().machine != "x86_64":
        return f"the CUDA emulator is written for x86-64, not {os.uname().machine}"
    if shutil.which(COMPILER) is None:
        return f"the CUDA emulator needs {COMPILER}, which is not installed"
    return None


def ptx_unavailable() -> str | None:
    """Return the reason why no PTX can be run here, or None."""
    if not libraries():
        return "no NVRTC is installed, which makes PTX: pip install nvidia-cuda-nvrtc"
    return unavailable()


def build(
    source: str,
    options: tuple[str, ...],
    check: bool,
    is_quick: bool = False,
    ptx: Changes | None = None,
) -> Built:
    """Compile `source` with the options (-D...), or its PTX with `ptx` changed; or find it."""
    words = set(re.findall(r"\w+", source))  # options that it does not see make no other library
    macros = tuple(
        option
        for option in options
        if option.startswith("-D") and option[2:].partition("=")[0] in words
    )
    if ptx is None:
        text, kernels = source, None
        mode = (CHECKED if check else FAST) + (QUICK if is_quick else [])
        key = _digest(repr((text, macros, mode)) + _words())
    else:
        others = tuple(option for option in options if not option.startswith("-D"))
        made = _ptx(source, (*others, *macros))
        for pattern, new in ptx:
            made = re.sub(pattern, new, made)
        text, kernels = translate(made)
        mode = (CHECKED if check else FAST) + OF_PTX
        key = _digest(repr((text, mode)) + _words() + (HERE / "ptx.h").read_text())
    folder = CACHE / key
    library = folder / "kernels.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            found = _compile(text, kernels, macros, mode, Path(scratch))
            (Path(scratch) / "found.json").write_text(json.dumps(found))
            os.replace(Path(scratch) / "found.json", folder / "found.json")
            os.replace(Path(scratch) / "kernels.so", library)
    kernels, anchor, shared = json.loads((folder / "found.json").read_text())
    return Built(library, kernels, anchor, shared)


def _ptx(source: str, options: tuple[str, ...]) -> str:
    """PTX that NVRTC makes of a source, with CuPy's options; cached."""
    if reason := ptx_unavailable():
        raise RuntimeError(reason)
    compiler = newest()
    options = (*options, *CUPY_OPTIONS, f"-arch=compute_{ARCHITECTURE}")
    path = CACHE / ("ptx-" + _digest(repr((source, options, compiler.version)))) / "kernels.ptx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_text(compiler.compile(source, options)[1])
        os.replace(part, path)
    return path.read_text()


@cache
def _words() -> str:
    """Text of everything that is compiled with kernels, and of the compiler."""
    names = ("cuda.h", "runtime.h", *RUNTIME)
    return COMPILER + "".join((HERE / name).read_text() for name in names)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _header(mode: list[str]) -> Path:
    """A copy of `cuda.h` with its compiled form, which saves a third of a small kernel's time."""
    folder = CACHE / ("header-" + _digest(repr(mode) + _words()))
    compiled = folder / "cuda.h.gch"
    if not compiled.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "cuda.h", folder)
        part = folder / f"{os.getpid()}.gch"
        header = ["-x", "c++-header", str(HERE / "cuda.h")]
        run([COMPILER, *COMMON, *mode, *header, "-o", str(part)])
        os.replace(part, compiled)
    return folder / "cuda.h"


def _runtime() -> list[Path]:
    """The compiled runtime, which all libraries share."""
    folder = CACHE / ("runtime-" + _digest(_words()))
    objects = [folder / name.replace(".cpp", ".o") for name in RUNTIME]
    if not all(path.exists() for path in objects):
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in zip(RUNTIME, objects, strict=True):
            part = path.with_suffix(f".{os.getpid()}")
            run([COMPILER, *COMMON, *FAST, "-c", str(HERE / name), "-o", str(part)])
            os.replace(part, path)
    return objects


def _compile(
    text: str,
    kernels: dict[str, int] | None,
    macros: tuple[str, ...],
    mode: list[str],
    scratch: Path,
) -> tuple:
    """Make ``kernels.so``, of CUDA C++ or of PTX in C++; the fields of `Built` after the path."""
    if kernels is None:
        kernels = _kernels(text, macros, scratch)
        text = _behind_words(text, kernels)
        options = [*macros, "-include", str(_header(mode))]
    else:
        options = ["-I", str(HERE)]
    (scratch / "kernels.cpp").write_text(text)
    output, library = scratch / "kernels.o", scratch / "kernels.so"
    compiled = ["-c", str(scratch / "kernels.cpp"), "-o", str(output)]
    run([COMPILER, *COMMON, *mode, *options, *compiled])
    run([COMPILER, "-shared", *LINKER, "-o", str(library), str(output), *map(str, _runtime())])
    return kernels, *_find_shared(library)


def _behind_words(source: str, kernels: dict[str, int]) -> str:
    body = _EXTERN_SHARED.sub(r"\1* const \2 = (\1*)emulator::dynamic_shared();", source)
    if re.search(r"extern\s+__shared__", body):
        raise RuntimeError("an 'extern __shared__' declaration was not understood")
    lines = [f"EMULATOR_KERNEL({name})" for name in kernels]
    return "\n".join(['#line 1 "kernel.cu"', body, *lines])


def _kernels(source: str, macros: tuple[str, ...], scratch: Path) -> dict[str, int]:
    """Names of the kernels and the most threads a block of each may have."""
    text = scratch / "source.cu"
    text.write_text(source)
    seen = run([COMPILER, "-E", "-P", "-x", "c++", *macros, str(text)])
    return {name: int(limit or 1024) for limit, name in _KERNEL.findall(seen)}


def _find_shared(library: Path) -> tuple[int, list[tuple[str, int, int]]]:
    """The address of `emulator_anchor`, and __shared__ variables: those that are thread-local."""
    symbols = _symbols(library)
    anchor = next(value for value, *_, name in symbols if name == "emulator_anchor")
    shared = {
        (_function_of(name), offset, size)
        for offset, size, kind, name in symbols
        if kind == "TLS" and size
    }
    return anchor, sorted(shared)


def _function_of(variable: str) -> str:
    """The kernel or function that a static variable, such as ``_ZZ4fillE3sum``, is inside of."""
    found = re.match(r"_Z+L?(\d+)", variable)
    if found is None:
        raise RuntimeError(f"{variable} is a shared variable of no function")
    return variable[found.end() : found.end() + int(found[1])]


def _symbols(path: Path) -> list[tuple[int, int, str, str]]:
    """Value, size, type and name of each symbol that is defined."""
    lines = map(str.split, run(["readelf", "-sW", str(path)]).splitlines())
    return [
        (int(fields[1], 16), int(fields[2], 0), fields[3], fields[7])
        for fields in lines
        if len(fields) == 8 and fields[0].rstrip(":").isdigit() and fields[6].isdigit()
    ]


def run(command: list[str]) -> str:
    """Output of a tool; its messages as an error if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[:8000]}")
    return done.stdout
