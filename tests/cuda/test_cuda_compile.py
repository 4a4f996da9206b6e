"""Every kernel compiles for every architecture that is supported, and no register spills.

What is compiled has the parameters that launches pass, and no instruction that changes a score.

``pytest -rP tests/cuda/test_cuda_compile.py`` shows registers, shared memory and spills.
"""

import importlib
import os
import re
import shutil
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

import ptx
import pytest
from cuda_emulator.nvrtc import CUPY_OPTIONS, Nvrtc, libraries, newest
from cuda_mutants import MUTANTS
from devices import absent

from gputree.backends.cuda import kernels
from gputree.backends.cuda.kernels import HEADERS, OPTIONS, Variant, source
from gputree.criteria import Gini, SquaredError
from gputree.criteria.named import FORMS

ARCHITECTURES = (75, 80, 86, 90, 100, 120)

# Those that a separate assembler reports.
ASSEMBLED = (75, 90, 100)

# Bytes that the registers of a kernel may spill, stores and loads together.
MOST_SPILLED = 0

CRITERIA = FORMS

# Every variant for the architecture on which kernels take most registers, two for the oldest and
# the newest, one for the others. As a rule a kernel spills first in the fullest variants.
MOST_REGISTERS = 90
PLAINEST, WIDEST = Variant(Gini, False, 32), Variant(SquaredError, True, 64)
FULLEST = [Variant(kind, True, 64, True, True, True) for kind in CRITERIA]
VARIANTS = {
    MOST_REGISTERS: [Variant(*v) for v in product(CRITERIA, (False, True), (32, 64))]
    + [Variant(kind, True, 64, categories=True) for kind in CRITERIA]
    + [Variant(kind, True, 64, monotonic=True) for kind in CRITERIA]
    + [Variant(kind, True, 64, interactions=True) for kind in (Gini, SquaredError)]
    + [Variant(kind, True, 64, wide=True) for kind in (Gini, SquaredError)]
    + FULLEST,
    **{arch: [PLAINEST, WIDEST] for arch in (min(ARCHITECTURES), max(ARCHITECTURES))},
}


class Case(NamedTuple):
    """A module as it is compiled: variants that differ in nothing it sees are one."""

    arch: int
    name: str
    macros: tuple[str, ...]

    def __str__(self) -> str:
        """sm_90-refine-GINI-WEIGHTED=0-VALUE_BITS=64."""
        return "-".join([f"sm_{self.arch}", self.name, *(macro[2:] for macro in self.macros)])


def seen(name: str, variant: Variant) -> tuple[str, ...]:
    """Options of the variant as launched whose macro the module has anywhere in its text."""
    macros = variant.seen_by(name).macros
    return tuple(macro for macro in macros if macro[2:].partition("=")[0] in words(name))


@cache
def words(name: str) -> set[str]:
    """Words that occur anywhere in the text of a module."""
    return set(re.findall(r"\w+", source(name)))


def declared(name: str) -> set[str]:
    """Names of the kernels that a module has for some variant."""
    kernel = r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\('
    return set(re.findall(kernel, source(name)))


def cases(arch: int, name: str, variants: list[Variant]) -> list[Case]:
    """Variants of a module for an architecture, each once as it is compiled."""
    return sorted({Case(arch, name, seen(name, variant)) for variant in variants})


def all_cases(turn: int, turns: int) -> list[Case]:
    """Cases of a turn: in each one the fullest variants, and others of a ``turns``-th.

    Of the other architectures one takes its turn.
    """
    others = [arch for arch in ARCHITECTURES if arch != MOST_REGISTERS]
    if turns > 1:
        others = [others[turn % len(others)]]
    found = []
    for name in HEADERS:
        always = cases(MOST_REGISTERS, name, FULLEST)
        rest = [
            case
            for case in cases(MOST_REGISTERS, name, VARIANTS[MOST_REGISTERS])
            if case not in always
        ]
        found += always + rest[turn % turns :: turns]
        for arch in others:
            found += cases(arch, name, VARIANTS.get(arch, [WIDEST]))
    return found


# K/M, as CI's runs take turns.
CASES = all_cases(*map(int, os.environ.get("GPUTREE_COMPILE_PART", "0/1").split("/")))


class Compiled(NamedTuple):
    log: str  # of the assembler
    ptx: str


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


@pytest.fixture(scope="module")
def compiled(nvrtc, request):
    """Modules by case, for the tests that run, compiled on all cores."""
    asked = [item.callspec.params.get("case") for item in request.session.items
             if hasattr(item, "callspec")]  # fmt: skip
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = dict.fromkeys(case for case in asked if isinstance(case, Case))
        yield {case: pool.submit(compile_module, nvrtc, case) for case in cases}


def compile_module(nvrtc, case: Case) -> Compiled:
    program = nvrtc.createProgram(source(case.name), f"{case.name}.cu", (), ())
    options = [*OPTIONS, *CUPY_OPTIONS, *case.macros, f"-arch=sm_{case.arch}"]
    try:
        nvrtc.compileProgram(program, (*options, "--ptxas-options=-v"))
    except nvrtc.NVRTCError:
        raise AssertionError(nvrtc.getProgramLog(program)) from None
    compiled = Compiled(nvrtc.getProgramLog(program), nvrtc.getPTX(program).decode())
    nvrtc.destroyProgram(program)
    return compiled


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
    show(found, ARCHITECTURES)


def show(found: dict[str, dict[int, Usage]], architectures: tuple[int, ...]) -> None:
    columns = "".join(f"{f'sm_{arch}':>8}" for arch in architectures)
    print(f"\n{'registers':36}{columns}{'shared':>9}{'spilled':>9}  (bytes)")
    for kernel, by_arch in sorted(found.items()):
        registers = "".join(
            f"{by_arch[a].registers if a in by_arch else '':>8}" for a in architectures
        )
        most = [max(u) for u in zip(*by_arch.values(), strict=True)]
        print(f"{kernel:36}{registers}{most[1]:9}{most[2]:9}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_compile(compiled, figures, case):
    log = compiled[case].result().log
    assert "warning" not in log, log
    found = dict(usage(log))
    for kernel, use in found.items():
        by_arch = figures[f"{case.name}: {kernel}"]
        by_arch[case.arch] = Usage(*map(max, by_arch.get(case.arch, use), use))
    regression = "-DREGRESSION=1" in case.macros
    assert set(found) == declared(case.name) - (set() if regression else {"narrow_targets"})
    assert {k: u.spilled for k, u in found.items() if u.spilled > MOST_SPILLED} == {}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_kernels_are_what_is_launched(compiled, case):
    """Counts, sizes and alignments of parameters, offsets of what is read, and instructions."""
    text, parameters = compiled[case].result().ptx, ptx.declared(case.name)
    assert ptx.problems(text, parameters) == []
    assert parameters.keys() - ptx.entries(text) <= {"narrow_targets"}


@pytest.mark.parametrize(
    "variant",
    [PLAINEST, WIDEST._replace(monotonic=True, interactions=True)],
    ids=["plainest", "widest"],
)
@pytest.mark.parametrize("name", HEADERS)
def test_other_releases_of_the_compiler(nvrtc, name, variant):
    """Compile with releases that CuPy does not use here, for their oldest device."""
    others = [other for other in map(Nvrtc, libraries()) if other.version != nvrtc.getVersion()]
    if not others:
        pytest.skip("no other NVRTC is installed")
    for other in others:
        least = min(arch for arch in other.architectures() if arch >= 70)
        options = (*OPTIONS, *CUPY_OPTIONS, *seen(name, variant), f"-arch=sm_{least}")
        log, text = other.compile(source(name), options)
        assert "warning" not in re.sub(".*Architectures prior to .* are deprecated.*", "", log), log
        assert ptx.problems(text, ptx.declared(name)) == []


def assembler() -> str | None:
    """The ptxas of a Python package or of a toolkit, which may be of another release than NVRTC."""
    tools = (str(library.parent.parent / "bin/ptxas") for library in libraries())
    return next(filter(os.path.exists, tools), None) or shutil.which("ptxas")


@pytest.mark.full
def test_what_the_assembler_makes_of_it(tmp_path):
    """Registers and spills are reported, not promised: a driver may bring any assembler."""
    tool = assembler()
    if tool is None or not libraries():
        pytest.skip("no ptxas is installed: pip install nvidia-cuda-nvcc")
    found: dict[str, dict[int, Usage]] = defaultdict(dict)
    for arch, name in product(ASSEMBLED, HEADERS):
        options = (*OPTIONS, *CUPY_OPTIONS, *seen(name, WIDEST), f"-arch=compute_{arch}")
        (tmp_path / "own.ptx").write_text(newest().compile(source(name), options)[1])
        command = [tool, "-v", f"-arch=sm_{arch}", "-o", os.devnull, str(tmp_path / "own.ptx")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        used = dict(usage(done.stderr))
        assert used
        for kernel, use in used.items():
            found[f"{name}: {kernel}"][arch] = use
    print(subprocess.run([tool, "--version"], capture_output=True, text=True).stdout)
    show(found, ASSEMBLED)


PTX = """
.visible .entry f(
    .param .u64 f_param_0,
    .param .align 8 .b8 f_param_1[16]
)
{
    ld.param.u64 %rd1, [f_param_0];
    ld.param.v2.u64 {%rd2, %rd3}, [f_param_1];
    ld.param.f64 %fd1, [f_param_1+8];
    @%p1 bra $L;
    add.rn.f64 %fd2, %fd1, %fd1;
    div.rn.f64 %fd2, %fd1, %fd1;
}
"""


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("", "", None),
        ("f_param_1[16]", "f_param_1[24]", "parameters"),
        (".align 8", ".align 4", "parameters"),
        (".param .u64 f_param_0", ".param .u32 f_param_0", "parameters"),
        ("    .param .u64 f_param_0,\n", "", "parameters"),
        ("[f_param_1+8]", "[f_param_1+4]", "parameter 1 is read at"),
        ("ld.param.f64 %fd1", "ld.param.u32 %r1", "parameter 1 is read at"),
        ("[f_param_1];", "[f_param_1+8];", "parameter 1 is read at"),
        ("add.rn.f64", "fma.rn.f64", "unwanted: fma.rn.f64"),
        ("add.rn.f64", "add.f64", "unwanted: add.f64"),
        ("add.rn.f64", "mul.f64", "unwanted: mul.f64"),
        ("add.rn.f64", "add.f32", "unwanted: add.f32"),
        ("add.rn.f64", "add.ftz.f64", "unwanted: add.ftz.f64"),
        ("div.rn.f64", "div.approx.f64", "unwanted: div.approx.f64"),
        ("div.rn.f64", "st.local.u64", "unwanted: st.local.u64"),
        ("@%p1 bra", "@%p1 call.uni", "unwanted: call.uni"),
    ],
)
def test_problems_are_seen(old, new, problem):
    fields = frozenset({(0, 8), (8, 8)})
    declared = {"f": [ptx.Parameter(8, 8, frozenset({(0, 8)})), ptx.Parameter(16, 8, fields)]}
    found = ptx.problems(PTX.replace(old, new), declared)
    assert problem in found[0] if problem else not found


@pytest.mark.parametrize("turns", [1, 8])
def test_every_turn_has_the_fullest_kernels_and_all_turns_have_all(turns):
    parts = [all_cases(turn, turns) for turn in range(turns)]
    fullest = {Case(MOST_REGISTERS, name, seen(name, v)) for name, v in product(HEADERS, FULLEST)}
    for part in parts:
        assert fullest <= set(part)
        assert {case.name for case in part if case.arch != MOST_REGISTERS} == {*HEADERS}
    assert set().union(*parts) == set(all_cases(0, 1))
    assert {case[:2] for case in all_cases(0, 1)} == set(product(ARCHITECTURES, HEADERS))


def test_mutants_change_one_place():
    """Mutants of the lists are in their folder, others in the folder above."""
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
