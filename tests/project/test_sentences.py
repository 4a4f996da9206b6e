"""Private docstrings and comments, too, are plain: their first words, and the glossary's words.

A docstring is an imperative or a noun phrase. It does not lean on a sentence that is not there, as
relative clauses do.
"""

import ast
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from token import NAME

import pytest
from test_words import CODE, PACKAGE, PARAMETERS, avoided

ROOT = Path(__file__).parents[2]
OPENINGS = re.compile(
    r"(?:What|Whether|Which|Where|How|Of|As|Those|That|Let|Some|All|By)\b(?!-)"  # as in By-product
)
USES = (  # legitimate uses of avoided words, with the reason
    r"least recently used",  # the name of a cache's policy
    r"\btell=print",  # a parameter
)
COMMENTS = {  # in a line; CUDA's sources have no others
    ".py": re.compile(r"(?:^|\s)#:? (.*)"),
    ".cuh": re.compile(r"(?:^|\s)// (.*)"),
}


@cache
def sources() -> dict[str, list[Path]]:
    """Sources in Python and CUDA by folder."""
    found = defaultdict(list)
    for top in ("gputree", "tests", "tools"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".py", ".cu", ".cuh", ".h"):
                found[path.parent.relative_to(ROOT).as_posix()].append(path)
    return dict(found)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A module with the statements in it; expressions, most of a tree, are not visited."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from statements(child)


@cache
def docstrings_in(path: Path) -> list[str]:
    """Docstrings of a module, its classes and functions; none of CUDA."""
    if path.suffix != ".py":
        return []
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [
        node
        for node in statements(ast.parse(path.read_text("utf-8")))
        if isinstance(node, documented)
    ]
    return [text for text in map(ast.get_docstring, nodes) if text]


def comments_in(path: Path) -> list[str]:
    """Comments of a source, those of consecutive lines together."""
    comment = COMMENTS[".py" if path.suffix == ".py" else ".cuh"]
    lines = [
        found and found[1] for found in map(comment.search, path.read_text("utf-8").splitlines())
    ]
    return ["\n".join(group) for has, group in groupby(lines, bool) if has]


def openings_in(folder: str) -> list[str]:
    """First lines of the docstrings of a folder that begin with relative words."""
    return [
        f"{path.name}: {text.splitlines()[0]}"
        for path in sources()[folder]
        for text in docstrings_in(path)
        if OPENINGS.match(text)
    ]


def words_in(text: str) -> list[str]:
    """Words to avoid in a text, without code and names of parameters."""
    for pattern in (*USES, PARAMETERS, CODE):
        text = re.sub(pattern, " ", text)
    return [" ".join(found.split()) for found in avoided().findall(text)]


def avoided_words_in(folder: str) -> list[str]:
    """Words to avoid in docstrings and comments of a folder."""
    return [
        f"{path.name}: {word}"
        for path in sources()[folder]
        for text in [*docstrings_in(path), *comments_in(path)]
        for word in words_in(text)
    ]


def names_in(path: Path) -> Counter[str]:
    """Names in a source, without its comments and strings, by how often they are there."""
    if path.suffix == ".py":
        with path.open("rb") as file:
            return Counter(t.string for t in tokenize.tokenize(file.readline) if t.type == NAME)
    return Counter(re.findall(r"[^\W\d]\w*", re.sub(r"//.*", " ", path.read_text("utf-8"))))


def test_faults_are_found(tmp_path):
    path = tmp_path / "module.py"
    text = 'def f():\n    """Whether it\n    is."""\n    x = 1  % by heart\n    % seam,\n    % told'
    path.write_text(text.replace("%", "#"))  # no comments of this file
    assert OPENINGS.match(docstrings_in(path)[0])
    assert not OPENINGS.match("Allow or however")
    assert comments_in(path) == ["by heart\nseam,\ntold"]
    assert words_in(comments_in(path)[0]) == ["by heart", "seam", "told"]
    assert names_in(path)["x"] == 1
    assert "told" not in names_in(path)
    path = path.with_suffix(".cu")
    path.write_text("i64 n;  // of a\n\n// greatest\nint m = `room`;")
    assert comments_in(path) == ["of a", "greatest"]
    assert names_in(path) == {"i64": 1, "n": 1, "int": 1, "m": 1, "room": 1}


@pytest.mark.parametrize("folder", sorted(sources()))
def test_docstrings_begin_with_an_imperative_or_a_noun(folder):
    assert openings_in(folder) == []


@pytest.mark.parametrize("folder", sorted(sources()))
def test_private_text_uses_the_words_of_the_glossary(folder):
    assert avoided_words_in(folder) == []


def test_names_say_what_they_are():
    """Names that fit everything: a variable `own` is a node, a column or a mask."""
    paths = [path for folder in sources().values() for path in folder]
    used = [path for path in paths if re.search(r"\bown\b", path.read_text("utf-8"))]
    assert sum(names_in(path)["own"] for path in used) < 30


def test_classes_have_different_names():
    paths = [path for folder in sources().values() for path in folder if path.suffix == ".py"]
    texts = [path.read_text("utf-8") for path in paths if path.is_relative_to(PACKAGE)]
    names = Counter(re.findall(r"^ *class (\w+)", "\n".join(texts), re.MULTILINE))
    assert len([name for name, count in names.items() if count > 1]) <= 10
