"""Structs that kernels take by value: one layout on both sides, as compilers see it."""

import re
import subprocess
from functools import cache

import numpy as np
import pytest
from cuda_emulator import LaunchError, compiler, emulated_cuda
from devices import needs_emulator, of_source

from gputree.backends.cuda.kernels import HEADERS, STRUCTS, Struct, source

# The variants that differ in the types of pointers.
MACROS = (
    ("-DGINI", "-DREGRESSION=0", "-DWEIGHTED=0", "-DVALUE_BITS=32"),
    ("-DSQUARED_ERROR", "-DREGRESSION=1", "-DWEIGHTED=1", "-DVALUE_BITS=64"),
)
SAME = """
template <class A, class B> struct Same { static constexpr bool value = false; };
template <class A> struct Same<A, A> { static constexpr bool value = true; };
"""


@cache
def sources() -> dict[str, str]:
    """Sources of all modules of kernels, read once."""
    return {name: source(name) for name in HEADERS}


@cache
def modules(struct: Struct) -> list[str]:
    """Modules of kernels that define the struct, one for each text of its definition."""
    first: dict[str, str] = {}
    for name, text in sources().items():
        for definition in re.findall(rf"struct {struct.name} {{.*?}};", text, re.DOTALL):
            first.setdefault(definition, name)
    return list(first.values())


def assertions(struct: Struct) -> str:
    """Assertions in C++ that the struct's layout equals NumPy's, with the declared types."""
    lines = [f'static_assert(sizeof({struct.name}) == {struct.dtype.itemsize}, "size");']
    for field, kind in struct.fields.items():
        member = f"{struct.name}, {field}"
        word = kind.name if isinstance(kind, Struct) else kind
        place = struct.dtype.fields[field][1]
        lines += [
            f'static_assert(__builtin_offsetof({member}) == {place}, "place of {field}");',
            f"static_assert(Same<decltype({member.replace(', ', '::')}), {word}>::value, "
            f'"type of {field}");',
        ]
    return "\n".join(lines)


def compiles(text: str, macros: tuple[str, ...], tmp_path) -> str:
    """Messages of g++ about kernel source."""
    path = tmp_path / "kernel.cpp"
    path.write_text(text)
    command = [compiler.COMPILER, "-std=c++20", "-w", "-fsyntax-only", *macros]
    command += ["-include", str(compiler.HERE / "cuda.h"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def without_shared(text: str) -> str:
    """Declarations that the emulator rewrites are of no matter here."""
    return re.sub(r"extern __shared__ (\w+) (\w+)\[\];", r"\1* const \2 = nullptr;", text)


@pytest.mark.parametrize("macros", MACROS, ids=["classes", "targets"])
@pytest.mark.skipif(compiler.unavailable() is not None, reason=str(compiler.unavailable()))
@pytest.mark.parametrize("name", sorted({name for s in STRUCTS for name in modules(s)}))
def test_layouts(name, macros, tmp_path):
    structs = [struct for struct in STRUCTS if name in modules(struct)]
    text = "\n".join([without_shared(sources()[name]), SAME, *map(assertions, structs)])
    assert compiles(text, macros, tmp_path) == ""


def test_every_struct_is_in_some_module():
    assert [struct.name for struct in STRUCTS if not modules(struct)] == []
    assert len({struct.name for struct in STRUCTS}) == len(STRUCTS)


@pytest.mark.skipif(compiler.unavailable() is not None, reason=str(compiler.unavailable()))
def test_a_layout_that_differs_is_seen(tmp_path):
    head = "typedef unsigned char u8; typedef long long i64; struct S { i64 a; const u8* b; };"
    head += SAME
    for wrong in (
        Struct("S", a="i64"),
        Struct("S", b="const u8*", a="i64"),
        Struct("S", a="double", b="const u8*"),
        Struct("S", a="i64", b="u8*"),
    ):
        assert "static assertion failed" in compiles(head + assertions(wrong), (), tmp_path)
    right = Struct("S", a="i64", b="const u8*")
    assert compiles(head + assertions(right), (), tmp_path) == ""


# --------------------------------------------------------------------------- by value
PAIR = Struct("Pair", number="i64", factor="double")
BOTH = Struct("Both", pair=PAIR, read="const i32*", written="i32*")
CODE = """
typedef int i32; typedef long long i64;
struct Pair { i64 number; double factor; };
struct Both { Pair pair; const i32* read; i32* written; };
extern "C" __global__ void k(Both both, i64 n) {
    const i64 i = threadIdx.x;
    if (i < n) WHERE[i] = i32(both.read[i] * both.pair.factor + both.pair.number);
}
"""


def run(where: str, check: bool, n: int = 4) -> np.ndarray:
    with emulated_cuda(check=check) as cupy:
        read = cupy.asarray(np.arange(4, dtype=np.int32))
        written = cupy.empty(4, dtype=np.int32)
        kernel = cupy.RawModule(code=CODE.replace("WHERE", where)).get_function("k")
        kernel((1,), (32,), (BOTH.pack((5, 2.0), read, written), n))
        return written.get()


@of_source
class TestByValue:
    pytestmark = needs_emulator

    @pytest.mark.parametrize("check", [False, True])
    def test_fields_and_what_they_point_to(self, check):
        assert run("both.written", check).tolist() == [5, 7, 9, 11]

    def test_accesses_are_checked(self):
        with pytest.raises(LaunchError, match="out of bounds"):
            run("both.written", True, n=5)
        with pytest.raises(LaunchError, match="read-only"):
            run("((i32*)both.read)", True)

    def test_another_struct_is_refused(self):
        with emulated_cuda() as cupy:
            kernel = cupy.RawModule(code=CODE.replace("WHERE", "both.written")).get_function("k")
            for wrong in (PAIR.pack(1, 2.0), 1):
                with pytest.raises(TypeError, match="argument 0"):
                    kernel((1,), (32,), (wrong, 4))

    def test_arrays_have_the_types_of_their_fields(self):
        with emulated_cuda() as cupy:
            read = cupy.zeros((4, 2), dtype=np.int32)
            with pytest.raises(TypeError, match=r"Both.read is a const i32\*.* of int64"):
                BOTH.pack((1, 1.0), read.astype(np.int64), None)
            with pytest.raises(ValueError, match=r"array of Both.read must be C-contiguous"):
                BOTH.pack((1, 1.0), read[:, 0], None)
            with pytest.raises(TypeError, match="Both has 3 fields, got 2"):
                BOTH.pack((1, 1.0), read)
