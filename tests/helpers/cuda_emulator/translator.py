"""PTX, as NVRTC makes it, to C++ behind the words of `ptx.h`, line by line.

Registers become variables, branches become goto. What is not listed, here or in `instructions.py`,
is an error: an instruction is never run as something near it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from .instructions import find_form

BITS = {"pred": 1, "f64": 64} | {f"{kind}{n}": n for kind in "bsu" for n in (8, 16, 32, 64)}


class UnknownPTX(ValueError):
    """PTX that has no translation."""


# Their overloads are found by the type of the pointer.
_ATOMICS = {
    "add": ("atomicAdd", ("u32", "s32", "u64", "f64")),
    "min": ("atomicMin", ("u32", "s32", "u64", "s64")),
    "max": ("atomicMax", ("u32", "s32", "u64", "s64")),
    "and": ("atomicAnd", ("b32", "b64")),
    "or": ("atomicOr", ("b32", "b64")),
    "xor": ("atomicXor", ("b32", "b64")),
    "exch": ("atomicExch", ("b32", "b64")),
    "cas": ("atomicCAS", ("b32", "b64")),
}

_ENTRY = re.compile(r"\.visible\s+\.entry\s+(\w+)\s*\(([^)]*)\)([^{]*)\{(.*?)^\}", re.S | re.M)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+\.b8\s+(\w+)\[(\d+)\]|\.([bfsu]\d+)\s+(?:\.ptr\s[^,]*\s)?(\w+))\s*"
)
_VARIABLE = re.compile(
    r"(\.extern\s+)?\.(shared|local|const|global)\s+\.align\s+(\d+)\s+\.([bfsu]\d+)\s+(\w+)(?:\[(\d*)\])?"
    r"(?:\s*=\s*\{([\d,\s]*)\})?"
)
_REGISTERS = re.compile(r"\.reg\s+\.(pred|f64|[bsu]16|[bsu]32|[bsu]64)\s+(%\w+)(?:<(\d+)>)?")
_IGNORED = re.compile(r'\.pragma\s+"nounroll"')
_STATEMENT = re.compile(r"[$\w]+:|[{}]|[^\s;{}](?:[^;{}]|\{[^{}]*\})*;")
_INSTRUCTION = re.compile(r"(?:@(!?)(%\w+)\s+)?([a-z][\w.]*)\s*(.*)", re.S)
_OPERANDS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
_ADDRESS = re.compile(r"\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\]")
_MEMORY = re.compile(r"(ld|st)(?:\.(global|shared|local|const|param))?(?:\.v([24]))?\.([bsuf]\d+)")
_ATOMIC = re.compile(r"(atom|red)(?:\.(global|shared))?\.(\w+)\.([bsuf]\d+)")
_SHUFFLE = re.compile(r"shfl\.sync\.(up|down|bfly|idx)\.b32")


# Instructions without a result.
_PLAIN = {
    "bra": "goto {0};",
    "bra.uni": "goto {0};",
    "ret": "return;",
    "exit": "return;",
    "trap": 'emulator::trap("trap", LINE);',
}

# Functions that find the place of an access.
_PLACES = {None: "generic", "global": "global", "const": "global", "shared": "shared"}

# C++ for the name of a variable, by state space.
_ADDRESSES = {
    "shared": "shared_offset({})",
    "dynamic shared": "shared_offset(dynamic_shared())",
    "local": "0ull",
    "const": "(u64){}",
    "global": "(u64){}",
}

_INDEX = re.compile(r"%(tid|ntid|ctaid|nctaid)\.([xyz])|%(laneid)")

# Contents of registers before anything is written there.
_UNDEFINED = "0xCDCDCDCDCDCDCDCDull"


class Translated(NamedTuple):
    text: str
    kernels: dict[str, int]  # their names, and the most threads a block of each may have


def translate(ptx: str) -> Translated:
    """The C++ of a module."""
    ptx = re.sub(r"//[^\n]*|^\.(version|target|address_size)\b.*$", "", ptx, flags=re.M)
    outside = _ENTRY.sub(lambda found: "\n" * found[0].count("\n"), ptx)
    lines = [""] * (ptx.count("\n") + 1)
    variables: dict[str, str] = {}
    for line, statement in _statements(outside, 0):
        lines[line] += _declare(statement, variables)
    kernels = {}
    for found in _ENTRY.finditer(ptx):
        name, parameters, limits, _ = found.groups()
        first = ptx.count("\n", 0, found.start())
        entry = _Entry(name, parameters, dict(variables))
        limit = re.search(r"\.(?:max|req)ntid\s+(\d+)(?:,\s*1)*\s*$", limits, re.M)
        kernels[name] = int(limit[1]) if limit else 1024
        begin = ptx.count("\n", 0, found.start(4))
        body = [(line, entry.statement(text, line)) for line, text in _statements(found[4], begin)]
        lines[first] += entry.head()
        for line, text in body:
            lines[line] += text
        lines[first + found[0].count("\n")] += entry.tail()
    text = "\n".join(['#line 1 "kernels.ptx"', *lines])
    return Translated(f'#include "ptx.h"\nusing namespace ptx;\n{text}\n', kernels)


def _statements(text: str, line: int) -> Iterator[tuple[int, str]]:
    """Labels, directives and instructions, each with its line."""
    end = counted = 0
    for found in _STATEMENT.finditer(text):
        _require_blank(text[end : found.start()])
        line += text.count("\n", counted, found.start())
        yield line, found[0]
        counted, end = found.start(), found.end()
    _require_blank(text[end:])


def _require_blank(text: str) -> None:
    if text.strip():
        raise UnknownPTX(text.strip().partition("\n")[0])


def _declare(statement: str, variables: dict[str, str]) -> str:
    """A variable, whose state space is remembered by its name."""
    found = _VARIABLE.fullmatch(statement.rstrip(";").strip())
    if found is None:
        raise UnknownPTX(statement)
    external, space, align, kind, name, count, values = found.groups()
    size = BITS[kind] // 8 * int(count or 1)
    variables[name] = f"dynamic {space}" if external else space
    if external and space == "shared" and not values:
        return ""
    if external or (values is None) != (space != "const") or (values and kind != "b8"):
        raise UnknownPTX(statement)
    storage = {
        "shared": "static thread_local __attribute__((used))",
        "const": "static const",
        "global": "static",
    }
    label = f' asm("{name}")' if space == "shared" else ""
    start = f" = {{{values}}}" if values else ""
    kind = f"{storage.get(space, '')} unsigned char"
    return f"alignas({align}) {kind} {name}[{size}]{label}{start};"


class _Entry:
    """One kernel: its parameters, as they lie in memory, and its registers."""

    def __init__(self, name: str, parameters: str, variables: dict[str, str]) -> None:
        self.name, self.variables = name, variables
        self.registers: dict[str, str] = {}  # their types
        self.outer: list[dict[str, str]] = []  # those of the scopes around one
        self.local = self.depot = ""  # a variable in local memory, and its declaration
        self.parameters: dict[str, tuple[int, int]] = {}  # offset and bytes of each
        self.bytes = 0
        for text in filter(str.strip, parameters.split(",")):
            found = _PARAMETER.fullmatch(text.strip())
            if found is None:
                raise UnknownPTX(text.strip())
            align, struct, count, kind, scalar = found.groups()
            size = int(count) if struct else BITS[kind] // 8
            begin = -(-self.bytes // int(align or size)) * int(align or size)
            self.parameters[struct or scalar] = begin, size
            self.bytes = begin + size

    def head(self) -> str:
        """The function's beginning, known when its body has been read."""
        local = f"{{(char*){self.local}, sizeof {self.local}}}" if self.local else "{}"
        return (
            f"struct Of_{self.name} {{ alignas(16) char bytes[{self.bytes or 1}]; }}; "
            f"static __attribute__((noinline)) void run_{self.name}(Of_{self.name} given) {{ "
            f"{self.depot}const Room param{{given.bytes, {self.bytes}}}, local{local}; "
            f"{_variables(self.registers)}"
        )

    def tail(self) -> str:
        """Its end, and how it is called: with pointers to its arguments."""
        copies = "".join(
            f"memcpy(given.bytes + {begin}, a[{i}], {size}); "
            for i, (begin, size) in enumerate(self.parameters.values())
        )
        sizes = " ".join(f"b{size}" for _, size in self.parameters.values())
        name = self.name
        return (
            f'}} EMULATOR_API __attribute__((no_sanitize("thread"))) void emulator_call_{name}'
            f"(void** a) {{ Of_{name} given; {copies}run_{name}(given); }} "
            f'EMULATOR_API const char* emulator_signature_{name}() {{ return "{sizes}"; }}'
        )

    def statement(self, text: str, line: int) -> str:
        """C++ of a label, a directive or an instruction."""
        if text.endswith(":"):
            return f"{text};"
        if text == "{":
            self.outer.append(dict(self.registers))
            return text
        if text == "}":
            self.registers = self.outer.pop()
            return text
        text = text.removesuffix(";").strip()
        if text.startswith("."):
            return self._directive(text)
        try:
            negated, guard, name, operands = _INSTRUCTION.fullmatch(text).groups()
            code = self._instruction(name, _OPERANDS.findall(operands))
            condition = f"if ({negated}{self._read(guard, 'pred')}) " if guard else ""
        except (AttributeError, LookupError, ValueError) as error:
            raise UnknownPTX(f"line {line + 1}: {text} ({error})") from error
        return f"{condition}{{ {code.replace('LINE', str(line + 1))} }}"

    def _directive(self, text: str) -> str:
        if found := _REGISTERS.fullmatch(text):
            kind, name, count = found.groups()
            names = [f"{name}{i}" for i in range(int(count))] if count else [name]
            declared = dict.fromkeys(names, kind)
            self.registers.update(declared)
            return _variables(declared) if self.outer else ""
        if text.startswith(".shared"):
            return _declare(text, self.variables)
        if text.startswith(".local") and not self.local:
            self.depot = _declare(text, self.variables)
            self.local = list(self.variables)[-1]
        elif not _IGNORED.fullmatch(text):
            raise UnknownPTX(text)
        return ""

    def _instruction(self, name: str, operands: list[str]) -> str:
        if name in _PLAIN:
            return _PLAIN[name].format(*operands, *[""] * 3)
        if name == "bar.sync" and operands == ["0"]:
            return "emulator::barrier(emulator::BARRIER, 0, LINE);"
        if name == "bar.warp.sync":
            (mask,) = operands
            return f"collective(SYNCWARP, {self._read(mask, 'u32')}, 0, 0, LINE);"
        if found := _MEMORY.fullmatch(name):
            return self._memory(*found.groups(), operands)
        if found := _ATOMIC.fullmatch(name):
            return self._atomic(*found.groups(), operands)
        if found := _SHUFFLE.fullmatch(name):
            return self._shuffle(found[1], operands)
        if name == "mov.b64" and "{" in "".join(operands):
            return self._halves(*operands)
        result, kinds, value = find_form(name)
        target, *sources = operands
        values = [self._read(source, kind) for source, kind in zip(sources, kinds, strict=True)]
        return self._write(target, result, value.format(*values))

    def _memory(self, way: str, space: str, width: str, kind: str, operands: list[str]) -> str:
        """Loads and stores, of which the addresses of vectors are multiples of their size."""
        address, values = operands if way == "st" else operands[::-1]
        registers = [one.strip() for one in values.strip("{}").split(",")]
        if len(registers) != int(width or 1):
            raise ValueError("as many registers as the vector has elements")
        if way == "st" and space in ("param", "const"):
            raise ValueError("read-only")
        place = self._place(space, kind, len(registers), address)
        moves = [
            self._write(register, kind, f"at[{i}]")
            if way == "ld"
            else f"at[{i}] = {self._read(register, kind)};"
            for i, register in enumerate(registers)
        ]
        return f"{_ctype(kind)}* at = {place}; {' '.join(moves)}"

    def _place(self, space: str, kind: str, count: int, address: str) -> str:
        """A pointer to the memory at an address."""
        base, offset = _ADDRESS.fullmatch(address).groups()
        place, size = int(offset or 0), BITS[kind] // 8 * count
        if base in self.parameters:
            bound = self.parameters[base][1]
            if space != "param" or not 0 <= place <= bound - size:
                raise ValueError("outside of the parameter")
        is_short = space in ("shared", "local", "param") and self.registers.get(base) == "b32"
        value = f"(u64){self._read(base, 'u32' if is_short else 'u64')} + (u64){place}, {size}"
        if space in ("param", "local"):
            found = f'place_within({space}, {value}, "outside of {space} memory", LINE)'
        else:
            found = f"{_PLACES[space]}_place({value}, LINE)"
        return f"({_ctype(kind)}*){found}"

    def _atomic(self, way: str, space: str, what: str, kind: str, operands: list[str]) -> str:
        function, kinds = _ATOMICS[what]
        if kind not in kinds:
            raise ValueError("of another type")
        target, address, *sources = operands if way == "atom" else ["_", *operands]
        values = [self._read(source, kind) for source in sources]
        place = self._place(space, kind, 1, address)
        call = f"{function}({', '.join([place, *values])})"
        return f"{call};" if target == "_" else self._write(target, kind, call)

    def _shuffle(self, direction: str, operands: list[str]) -> str:
        target, *sources = operands
        register, _, is_there = target.partition("|")
        values = ", ".join(self._read(source, "u32") for source in sources)
        found = f"&{self._read(is_there, 'pred')}" if is_there else "nullptr"
        return self._write(register, "u32", f"shfl({direction}, {values}, {found}, LINE)")

    def _halves(self, target: str, source: str) -> str:
        """Two registers to one, or one to two: the low half first."""
        if source.startswith("{"):
            low, high = (self._read(one.strip(), "u32") for one in source.strip("{}").split(","))
            return self._write(target, "u64", f"(u64){high} << 32 | {low}")
        low, high = (one.strip() for one in target.strip("{}").split(","))
        value = self._read(source, "u64")
        parts = self._write(low, "u32", "(u32)both"), self._write(high, "u32", "(u32)(both >> 32)")
        return f"const u64 both = {value}; {' '.join(parts)}"

    def _read(self, operand: str, kind: str) -> str:
        """An operand as a value of a type, which may be narrower than its register."""
        if kind == "zero":  # the one barrier there is
            if operand != "0":
                raise ValueError("another barrier")
            return ""
        ctype = _ctype(kind)
        if found := _INDEX.fullmatch(operand):
            return f"({ctype}){found[1] + '_' + found[2] if found[1] else found[3]}()"
        if operand.startswith("%"):
            register = self.registers[operand]
            if register == kind or (register != "f64" and ctype == f"u{register[1:]}"):
                return operand[1:]
            if BITS[register] < BITS[kind] or "pred" in (register, kind):
                raise ValueError(f"{operand} is a .{register}")
            value = f"__builtin_bit_cast(u64, {operand[1:]})" if register == "f64" else operand[1:]
            return f"__builtin_bit_cast(f64, {value})" if kind == "f64" else f"({ctype}){value}"
        if operand.startswith("0d"):
            value = f"0x{operand[2:]}ull"
            return f"__builtin_bit_cast(f64, {value})" if kind == "f64" else f"({ctype}){value}"
        if operand in self.parameters:
            return f"{self.parameters[operand][0]}ull"
        if operand in self.variables:
            if BITS[kind] < 64 and self.variables[operand] in ("const", "global"):
                raise ValueError("an address of 64 bits")
            return _ADDRESSES[self.variables[operand]].format(operand)
        if kind == "f64":
            raise ValueError(f"{operand} is no double")
        return f"({ctype}){int(operand, 0) % 2**64:#x}ull"

    def _write(self, target: str, kind: str, value: str) -> str:
        """Set a register; what is narrower is extended, by its sign if it has one."""
        register, ctype = self.registers[target], _ctype(kind)
        if BITS[register] < BITS[kind] or (register == "pred") != (kind == "pred"):
            raise ValueError(f"{target} is a .{register}")
        if (register == "f64") != (kind == "f64"):
            if BITS[kind] != BITS[register]:
                raise ValueError(f"{target} is a .{register}")
            return f"{target[1:]} = __builtin_bit_cast({_ctype(register)}, ({ctype})({value}));"
        return f"{target[1:]} = ({ctype})({value});"


def _variables(registers: dict[str, str]) -> str:
    """The declaration of registers, which hold anything; goto may not pass that of a scope."""
    return "".join(
        f"{_ctype(kind)} {name[1:]} = ({_ctype(kind)}){_UNDEFINED}; "
        for name, kind in registers.items()
    )


def _ctype(kind: str) -> str:
    """The name of a type in C++."""
    return f"u{kind[1:]}" if kind[0] == "b" else kind
