"""Instructions of PTX that set one register: what each is in C++, behind the words of `ptx.h`."""

import re
from functools import cache
from typing import NamedTuple


class Form(NamedTuple):
    """Instructions of one result: types of the result and of operands, and its value."""

    pattern: str
    result: str
    operands: str
    value: str


_TYPE = r"[bsu](?:16|32|64)"
# A comparison alone, or with another predicate.
_GUARDS = [("", "", ""), (r"\.and", " pred", " && {2}"), (r"\.or", " pred", " || {2}")]
_GUARDS += [(r"\.xor", " pred", " != {2}")]

_ORDERED = {"eq": "==", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_INTEGERS = {**_ORDERED, "ne": "!="}
# Those that end in u are true where one is NaN, which C++ has of != alone.
_DOUBLES = {name: f"{{0}} {sign} {{1}}" for name, sign in _ORDERED.items()} | {
    "neu": "{0} != {1}",
    "ne": "({0} < {1} || {0} > {1})",
    "equ": "!({0} < {1} || {0} > {1})",
    "ltu": "!({0} >= {1})",
    "leu": "!({0} > {1})",
    "gtu": "!({0} <= {1})",
    "geu": "!({0} < {1})",
    "num": "({0} == {0} && {1} == {1})",
    "nan": "({0} != {0} || {1} != {1})",
}

# \1 is the first group of a pattern, {0} the first operand.
FORMS = [
    # integers
    Form(r"add\.[bsu](16|32|64)", r"u\1", r"u\1 u\1", "{0} + {1}"),
    Form(r"sub\.[bsu](16|32|64)", r"u\1", r"u\1 u\1", "{0} - {1}"),
    Form(r"mul\.lo\.[bsu](16|32|64)", r"u\1", r"u\1 u\1", "1u * {0} * {1}"),
    Form(r"mul\.hi\.([su])(32|64)", r"\1\2", r"\1\2 \1\2", "high({0}, {1})"),
    Form(r"mul\.wide\.([su])32", r"\g<1>64", r"\g<1>32 \g<1>32", r"(\g<1>64){0} * {1}"),
    Form(r"mul\.wide\.([su])16", r"\g<1>32", r"\g<1>16 \g<1>16", r"(\g<1>32){0} * {1}"),
    Form(r"mad\.lo\.[bsu](32|64)", r"u\1", r"u\1 u\1 u\1", "{0} * {1} + {2}"),
    Form(r"mad\.wide\.([su])32", "u64", r"\g<1>32 \g<1>32 u64", r"(u64)((\g<1>64){0} * {1}) + {2}"),
    Form(r"div\.([su])(16|32|64)", r"\1\2", r"\1\2 \1\2", "divide({0}, {1})"),
    Form(r"rem\.([su])(16|32|64)", r"\1\2", r"\1\2 \1\2", "remainder({0}, {1})"),
    Form(r"neg\.s(16|32|64)", r"u\1", r"u\1", "0 - {0}"),
    Form(r"abs\.s(16|32|64)", r"u\1", r"s\1", r"{0} < 0 ? 0 - (u\1){0} : (u\1){0}"),
    Form(r"(min|max)\.([su])(16|32|64)", r"\2\3", r"\2\3 \2\3", r"\1({0}, {1})"),
    Form(r"and\.(pred|b16|b32|b64)", r"\1", r"\1 \1", "{0} & {1}"),
    Form(r"or\.(pred|b16|b32|b64)", r"\1", r"\1 \1", "{0} | {1}"),
    Form(r"xor\.(pred|b16|b32|b64)", r"\1", r"\1 \1", "{0} ^ {1}"),
    Form(r"not\.(b16|b32|b64)", r"\1", r"\1", "~{0}"),
    Form(r"not\.pred", "pred", "pred", "!{0}"),
    Form(r"shl\.b(16|32|64)", r"u\1", r"u\1 u32", r"{1} < \1 ? {0} << {1} : 0"),
    Form(r"shr\.[bu](16|32|64)", r"u\1", r"u\1 u32", r"{1} < \1 ? {0} >> {1} : 0"),
    Form(r"shr\.s(16|32|64)", r"s\1", r"s\1 u32", r"{0} >> ({1} < \1 ? {1} : \1 - 1)"),
    Form(r"shf\.([lr])\.clamp\.b32", "u32", "u32 u32 u32", r"shf_\1({0}, {1}, min({2}, 32u))"),
    Form(r"shf\.([lr])\.wrap\.b32", "u32", "u32 u32 u32", r"shf_\1({0}, {1}, {2} & 31)"),
    Form(r"(popc|clz)\.b(32|64)", "u32", r"u\2", r"\1({0})"),
    Form(r"brev\.b(32|64)", r"u\1", r"u\1", "brev({0})"),
    Form(r"bfind\.([su])(32|64)", "u32", r"\1\2", "bfind({0})"),
    Form(r"bfind\.shiftamt\.([su])(32|64)", "u32", r"\1\2", "bfind_shiftamt({0})"),
    Form(r"bfe\.([su])(32|64)", r"\1\2", r"\1\2 u32 u32", "bfe({0}, {1}, {2})"),
    Form(r"bfi\.b(32|64)", r"u\1", r"u\1 u\1 u32 u32", "bfi({0}, {1}, {2}, {3})"),
    Form(r"prmt\.b32", "u32", "u32 u32 u32", "prmt({0}, {1}, {2})"),
    Form(r"lop3\.b32", "u32", "u32 u32 u32 u32", "lop3({0}, {1}, {2}, {3})"),
    # doubles
    Form(r"add(?:\.rn)?\.f64", "f64", "f64 f64", "{0} + {1}"),
    Form(r"sub(?:\.rn)?\.f64", "f64", "f64 f64", "{0} - {1}"),
    Form(r"mul(?:\.rn)?\.f64", "f64", "f64 f64", "{0} * {1}"),
    Form(r"div\.rn\.f64", "f64", "f64 f64", "{0} / {1}"),
    Form(r"rcp\.rn\.f64", "f64", "f64", "1.0 / {0}"),
    Form(r"fma\.rn\.f64", "f64", "f64 f64 f64", "__builtin_fma({0}, {1}, {2})"),
    Form(r"sqrt\.rn\.f64", "f64", "f64", "__builtin_sqrt({0})"),
    Form(r"neg\.f64", "f64", "f64", "-{0}"),
    Form(r"abs\.f64", "f64", "f64", "__builtin_fabs({0})"),
    Form(r"(min|max)\.f64", "f64", "f64 f64", r"\1({0}, {1})"),
    # choices and conversions
    *(
        Form(
            rf"setp\.{name}{with_}\.({_TYPE})", "pred", rf"\1 \1{more}", f"{{0}} {sign} {{1}}{end}"
        )
        for name, sign in _INTEGERS.items()
        for with_, more, end in _GUARDS
    ),
    *(
        Form(rf"setp\.{name}{with_}\.f64", "pred", f"f64 f64{more}", f"{value}{end}")
        for name, value in _DOUBLES.items()
        for with_, more, end in _GUARDS
    ),
    Form(rf"selp\.({_TYPE}|f64)", r"\1", r"\1 \1 pred", "{2} ? {0} : {1}"),
    Form(rf"mov\.({_TYPE}|f64|pred)", r"\1", r"\1", "{0}"),
    Form(r"cvt\.([su](?:8|16|32|64))\.([su](?:8|16|32|64))", r"\1", r"\2", r"(\1){0}"),
    Form(r"cvt\.rn\.f64\.([su](?:8|16|32|64))", "f64", r"\1", "(f64){0}"),
    Form(r"cvt\.r([nzmp])i\.f64\.f64", "f64", "f64", r"round_\1({0})"),
    Form(r"cvt\.r([nzmp])i\.([su](?:32|64))\.f64", r"\2", "f64", r"to_integer<\2>(round_\1({0}))"),
    Form(r"cvta\.(?:to\.)?(?:global|const)\.u64", "u64", "u64", "{0}"),
    Form(r"cvta\.param\.u64", "u64", "u64", "{0} + (u64)param.begin"),
    Form(r"cvta\.to\.shared\.u64", "u64", "u64", "{0} - shared_begin()"),
    Form(r"cvta\.shared\.u64", "u64", "u64", "{0} + shared_begin()"),
    Form(r"cvta\.to\.local\.u64", "u64", "u64", "{0} - (u64)local.begin"),
    Form(r"cvta\.local\.u64", "u64", "u64", "{0} + (u64)local.begin"),
    # collectives
    Form(r"bar\.red\.popc\.u32", "u32", "zero pred", "barrier(BARRIER_COUNT, {1}, LINE)"),
    Form(r"bar\.red\.and\.pred", "pred", "zero pred", "barrier(BARRIER_AND, {1}, LINE)"),
    Form(r"bar\.red\.or\.pred", "pred", "zero pred", "barrier(BARRIER_OR, {1}, LINE)"),
    Form(
        r"redux\.sync\.add\.[su]32", "u32", "u32 u32", "collective(REDUCE_ADD, {1}, {0}, 0, LINE)"
    ),
    Form(r"redux\.sync\.min\.u32", "u32", "u32 u32", "collective(REDUCE_MIN, {1}, {0}, 0, LINE)"),
    Form(r"redux\.sync\.max\.u32", "u32", "u32 u32", "collective(REDUCE_MAX, {1}, {0}, 0, LINE)"),
    Form(r"vote\.sync\.any\.pred", "pred", "pred u32", "collective(ANY, {1}, {0}, 0, LINE)"),
    Form(r"vote\.sync\.all\.pred", "pred", "pred u32", "collective(ALL, {1}, {0}, 0, LINE)"),
    Form(r"vote\.sync\.ballot\.b32", "u32", "pred u32", "collective(BALLOT, {1}, {0}, 0, LINE)"),
    Form(
        r"match\.any\.sync\.b(32|64)", "u32", r"u\1 u32", "collective(MATCH_ANY, {1}, {0}, 0, LINE)"
    ),
]
_PATTERNS = [(re.compile(form.pattern), form) for form in FORMS]


@cache
def find_form(name: str) -> tuple[str, list[str], str]:
    """Types of the result and of the operands of an instruction, and its value."""
    for pattern, form in _PATTERNS:
        if found := pattern.fullmatch(name):
            texts = [found.expand(text) for text in form[1:]]
            return texts[0], texts[1].split(), texts[2]
    raise ValueError("unknown instruction")
