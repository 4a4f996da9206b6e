"""Every kernel compiles for every architecture that is supported; figures are printed.

``pytest -rP tests/test_cuda_compile.py`` shows registers, shared memory and spills.
"""

from __future__ import annotations

import importlib
import re
from importlib.resources import files
from typing import NamedTuple

import pytest
from cuda_mutants import MUTANTS
from devices import absent

from gputree.backends.cuda import kernels
from gputree.backends.cuda.kernels import HEADERS, OPTIONS, Variant, source
from gputree.criteria import Entropy, Gini, ManyClassEntropy, SquaredError, WideGini

ARCHITECTURES = (75, 80, 86, 90, 100, 120)

# Bytes that the registers of a kernel may spill, stores and loads together.
MOST_SPILLED = 0

# What CuPy adds to the options it is given.
CUPY_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")

CRITERIA = (Gini, WideGini, Entropy, ManyClassEntropy, SquaredError)

# All criteria for one architecture, two of them for all.
CASES = [
    *((90, Variant(criterion, weighted, 32)) for criterion in CRITERIA for weighted in (0, 1)),
    *((arch, Variant(Gini, False, 32)) for arch in ARCHITECTURES if arch != 90),
    *((arch, Variant(SquaredError, True, 64)) for arch in ARCHITECTURES),
]


class Usage(NamedTuple):
    registers: int
    shared: int
    spilled: int


@pytest.fixture(scope="module")
def nvrtc():
    try:
        cupy = importlib.import_module("cupy")
        version = cupy.cuda.nvrtc.getVersion()
    except (ImportError, RuntimeError, OSError) as error:
        absent("NVRTC", f"NVRTC is reached through CuPy, which is not here: {error}")
    print(f"NVRTC {version[0]}.{version[1]}")
    return cupy.cuda.nvrtc


def compile_module(nvrtc, name, variant, arch) -> dict[str, Usage]:
    """What the kernels of a module use, as the assembler tells."""
    program = nvrtc.createProgram(source(name), f"{name}.cu", (), ())
    options = [*OPTIONS, *CUPY_OPTIONS, *variant.macros, f"-arch=sm_{arch}", "--ptxas-options=-v"]
    try:
        nvrtc.compileProgram(program, tuple(options))
    except nvrtc.NVRTCError:
        pytest.fail(nvrtc.getProgramLog(program))
    log = nvrtc.getProgramLog(program)
    nvrtc.destroyProgram(program)
    assert "warning" not in log, log
    return dict(usage(log))


def usage(log):
    for part in log.split("Compiling entry function '")[1:]:
        spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        registers = re.search(r"Used (\d+) registers", part)
        shared = re.search(r"(\d+) bytes smem", part)
        yield (
            part.partition("'")[0],
            Usage(
                int(registers[1]), int(shared[1]) if shared else 0, sum(map(int, spilled.groups()))
            ),
        )


@pytest.mark.parametrize(("arch", "variant"), CASES, ids=lambda v: " ".join(map(str, v)) if
                         isinstance(v, tuple) else f"sm_{v}")  # fmt: skip
def test_kernels_compile(nvrtc, arch, variant):
    found: dict[str, Usage] = {}
    for name in HEADERS:
        found |= compile_module(nvrtc, name, variant, arch)
    for kernel, used in found.items():
        print(f"sm_{arch} {kernel:20} {used.registers:3} registers {used.shared:5} bytes shared "
              f"{used.spilled} spilled")  # fmt: skip
    assert len(found) >= 25
    assert {k: u.spilled for k, u in found.items() if u.spilled > MOST_SPILLED} == {}


def test_mutants_change_one_place():
    sources = files("gputree.backends.cuda").iterdir()
    text = "".join(path.read_text() for path in sources if path.name.endswith((".cu", ".cuh")))
    assert {m.name: text.count(m.old) for m in MUTANTS if text.count(m.old) != 1} == {}


def test_headers_exist_and_include_nothing():
    for name in HEADERS:
        text = source(name)
        assert "#include" not in text
        assert 'extern "C" __global__' in text
    assert kernels.OPTIONS.count("--fmad=false") == 1
