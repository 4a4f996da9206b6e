"""Every kernel compiles for every architecture that is supported, and no register spills.

``pytest -rP tests/test_cuda_compile.py`` shows registers, shared memory and spills.
"""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from importlib.resources import files
from itertools import product
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

# Every variant for one architecture, two of them for all.
VARIANTS = [Variant(*v) for v in product(CRITERIA, (False, True), (32, 64))]
CASES = [
    *((90, variant) for variant in VARIANTS),
    *product((75, 80, 86, 100, 120), (Variant(Gini, False, 32), Variant(SquaredError, True, 64))),
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


@pytest.fixture(scope="module")
def figures():
    """The most that each kernel takes on each architecture, in any variant; printed at the end."""
    found: dict[str, dict[int, Usage]] = defaultdict(dict)
    yield found
    columns = "".join(f"{f'sm_{arch}':>8}" for arch in ARCHITECTURES)
    print(f"\n{'registers':36}{columns}{'shared':>9}{'spilled':>9}  (bytes)")
    for kernel, by_arch in sorted(found.items()):
        registers = "".join(
            f"{by_arch[a].registers if a in by_arch else '':>8}" for a in ARCHITECTURES
        )
        most = [max(u) for u in zip(*by_arch.values(), strict=True)]
        print(f"{kernel:36}{registers}{most[1]:9}{most[2]:9}")


def name_case(value) -> str:
    """sm_90, or Gini-weighted-64."""
    if not isinstance(value, Variant):
        return f"sm_{value}"
    weighted = "-weighted" if value.weighted else ""
    return f"{value.criterion.__name__}{weighted}-{value.value_bits}"


@pytest.mark.parametrize(("arch", "variant"), CASES, ids=name_case)
def test_kernels_compile(nvrtc, figures, arch, variant):
    found: dict[str, Usage] = {}
    for name in HEADERS:
        used = compile_module(nvrtc, name, variant, arch)
        found |= {f"{name}: {kernel}": use for kernel, use in used.items()}
    for kernel, use in found.items():
        most = figures[kernel].get(arch, use)
        figures[kernel][arch] = Usage(*map(max, most, use))
    assert len(found) >= 25
    assert {k: u.spilled for k, u in found.items() if u.spilled > MOST_SPILLED} == {}


def test_mutants_change_one_place():
    """Those of the lists in their folder, others in the folder above."""
    sources = {}
    for package in ("gputree.backends.cuda", "gputree.backends.cuda.lists"):
        paths = [path for path in files(package).iterdir() if path.suffix in (".cu", ".cuh")]
        sources[package.endswith("lists")] = "".join(path.read_text() for path in paths)
    places = {m.name: sources[m.name.startswith("lists")].count(m.old) for m in MUTANTS}
    assert {name: count for name, count in places.items() if count != 1} == {}


def test_headers_exist_and_include_nothing():
    for name in HEADERS:
        text = source(name)
        assert "#include" not in text
        assert 'extern "C" __global__' in text
    assert kernels.OPTIONS.count("--fmad=false") == 1
