"""Functions that borrow arrays: what breaks the rules is refused, and references balance."""

import ast
import gc
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import gputree
from gputree import C45Classifier, DecisionTreeClassifier, DecisionTreeRegressor
from gputree.compilation import borrowing, inner, overload, overload_borrowing, pasted
from gputree.compilation.declared import declare
from gputree.compilation.decorators import has_arrays

pytestmark = [
    pytest.mark.usefixtures("always_compiled"),
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
]


def compiled(function):
    """Return a function that Python can call in place of one that only kernels call."""
    declare()
    return numba.njit(lambda *arguments: function(*arguments))


@borrowing
def twice(values):
    total = 0.0
    for i in range(values.size):
        total += 2 * values[i]
    return total


@borrowing
def same(values):
    return values


@borrowing
def pair(values):
    return 1, values


@borrowing
def three():
    return np.empty(3)


@inner
def halves(values):
    return values[: values.size // 2]


@borrowing
def half(values):
    return twice(halves(values))


@pasted
def outer(values):
    return twice(values[1:])


def counting(values):
    raise NotImplementedError


def borrowed(values):
    raise NotImplementedError


@overload(counting)
def _counting(values):
    return lambda values: values[1:]


@overload_borrowing(borrowed)
def _lending(values):
    return lambda values: values


@borrowing
def of_counting(values):
    return twice(counting(values))


@borrowing
def of_lending(values):
    return twice(borrowed(values))


@pytest.mark.parametrize(("function", "expected"), [(twice, 12), (outer, 10), (of_lending, 12)])
def test_arrays_are_lent(function, expected):
    values = np.array([1.0, 2.0, 3.0])
    assert compiled(function)(values) == expected


@pytest.mark.parametrize(
    ("function", "fault"),
    [(same, "returns arrays"), (pair, "returns arrays"), (half, "takes arrays from"),
     (of_counting, "takes arrays from")],
)  # fmt: skip
def test_what_breaks_a_rule_is_refused(function, fault):
    with pytest.raises(TypeError, match=f"{function.__name__}, which borrows arrays, {fault}"):
        compiled(function)(np.zeros(4))


def test_arrays_cannot_be_made():
    with pytest.raises(numba.TypingError):
        compiled(three)()


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, False), (np.zeros(1), True), ((1, 2.0), False), ((1, (2, np.zeros(2))), True),
     ((np.zeros(1), np.ones(1)), True), (None, False)],
)  # fmt: skip
def test_what_has_arrays(value, expected):
    assert has_arrays(numba.typeof(value)) is expected


@pytest.fixture
def held():
    """Count the arrays that compiled code keeps."""
    before = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    yield lambda: (gc.collect(), rtsys.get_allocation_stats())[1]
    if not before:
        _nrt_python.memsys_disable_stats()


def models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    labels, target = rng.integers(0, 3, 300), rng.normal(size=300)
    holes = np.where(rng.random(X.shape) < 0.1, np.float32(np.nan), X)
    codes = np.floor(rng.random(X.shape) * 9).astype(np.float32)
    yield "classes", DecisionTreeClassifier(), (X, labels)
    yield "entropy", DecisionTreeClassifier(criterion="entropy"), (X, labels)
    yield "holes", DecisionTreeClassifier(), (holes, labels)
    yield "targets", DecisionTreeRegressor(), (X, target, rng.random(300))
    yield "monotonic", DecisionTreeRegressor(monotonic_cst=[1, -1, 0, 0]), (X, target)
    yield "few columns", DecisionTreeRegressor(max_features=2, random_state=0), (X, target)
    yield ("categories", DecisionTreeClassifier(categorical_features=[0, 1]), (codes, labels))
    yield "C4.5", C45Classifier(), (holes, labels)


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "arguments"), [pytest.param(*rest, id=name) for name, *rest in models()]
)
def test_references_balance(model, arguments, held):
    model.fit(*arguments)
    first = held()
    for _ in range(3):
        model.fit(*arguments)
    last = held()
    made, freed = last.mi_alloc - first.mi_alloc, last.mi_free - first.mi_free
    assert made > 0
    assert made == freed


def decorators(function):
    """Names in the decorators of a function, and in their arguments."""
    return {
        part.id
        for decorator in function.decorator_list
        for part in ast.walk(decorator)
        if isinstance(part, ast.Name)
    }


def functions_of(texts):
    for text in texts:
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                yield node


def test_only_functions_that_borrow_call_those_that_lend():
    """A kernel would release arrays of its caller, and so free them while they are used."""
    texts = [path.read_text("utf-8") for path in Path(gputree.__file__).parent.rglob("*.py")]
    lending = {
        node.name
        for node in functions_of(text for text in texts if "overload_borrowing" in text)
        if {"where_given", "overload_borrowing"} <= decorators(node)
    }
    assert lending
    for node in functions_of(text for text in texts if any(name in text for name in lending)):
        calls = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        if calls & lending:
            assert decorators(node) & {"borrowing", "pasted"}, node.name
