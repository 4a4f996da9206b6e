"""PTX of kernels by NVRTC: their parameters, the places where these are read, instructions."""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from gputree.backends.cuda.kernels import STRUCTS, source

# Numbers that are passed by value: launches give them 8 bytes each.
NUMBERS = {"i64": 8, "u64": 8, "double": 8}
POINTER_BYTES = 8

_KERNEL = re.compile(
    r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\(\s*([^)]*?)\s*\)'
)
_ENTRY = re.compile(r"\.entry (\w+)\((.*?)\)(.*?)(?=\.visible|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"\.param (?:\.align (\d+) \.b8 \w+\[(\d+)\]|\.[uf](\d+)\b[^,]*)")
_LOAD = re.compile(r"ld\.param(\.v\d)?\.[a-z](\d+)\s+[^[]*\[\w+_param_(\d+)(?:\+(\d+))?\]")

# Sums in 32 bits or fused with a product differ from the CPU's; what is approximate does, too. The
# assembler may fuse what has no rounding, .rn.
# Calls and local memory are of no kernel as it is meant.
_UNWANTED = re.compile(
    r"^\s*(?:@\S+\s+)?((?:\w+\.)*(?:f32|ftz|approx|local)\b[\w.]*|fma\.[\w.]+|(?:add|sub|mul)\.f64|mad\.[\w.]*f64|call[\w.]*)",
    re.MULTILINE,
)


class Parameter(NamedTuple):
    bytes: int
    align: int
    fields: frozenset[tuple[int, int]]  # offset and bytes of each


def declared(name: str) -> dict[str, list[Parameter]]:
    """The parameters of a module's kernels as launches pass them."""
    return {
        kernel: [_declared(text) for text in parameters.split(",")]
        for kernel, parameters in _KERNEL.findall(source(name))
    }


@cache
def _declared(text: str) -> Parameter:
    words = text.replace("__grid_constant__", "").replace("const ", "").split()
    if "*" in text:
        return _plain(POINTER_BYTES)
    if words[0] in NUMBERS:
        return _plain(NUMBERS[words[0]])
    (struct_type,) = (struct.dtype for struct in STRUCTS if struct.name == words[0])
    return Parameter(struct_type.itemsize, struct_type.alignment, frozenset(_fields(struct_type)))


def _plain(size: int) -> Parameter:
    return Parameter(size, size, frozenset({(0, size)}))


def _fields(dtype: np.dtype) -> Iterator[tuple[int, int]]:
    """Offset and bytes of all numbers and pointers of a struct."""
    if dtype.names is None:
        yield 0, dtype.itemsize
        return
    for field, offset, *_ in (dtype.fields[name] for name in dtype.names):
        yield from ((offset + place, size) for place, size in _fields(field))


def problems(ptx: str, kernels: dict[str, list[Parameter]]) -> list[str]:
    """Differences of PTX from its declarations, and instructions that no kernel should have."""
    found = [f"unwanted: {text}" for text in sorted(set(_UNWANTED.findall(ptx)))]
    for kernel, parameters, body in _ENTRY.findall(ptx):
        actual = [
            (int(size), int(align)) if size else (int(bits) // 8, int(bits) // 8)
            for align, size, bits in _PARAMETER.findall(parameters)
        ]
        expected = kernels[kernel]
        if actual != [(one.bytes, one.align) for one in expected]:
            found.append(
                f"{kernel}: parameters of {actual} bytes and alignment, declared {expected}"
            )
            continue
        for count, bits, number, place in _LOAD.findall(body):
            offset, size = int(place or 0), int(bits) // 8
            loads = {(offset + i * size, size) for i in range(int(count[2:] or 1))}
            if not loads <= expected[int(number)].fields:
                found.append(f"{kernel}: parameter {number} is read at {sorted(loads)}")
    return found


def entries(ptx: str) -> set[str]:
    """Names of the kernels."""
    return {kernel for kernel, *_ in _ENTRY.findall(ptx)}
