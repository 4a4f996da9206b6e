"""The program that seeds bugs into Python: what it draws, and what it runs by a map of tests."""

import ast
import json
import shutil

import pytest
from processes import run_python
from python_mutants import ROOT, Mutant, affordable, draw, likeliest_first, seeded
from python_operators import changes


def bugs_of(source):
    found = [(kind, ast.unparse(node), ast.unparse(new)) for kind, node, new in changes_in(source)]
    return {kind: [(old, new) for k, old, new in found if k == kind] for kind, _, _ in found}


def changes_in(source):
    return changes(ast.parse(source).body[0])


@pytest.mark.parametrize(
    ("source", "kind", "old", "new"),
    [
        ("return a < b", "bound by one", "a < b", "a <= b"),
        ("return a is None", "inverted", "a is None", "a is not None"),
        ("return a and b", "and/or", "a and b", "a or b"),
        ("return a and b", "dropped condition", "a and b", "b"),
        ("if a:\n    b()", "dropped condition", "a", "True"),
        ("return [x for x in y if x]", "dropped condition", "x", "True"),
        ("a -= b", "wrong sign", "a -= b", "a += b"),
        ("return (a + b) * c", "dropped term", "a + b", "a"),
        ("return (a + b) * c", "dropped factor", "(a + b) * c", "c"),
        ("f(a, b)", "swapped arguments", "f(a, b)", "f(b, a)"),
        ("f(a, key=b)", "parameter ignored", "f(a, key=b)", "f(a)"),
        ("for i in range(n):\n    f(i)", "off by one", "range(n)", "range(n - 1)"),
        ("x = y.astype(np.int64)", "dtype narrowed", "np.int64", "np.int32"),
        ("x = y.copy()", "missing copy", "y.copy()", "y"),
        ("def f(a=True): ...", "wrong constant", "True", "False"),
    ],
)
def test_bugs_of_a_statement(source, kind, old, new):
    assert (old, new) in bugs_of(source)[kind]


def test_texts_annotations_and_inner_statements_stay():
    assert not changes_in("x: 'A < B' = f'{a + b}'")
    assert set(bugs_of("if a:\n    b = c + d")) == {"dropped condition", "dropped case"}


@pytest.mark.full
def test_bugs_are_drawn_again_by_their_seed():
    """Each is one change of a text that occurs once, in a separate file."""
    drawn = draw(ROOT, 3, 8)
    assert drawn == draw(ROOT, 3, 12)[:8] != draw(ROOT, 4, 8)
    assert len({mutant.file for mutant in drawn}) == 8
    for mutant in drawn:
        source = (ROOT / mutant.file).read_text("utf-8")
        assert ast.dump(ast.parse(seeded(source, mutant))) != ast.dump(ast.parse(source))
    with pytest.raises(ValueError, match="must occur once"):
        seeded("", drawn[0])


def test_the_table_of_bugs_in_kernels_is_of_the_sources():
    """Each text occurs once in its file, and its name has the function that it is in."""
    for entry in json.loads((ROOT / "tools" / "kernel_mutants.json").read_text("utf-8")):
        mutant = Mutant(**entry)
        source = (ROOT / mutant.file).read_text("utf-8")
        ast.parse(seeded(source, mutant))
        place, function = mutant.name.partition(": ")[0].split()
        above = source[: source.index(mutant.old)]
        assert place == mutant.file
        assert above.rpartition("\ndef ")[2].partition("(")[0] == function


ENTERED = {
    "functions": ["gputree/tree/tree.py::f", "gputree/tree/tree.py::g"],
    "tests": {
        "tests/cli/test_a.py::one": [0.1, [0]],
        "tests/tree/test_b.py::two[a]": [0.3, [0, 1]],
        "tests/tree/test_b.py::two[b]": [0.2, [0]],
        "tests/tree/test_b.py::other": [0.1, [1]],
    },
}


def test_tests_that_enter_a_function_are_chosen():
    """Choose one case of each test first; the package's before others'."""
    mutant = Mutant("gputree/tree/tree.py:3 f: inverted: a -> b", "a", "b", "gputree/tree/tree.py")
    chosen = likeliest_first(ENTERED, mutant)
    names = ["tree/test_b.py::two[b]", "cli/test_a.py::one", "tree/test_b.py::two[a]"]
    assert [test for test, _ in chosen] == [f"tests/{name}" for name in names]
    assert affordable(chosen, 0.31) == [f"tests/{name}" for name in names[:2]]
    assert affordable(chosen, 0.0) == [f"tests/{names[0]}"]


@pytest.mark.process
def test_bugs_are_caught_where_tests_pass_without_them(tmp_path):
    module = "def least(a, b):\n    return a if a < b else b\n"
    tests = (
        "from gputree import least\n\n\n"
        "def test_order():\n    assert least(1, 2) == 1\n\n\n"
        "def test_it_fails_anyway():\n    assert least(1, 2) == 2\n"
    )
    for name, text in {"gputree/__init__.py": module, "tests/test_least.py": tests}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    file, names = "gputree/__init__.py", ("it_fails_anyway", "order")
    bugs = [
        Mutant(f"{file}:2 least: bound: a < b -> {new}", "a < b", new, file)._asdict()
        for new in ("a <= b", "a > b")
    ]
    entered = {f"tests/test_least.py::test_{name}": [0.1, [0]] for name in names}
    (tmp_path / "bugs.json").write_text(json.dumps(bugs))
    entered = {"functions": [f"{file}::least"], "tests": entered}
    (tmp_path / "map.json").write_text(json.dumps(entered))
    command = [tmp_path / "tools" / "python_mutants.py", tmp_path / "map.json", "--table"]
    found = run_python(*command, tmp_path / "bugs.json").splitlines()
    assert "| - | 2/2 |  |" in found[0]
    assert "| caught | 2/2 | tests/test_least.py::test_order" in found[1]
    assert found[2] == "caught 1 of 2, not entered 0"
