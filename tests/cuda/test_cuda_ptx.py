"""Kernels as NVRTC compiles them: their PTX, run on the emulator, gives the trees of the CPU.

The translation of instructions is compared with Python's integers and floats, and errors that g++
cannot show are seeded.
"""

import math
import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cuda_comparisons import COMPARISONS, compare_bins, compare_cells, compare_lists
from cuda_emulator import LaunchError, emulated_cuda
from cuda_emulator.compiler import build
from cuda_emulator.translator import UnknownPTX, translate
from devices import needs_emulator, needs_ptx

from gputree.backends.cuda import kernels

pytestmark = [*needs_emulator, needs_ptx]

# Of little work: the others are `full`.
CHEAP = ("inspection", "lists", "bins")


@pytest.mark.parametrize(
    "comparison",
    [pytest.param(name, marks=[] if name in CHEAP else pytest.mark.full) for name in COMPARISONS],
)
def test_trees_are_those_of_the_cpu(comparison):
    with emulated_cuda(ptx={}):
        COMPARISONS[comparison]()


# -------------------------------------------------------------------------- seeded errors
class TestSeededErrors:
    @pytest.mark.full
    def test_a_field_of_a_struct_elsewhere(self):
        """The launcher packs what sources declare, the compiled kernel reads another order."""
        fields = ["    i64 stride;  // bytes of a row of codes\n", "    i64 columns;\n"]
        moved = {"".join(fields): "".join(reversed(fields))}
        assert "".join(fields) in kernels.source("histogram")
        with (
            emulated_cuda(ptx={}, replace=moved),
            pytest.raises((AssertionError, LaunchError)),
        ):
            compare_bins()

    @pytest.mark.full
    def test_a_shared_array_in_the_place_of_another(self):
        """In what is compiled alone: each use of the one has the address of the other."""
        overlap = {"_ZZ13place_entriesE10warp_lefts;": "_ZZ13place_entriesE3sum;"}
        with emulated_cuda(ptx=overlap), pytest.raises((AssertionError, LaunchError)):
            compare_cells()

    @pytest.mark.full
    def test_fused_multiply_add(self, monkeypatch):
        options = tuple(text.replace("=false", "=true") for text in kernels.OPTIONS)
        monkeypatch.setattr(kernels, "OPTIONS", options)
        monkeypatch.delenv("GPUTREE_EMULATE", raising=False)
        with emulated_cuda():  # g++ has no such option
            compare_lists()
        with emulated_cuda(ptx={}), pytest.raises(AssertionError):
            compare_lists()


# -------------------------------------------------------------------------- instructions
MODULE = """
.version 9.0
.target sm_90
.address_size 64

.shared .align 8 .b8 _ZZ1fE3own[512];
.const .align 1 .b8 table[3] = {10, 20, 30};

.visible .entry f(
    .param .u64 f_param_0,
    .param .u64 f_param_1
)
.maxntid 64, 1, 1
{
    .reg .pred %p<10>;
    .reg .b16 %rs<10>;
    .reg .b32 %r<10>;
    .reg .b64 %rd<20>;
    .reg .f64 %fd<10>;

    ld.param.u64 %rd10, [f_param_0];
    ld.param.u64 %rd11, [f_param_1];
    mov.u32 %r9, %tid.x;
    mul.wide.u32 %rd12, %r9, 32;
    add.s64 %rd10, %rd10, %rd12;
    ld.global.v2.u64 {%rd1, %rd2}, [%rd10];
    ld.global.v2.u64 {%rd3, %rd4}, [%rd10+16];
    mul.wide.u32 %rd12, %r9, 8;
    add.s64 %rd11, %rd11, %rd12;
BODY
    ret;
}
"""

REGISTERS = {"pred": "%p", "16": "%rs", "32": "%r", "64": "%rd", "f64": "%fd"}


@pytest.fixture
def run(monkeypatch):
    """``run(body, inputs, n)``: what n results of each thread the instructions store."""
    monkeypatch.setattr("cuda_emulator.compiler._ptx", lambda source, options: source)

    def launch(body: str, inputs: np.ndarray, n: int = 1, check: bool = False) -> np.ndarray:
        with emulated_cuda(check=check, ptx={}) as cupy:
            kernel = cupy.RawModule(code=MODULE.replace("BODY", body)).get_function("f")
            out = cupy.zeros((n, len(inputs)), dtype=np.uint64)
            kernel((1,), (len(inputs),), (cupy.asarray(inputs), out))
            return out.get()

    return launch


def signed(value: int, n: int) -> int:
    value %= 2**n
    return value - 2**n if value >> (n - 1) else value


def double(bits: int) -> float:
    return struct.unpack("d", struct.pack("Q", bits))[0]


def bits(value: float) -> int:
    return struct.unpack("Q", struct.pack("d", value))[0]


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1


def field(a: int, place: int, count: int, n: int, is_signed: bool) -> int:
    place, count = place % 256, count % 256
    found = a >> place & ((1 << count) - 1)
    top = min(place + count - 1, n - 1)
    if is_signed and count and a >> top & 1:
        found |= (-1 << min(count, max(n - place, 0))) % 2**n
    return found


def permuted(a: int, b: int, selector: int) -> int:
    both = (b << 32 | a).to_bytes(8, "little")
    picks = [selector >> 4 * i & 15 for i in range(4)]
    return int.from_bytes(
        [255 * (both[p & 7] >> 7) if p & 8 else both[p & 7] for p in picks], "little"
    )


def saturated(x: float, n: int, is_signed: bool, round_: Callable[[float], int]) -> int:
    low, top = (-(2 ** (n - 1)), 2 ** (n - 1) - 1) if is_signed else (0, 2**n - 1)
    if math.isnan(x):
        return 2 ** (n - 1)
    return low if x <= low else top if x >= top else round_(x)


def lowest(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min((a, b), key=lambda x: (x, math.copysign(1, x)))


# Name, kinds of operands, kind of the result, and that of Python for unsigned integers or floats.
Case = tuple[str, str, str, Callable[..., Any]]


def integer_cases(n: int) -> list[Case]:
    def s(value: int) -> int:
        return signed(value, n)

    return [
        (f"add.s{n}", f"{n} {n}", f"{n}", lambda a, b: a + b),
        (f"sub.s{n}", f"{n} {n}", f"{n}", lambda a, b: a - b),
        (f"mul.lo.s{n}", f"{n} {n}", f"{n}", lambda a, b: a * b),
        (f"mul.hi.s{n}", f"{n} {n}", f"{n}", lambda a, b: s(a) * s(b) >> n),
        (f"mul.hi.u{n}", f"{n} {n}", f"{n}", lambda a, b: a * b >> n),
        (f"mad.lo.s{n}", f"{n} {n} {n}", f"{n}", lambda a, b, c: a * b + c),
        (f"div.s{n}", f"{n} {n}", f"{n}", lambda a, b: truncated(s(a), s(b))),
        (f"div.u{n}", f"{n} {n}", f"{n}", truncated),
        (f"rem.s{n}", f"{n} {n}", f"{n}", lambda a, b: s(a) - s(b) * truncated(s(a), s(b))),
        (f"rem.u{n}", f"{n} {n}", f"{n}", lambda a, b: a - b * truncated(a, b)),
        (f"neg.s{n}", f"{n}", f"{n}", lambda a: -a),
        (f"abs.s{n}", f"{n}", f"{n}", lambda a: abs(s(a))),
        (f"min.s{n}", f"{n} {n}", f"{n}", lambda a, b: min(s(a), s(b))),
        (f"max.u{n}", f"{n} {n}", f"{n}", max),
        (f"not.b{n}", f"{n}", f"{n}", lambda a: ~a),
        (f"and.b{n}", f"{n} {n}", f"{n}", lambda a, b: a & b),
        (f"or.b{n}", f"{n} {n}", f"{n}", lambda a, b: a | b),
        (f"xor.b{n}", f"{n} {n}", f"{n}", lambda a, b: a ^ b),
        (f"shl.b{n}", f"{n} 32", f"{n}", lambda a, b: a << min(b, n)),
        (f"shr.u{n}", f"{n} 32", f"{n}", lambda a, b: a >> min(b, n)),
        (f"shr.s{n}", f"{n} 32", f"{n}", lambda a, b: s(a) >> min(b, n)),
        (f"popc.b{n}", f"{n}", "32", int.bit_count),
        (f"clz.b{n}", f"{n}", "32", lambda a: n - a.bit_length()),
        (f"brev.b{n}", f"{n}", f"{n}", lambda a: int(f"{a:0{n}b}"[::-1], 2)),
        (f"bfind.u{n}", f"{n}", "32", lambda a: a.bit_length() - 1),
        (f"bfind.s{n}", f"{n}", "32", lambda a: (s(a) if s(a) >= 0 else ~s(a)).bit_length() - 1),
        (
            f"bfind.shiftamt.u{n}", f"{n}", "32",
            lambda a: n - a.bit_length() if a else -1,
        ),
        (f"bfe.u{n}", f"{n} 32 32", f"{n}", lambda a, b, c: field(a, b, c, n, False)),
        (f"bfe.s{n}", f"{n} 32 32", f"{n}", lambda a, b, c: field(a, b, c, n, True)),
        (f"selp.b{n}", f"{n} {n} pred", f"{n}", lambda a, b, c: a if c else b),
        (f"setp.lt.s{n}", f"{n} {n}", "pred", lambda a, b: s(a) < s(b)),
        (f"setp.lt.u{n}", f"{n} {n}", "pred", lambda a, b: a < b),
        (f"setp.eq.s{n}", f"{n} {n}", "pred", lambda a, b: a == b),
        (f"setp.ge.and.s{n}", f"{n} {n} pred", "pred", lambda a, b, c: s(a) >= s(b) and c),
        (f"setp.ne.xor.s{n}", f"{n} {n} pred", "pred", lambda a, b, c: (a != b) ^ c),
        (f"cvt.rn.f64.s{n}", f"{n}", "f64", lambda a: float(s(a))),
        (f"cvt.rn.f64.u{n}", f"{n}", "f64", float),
        (f"cvt.rzi.s{n}.f64", "f64", f"{n}", lambda x: saturated(x, n, True, math.trunc)),
        (f"cvt.rni.u{n}.f64", "f64", f"{n}", lambda x: saturated(x, n, False, round)),
    ]  # fmt: skip


def comparison_cases() -> list[Case]:
    """Comparisons of doubles: ordered, unordered, and tests for NaN."""
    found: list[Case] = []
    ordered: dict[str, Callable[[float, float], bool]] = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a < b or a > b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }
    for name, compare in ordered.items():
        found.append((f"setp.{name}.f64", "f64 f64", "pred", compare))
        found.append(
            (
                f"setp.{name}u.f64",
                "f64 f64",
                "pred",
                lambda a, b, compare=compare: a != a or b != b or compare(a, b),
            )
        )
    found.append(("setp.nan.f64", "f64 f64", "pred", lambda a, b: a != a or b != b))
    found.append(("setp.num.f64", "f64 f64", "pred", lambda a, b: a == a and b == b))
    return found


OTHER_CASES: list[Case] = [
    ("mul.wide.s32", "32 32", "64", lambda a, b: signed(a, 32) * signed(b, 32)),
    ("mul.wide.u32", "32 32", "64", lambda a, b: a * b),
    ("mad.wide.s32", "32 32 64", "64", lambda a, b, c: signed(a, 32) * signed(b, 32) + c),
    ("prmt.b32", "32 32 32", "32", permuted),
    ("shf.l.wrap.b32", "32 32 32", "32", lambda a, b, c: (b << 32 | a) << c % 32 >> 32),
    ("shf.r.wrap.b32", "32 32 32", "32", lambda a, b, c: (b << 32 | a) >> c % 32),
    ("shf.r.clamp.b32", "32 32 32", "32", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
    ("cvt.s64.s32", "32", "64", lambda a: signed(a, 32)),
    ("cvt.u64.u32", "32", "64", lambda a: a),
    ("cvt.u32.u64", "64", "32", lambda a: a),
    ("cvt.s32.s8", "32", "32", lambda a: signed(a, 8)),
    ("cvt.u16.u32", "32", "16", lambda a: a),
    ("add.s16", "16 16", "16", lambda a, b: a + b),
    ("mul.lo.s16", "16 16", "16", lambda a, b: a * b),
    ("setp.lt.s16", "16 16", "pred", lambda a, b: signed(a, 16) < signed(b, 16)),
    ("and.pred", "pred pred", "pred", lambda a, b: a & b),
    ("not.pred", "pred", "pred", lambda a: 1 - a),
    ("add.rn.f64", "f64 f64", "f64", lambda a, b: a + b),
    ("mul.rn.f64", "f64 f64", "f64", lambda a, b: a * b),
    ("neg.f64", "f64", "f64", lambda a: -a),
    ("abs.f64", "f64", "f64", abs),
    ("min.f64", "f64 f64", "f64", lowest),
    ("max.f64", "f64 f64", "f64", lambda a, b: -lowest(-a, -b)),
    ("cvt.rni.f64.f64", "f64", "f64", np.rint),
    ("cvt.rmi.f64.f64", "f64", "f64", np.floor),
    ("cvt.rpi.f64.f64", "f64", "f64", np.ceil),
]
INSTRUCTIONS = [*integer_cases(32), *integer_cases(64), *comparison_cases(), *OTHER_CASES]


def stored(case: Case, place: int, n: int) -> str:
    """PTX of one instruction on the first operands, and of the store of its result."""
    name, kinds, result, _ = case
    lines = []
    sources = []
    for i, kind in enumerate(kinds.split(), 1):
        register = f"{REGISTERS[kind]}{i}"
        sources.append(register)
        lines += {
            "pred": [f"and.b64 %rd9, %rd{i}, 1;", f"setp.ne.s64 {register}, %rd9, 0;"],
            "16": [f"cvt.u16.u64 {register}, %rd{i};"],
            "32": [f"cvt.u32.u64 {register}, %rd{i};"],
            "64": [],
            "f64": [f"mov.b64 {register}, %rd{i};"],
        }[kind]
    target = f"{REGISTERS[result]}8"
    lines.append(f"{name} {target}, {', '.join(sources)};")
    lines += {
        "pred": [f"selp.u64 %rd8, 1, 0, {target};"],
        "16": [f"cvt.u64.u16 %rd8, {target};"],
        "32": [f"cvt.u64.u32 %rd8, {target};"],
        "64": [],
        "f64": [f"mov.b64 %rd8, {target};"],
    }[result]
    lines.append(f"st.global.u64 [%rd11+{8 * place * n}], %rd8;")
    return "\n".join(lines)


def expected(case: Case, values: list[int]) -> int:
    _, kinds, result, function = case
    operands = [
        double(value) if kind == "f64" else value % 2 ** (1 if kind == "pred" else int(kind))
        for kind, value in zip(kinds.split(), values, strict=False)
    ]
    found = function(*operands)
    if result == "f64":
        return bits(float(found))
    return int(found) % 2 ** (1 if result == "pred" else int(result))


def samples() -> np.ndarray:
    """Integers and doubles of all sizes and signs, and those at the ends of types."""
    rng = np.random.default_rng(0)
    ends = [0, 1, 31, 32, 63, 64, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1]
    floats = [0.0, -0.0, 0.5, -1.5, 2.5, 1e300, -1e300, 2.0**63, 2.0**31 - 0.5, np.inf, -np.inf]
    some = np.array([*ends, *map(bits, floats), bits(math.nan)], np.uint64)
    drawn = rng.integers(0, 2**64, 12, np.uint64) >> rng.integers(0, 64, 12).astype(np.uint64)
    return rng.choice(np.concatenate([some, drawn]), (64, 4))


def test_instructions(run):
    inputs = samples()
    body = "\n".join(stored(case, i, len(inputs)) for i, case in enumerate(INSTRUCTIONS))
    found = run(body, inputs, len(INSTRUCTIONS)).tolist()
    for case, results in zip(INSTRUCTIONS, found, strict=True):
        rows = [list(map(int, row)) for row in inputs]
        wanted = [expected(case, row) for row in rows]
        wrong = [(row, a, b) for row, a, b in zip(rows, results, wanted, strict=True) if a != b]
        assert not [one for one in wrong if not (case[2] == "f64" and both_nan(*one[1:]))], case


def both_nan(a: int, b: int) -> bool:
    return math.isnan(double(a)) and math.isnan(double(b))


def test_fused_and_plain_products_differ(run):
    pair = [bits(1 + 2.0**-30), bits(1 - 2.0**-30), bits(-1.0), 0]
    inputs = np.array([pair], np.uint64)
    body = "mov.b64 %fd1, %rd1; mov.b64 %fd2, %rd2; mov.b64 %fd3, %rd3;"
    store = "mov.b64 %rd8, %fd8; st.global.u64 [%rd11], %rd8;"
    fused = run(f"{body} fma.rn.f64 %fd8, %fd1, %fd2, %fd3; {store}", inputs)
    plain = run(f"{body} mul.rn.f64 %fd8, %fd1, %fd2; add.rn.f64 %fd8, %fd8, %fd3; {store}", inputs)
    assert double(int(fused[0, 0])) == -(2.0**-60)
    assert double(int(plain[0, 0])) == 0


def test_predicates_guard_and_branch(run):
    body = """
    setp.lt.s64 %p1, %rd1, 2;
    mov.u64 %rd5, 10;
    @%p1 add.s64 %rd5, %rd5, 1;
    @!%p1 bra $AWAY;
    add.s64 %rd5, %rd5, 100;
$AWAY:
    st.global.u64 [%rd11], %rd5;
    """
    inputs = np.zeros((4, 4), np.uint64)
    inputs[:, 0] = np.arange(4)
    assert run(body, inputs).tolist() == [[111, 111, 10, 10]]


SHARED = """
    mov.u64 %rd5, _ZZ1fE3own;
    mul.wide.u32 %rd6, %r9, 8;
    add.s64 %rd5, %rd5, %rd6;
    st.shared.u64 [%rd5], %rd1;
    bar.sync 0;
    cvta.shared.u64 %rd6, %rd5;
    ld.u64 %rd7, [%rd6];
    cvta.to.shared.u64 %rd6, %rd6;
    setp.eq.s64 %p1, %rd5, %rd6;
    selp.u64 %rd7, %rd7, 0, %p1;
    st.global.u64 [%rd11], %rd7;
"""


# Other releases take 32 bits for them.
SHORT = """
    mov.b32 %r5, _ZZ1fE3own;
    shl.b32 %r6, %r9, 3;
    add.s32 %r5, %r5, %r6;
    st.shared.u64 [%r5], %rd1;
    ld.shared.u64 %rd7, [%r5];
    st.global.u64 [%rd11], %rd7;
"""


@pytest.mark.parametrize("check", [False, True])
def test_shared_memory_has_addresses_of_its_own(run, check):
    inputs = np.arange(32, dtype=np.uint64).reshape(8, 4)
    for body in (SHARED, SHORT):
        assert run(body, inputs, check=check).tolist() == [inputs[:, 0].tolist()]
    with pytest.raises(LaunchError, match=r"outside of shared memory|illegal"):
        run(SHARED.replace("mov.u64 %rd5, _ZZ1fE3own;", "mov.u64 %rd5, 100000;"), inputs)


def test_local_and_constant_memory(run):
    body = """
    .local .align 8 .b8 __local_depot0[16];
    mov.u64 %rd5, __local_depot0;
    st.local.u64 [%rd5+8], %rd1;
    cvta.local.u64 %rd6, %rd5;
    ld.u64 %rd7, [%rd6+8];
    mov.u64 %rd5, table;
    ld.const.u8 %rs1, [%rd5+2];
    cvt.u64.u16 %rd8, %rs1;
    add.s64 %rd7, %rd7, %rd8;
    st.global.u64 [%rd11], %rd7;
    """
    inputs = np.arange(32, dtype=np.uint64).reshape(8, 4)
    assert run(body, inputs).tolist() == [(inputs[:, 0] + 30).tolist()]
    with pytest.raises(LaunchError, match="outside of local memory"):
        run(body.replace("[%rd5+8]", "[%rd5+16]"), inputs)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("add.s64 %rd5, %rd10, 4; ld.global.u64 %rd6, [%rd5];", "misaligned address"),
        ("ld.global.v2.u64 {%rd5, %rd6}, [%rd10+8];", "misaligned address"),
        ("cvta.to.local.u64 %rd5, %rd10; ld.local.u64 %rd6, [%rd5];", "outside of local memory"),
        ("cvta.to.shared.u64 %rd5, %rd10; st.shared.u64 [%rd5], %rd1;", "outside of shared"),
        ("mov.u64 %rd5, _ZZ1fE3own; ld.global.u64 %rd6, [%rd5];", "illegal memory access"),
        (
            "mov.u64 %rd5, _ZZ1fE3own; cvta.shared.u64 %rd5, %rd5; ld.global.u64 %rd6, [%rd5];",
            "shared memory as global memory",
        ),
        ("trap;", "trap"),
    ],
)
def test_what_a_device_refuses(run, body, reason):
    with pytest.raises(LaunchError, match=reason):
        run(f"{body} st.global.u64 [%rd11], %rd6;", np.zeros((1, 4), np.uint64))


@pytest.mark.parametrize(
    "text",
    [
        "add.f32 %r1, %r2, %r3;",
        "add.rz.f64 %fd1, %fd2, %fd3;",
        "add.ftz.f64 %fd1, %fd2, %fd3;",
        "div.approx.f64 %fd1, %fd2, %fd3;",
        "cvt.sat.s32.f64 %r1, %fd1;",
        "max.NaN.f64 %fd1, %fd2, %fd3;",
        "call.uni some, (%r1);",
        "brx.idx %r1, places;",
        "bar.sync 1;",
        "bar.sync 0, 32;",
        "activemask.b32 %r1;",
        "mov.u32 %r1, %clock;",
        "ld.volatile.u64 %rd1, [%rd2];",
        "ld.param.u64 %rd1, [f_param_0+4];",
        "ld.param.u32 %r1, [f_param_2];",
        "st.param.u64 [f_param_0], %rd1;",
        "ld.global.v2.u64 %rd1, [%rd2];",
        "add.s64 %rd1, %r2, %rd3;",
        "ld.global.u64 %rd1, [%r2];",
        "mov.u32 %r1, table;",
        "add.s64 %rd1, %rd3;",
        "mov.u64 %rd1, %fd99;",
        "atom.global.inc.u32 %r1, [%rd1], %r2;",
    ],
)
def test_what_is_not_known_is_an_error(text):
    name = text.split()[0].rstrip(";")
    with pytest.raises(UnknownPTX, match=re.escape(name)):
        translate(MODULE.replace("BODY", f"    {text}"))


def test_the_threads_of_a_block_are_those_that_ptx_names():
    assert translate(MODULE.replace("BODY", "")).kernels == {"f": 64}


def test_arguments_have_the_size_of_parameters(run):
    with emulated_cuda(ptx={}) as cupy:
        kernel = cupy.RawModule(code=MODULE.replace("BODY", "")).get_function("f")
        array = cupy.zeros(4, dtype=np.uint64)
        for wrong in (np.int32(1), np.zeros(1, np.dtype([("a", "i8"), ("b", "i8")], align=True))):
            with pytest.raises(TypeError, match=r"argument 1.*8 bytes"):
                kernel((1,), (1,), (array, wrong))
        kernel((1,), (1,), (array, np.uint64(0)))


def test_ptx_is_found_again(monkeypatch):
    source = 'extern "C" __global__ void k(int* a) { a[threadIdx.x] = 3; }'
    first = build(source, ("--fmad=false",), False, ptx=())
    monkeypatch.setattr("cuda_emulator.nvrtc.Nvrtc.compile", None)
    assert build(source, ("--fmad=false",), False, ptx=()) == first
