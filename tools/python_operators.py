"""Bugs that a statement of Python may have: its kind, the node, and the node in its place.

Each is one slip of a programmer: a bound by one, a sign, a term or condition left out, two
arguments swapped. Texts, annotations and docstrings stay as they are.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

COMPARED = {
    ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn
}  # fmt: skip
COMPARED |= {other: one for one, other in COMPARED.items()}
BOUNDS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SIGNS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
FACTORS = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
NARROWER = {
    "float64": "float32", "int64": "int32", "int32": "int16", "intp": "int32",
    "uint64": "uint32", "uint32": "uint16", "uint16": "uint8",
}  # fmt: skip
AGGREGATES = {"sum": "max", "any": "all", "all": "any", "min": "max", "max": "min"}
AGGREGATES |= {"maximum": "minimum", "minimum": "maximum", "argmax": "argmin", "argmin": "argmax"}
# Functions and methods whose argument, or object, could be taken as it is.
PASSING = {
    "abs", "max", "min", "maximum", "minimum", "clip", "sorted", "unique", "int", "float", "round",
    "rint", "floor", "ceil", "ascontiguousarray", "astype", "strip", "lower", "fsum", "reversed",
}  # fmt: skip
# Functions whose arguments are not swapped: that is no likely bug.
KNOWN = {"isinstance", "issubclass", "getattr", "setattr", "hasattr", "cast"}
ANNOTATIONS = ("annotation", "returns", "decorator_list", "type_comment")


class Change(NamedTuple):
    kind: str
    node: Any  # as it stands in the source
    new: Any


def changes(statement: ast.stmt) -> list[Change]:
    """List the bugs of a statement, without those of statements inside it."""
    found = list(_of_statement(statement))
    for node in _expressions(statement):
        found += (Change(kind, node, new) for kind, new in _of_expression(node))
        for test in _tests(node):
            found.append(Change("dropped condition", test, ast.Constant(True)))
    return found


def _expressions(node: ast.AST) -> Iterator[Any]:
    for field, value in ast.iter_fields(node):
        if field in ANNOTATIONS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case, ast.JoinedStr)):
                continue
            if isinstance(child, ast.AST):
                yield child
                yield from _expressions(child)


def _tests(node: ast.AST) -> list[ast.expr]:
    return node.ifs if isinstance(node, ast.comprehension) else []


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    match node:
        case ast.If(test=test):
            yield Change("dropped condition", test, ast.Constant(True))
            yield Change("dropped case", test, ast.Constant(False))
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Delete():
            yield Change("dropped statement", node, ast.Pass())
        case ast.AugAssign(op=op):
            yield Change("dropped statement", node, ast.Pass())
            if type(op) in SIGNS:
                yield Change("wrong sign", node, _with(node, op=SIGNS[type(op)]()))
        case ast.Continue():
            yield Change("wrong jump", node, ast.Break())
        case ast.Break():
            yield Change("wrong jump", node, ast.Continue())


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare(ops=ops):
            for k, op in enumerate(ops):
                other = [*ops[:k], COMPARED[type(op)](), *ops[k + 1 :]]
                is_bound = isinstance(op, BOUNDS)
                yield "bound by one" if is_bound else "inverted", _with(node, ops=other)
        case ast.BoolOp(op=op, values=values):
            yield "and/or", _with(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
            for k in range(len(values)):
                rest = [*values[:k], *values[k + 1 :]]
                yield "dropped condition", rest[0] if len(rest) == 1 else _with(node, values=rest)
        case ast.IfExp(body=body, orelse=orelse):
            yield "dropped condition", body
            yield "dropped condition", orelse
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "inverted", operand
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield "wrong sign", operand
        case ast.BinOp():
            yield from _of_sum(node)
        case ast.Constant(value=bool()):
            yield "wrong constant", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield "off by one", ast.Constant(node.value + 1)
            if node.value > 0:
                yield "off by one", ast.Constant(node.value - 1)
        case ast.Constant(value=float()):
            yield "wrong constant", ast.Constant(node.value * 0.5 if node.value else 1.0)
        case ast.Call():
            yield from _of_call(node)
        case ast.Attribute(value=ast.Name(), attr=name) if name in NARROWER:
            yield "dtype narrowed", _with(node, attr=NARROWER[name])


def _of_sum(node: ast.BinOp) -> Iterator[tuple[str, ast.AST]]:
    if type(node.op) in SIGNS:
        yield "wrong sign", _with(node, op=SIGNS[type(node.op)]())
        yield "dropped term", node.left
        yield "dropped term", node.right
    elif isinstance(node.op, FACTORS):
        yield "dropped factor", node.left
        if isinstance(node.op, ast.Mult):
            yield "dropped factor", node.right


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    if plain and name not in KNOWN and len({*map(ast.dump, node.args[:2])}) == 2:
        swapped = [node.args[1], node.args[0], *node.args[2:]]
        yield "swapped arguments", _with(node, args=swapped)
    for k, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            rest = [*node.keywords[:k], *node.keywords[k + 1 :]]
            yield "parameter ignored", _with(node, keywords=rest)
    if name == "range" and plain:
        last = len(node.args) > 1
        fewer = [*node.args]
        fewer[last] = ast.BinOp(fewer[last], ast.Sub(), ast.Constant(1))
        yield "off by one", _with(node, args=fewer)
    if name in AGGREGATES:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        other = _with(node.func, **{field: AGGREGATES[name]})
        yield "wrong aggregate", _with(node, func=other)
    passes = name in PASSING or name == "copy"
    if passes and (taken := _taken(node)) is not None:
        yield "missing copy" if name == "copy" else "dropped call", taken


def _taken(node: ast.Call) -> ast.expr | None:
    """Operand that a call passes on: the first argument of a function, the object of a method."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="np" | "math" | "copy")) | ast.Name():
            first = node.args[0] if node.args else None
            return None if isinstance(first, (ast.Starred, ast.GeneratorExp)) else first
        case ast.Attribute(value=value):
            return value
    return None


def _with(node: Any, **fields: Any) -> Any:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new
