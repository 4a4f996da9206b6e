"""Pages, help, messages and docstrings use standard terms: the glossary lists what they avoid."""

import ast
import contextlib
import inspect
import io
import re
from functools import cache
from pathlib import Path

import pytest
from test_docstrings import public_names

import gputree
from gputree import cli

PACKAGE = Path(gputree.__file__).parent
ROOT = PACKAGE.parent
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *PACKAGE.rglob("*.md"),
        *DOCS.glob("*.md"),
        *DOCS.glob("decisions/*.md"),
        *DOCS.glob("examples/*.py"),
        *(ROOT / "benchmarks" / "results").glob("*.md"),
        DOCS / "api" / "index.rst",
    ]
)
CODE = re.compile(
    r"^ *(`{3,}|~{3,}).*?^ *\1|<!--.*?-->|(`{1,2})[^`]*\2|\$[^$]*\$|(?<=\]\()[^)]*|https?:\S+",
    re.MULTILINE | re.DOTALL,
)
PARAMETERS = re.compile(r"^ *[\w, *]+ : ", re.MULTILINE)  # their names in a docstring
USES = (  # legitimate uses of avoided words, with the reason
    r"Math\.floor",  # of JavaScript
    r"[Tt]he bar below",  # a bar that is drawn
)


@cache
def avoided() -> re.Pattern:
    """One pattern of the first column of the glossary's last table."""
    table = GLOSSARY.read_text("utf-8").split("| not | but |")[1]
    phrases = [
        phrase.strip()
        for line in re.findall(r"^\| (?!-)(.*?) \|", table, re.MULTILINE)
        for phrase in line.split(",")
    ]
    assert len(phrases) > 40
    patterns = [r"\s+".join(map(re.escape, p.split())) for p in phrases]
    patterns = [p.replace("…", r"(?:\S+\s+){0,4}?\S+") for p in patterns]
    return re.compile(
        rf"\b(?:{'|'.join(sorted(patterns, key=len, reverse=True))})\b", re.IGNORECASE
    )


@cache
def text_of(page: Path) -> str:
    """A page without its code; of the changelog the newest section."""
    text = page.read_text("utf-8")
    if page.name == "CHANGELOG.md":
        text = "".join(text.split("\n## ")[:2])
    if page == GLOSSARY:
        text = text.split("## Words that are not used")[0]
    if page.suffix == ".py":  # a docstring at the top, and comments
        text = "\n".join([text.split('"""')[1], *re.findall(r"^# (.*)", text, re.MULTILINE)])
    return CODE.sub(" ", text)


@cache
def messages(folder: Path) -> str:
    """Strings of a folder that are no docstrings, and have words: messages, help, log records."""
    found = []
    for source in sorted(folder.glob("*.py")):
        docstrings = set()
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):  # parents come first
            if isinstance(node, ast.Expr):
                docstrings.add(node.value)
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and node not in docstrings and " " in node.value.strip():
                found.append(node.value)
    return "\n".join(found)


@cache
def docstrings(thing) -> str:
    """Docstrings of a public name and of its public methods."""
    found = [inspect.getdoc(thing) or ""]
    for name, member in inspect.getmembers(thing) if inspect.isclass(thing) else ():
        function = member.fget if isinstance(member, property) else member
        is_ours = inspect.isfunction(function) and function.__module__.startswith("gputree")
        if is_ours and not name.startswith("_"):
            found.append(inspect.getdoc(function) or "")
    return CODE.sub(" ", re.sub(PARAMETERS, " ", "\n".join(found)))


def avoided_in(text: str) -> list[str]:
    for use in USES:
        text = re.sub(use, " ", text)
    return [" ".join(found.split()) for found in avoided().findall(text)]


def test_phrases_are_found():
    text = "Held in turn\nagainst `holes` it sieves cells, in\nshares, least-squares."
    assert avoided_in(CODE.sub(" ", text)) == ["Held in turn against", "sieves cells", "in shares"]


WRITTEN = [*PACKAGE.glob("export/templates/*.txt"), PACKAGE / "persistence/model.schema.json"]


@pytest.mark.parametrize("source", WRITTEN, ids=lambda path: path.name)
def test_what_exports_write(source):
    """Test their text, comments and names, words of which are separated by underscores."""
    assert avoided_in(source.read_text("utf-8").replace("_", " ")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page(page):
    assert avoided_in(text_of(page)) == []


@pytest.mark.parametrize("command", [[], *([name] for name in cli._COMMANDS)], ids=str)
def test_help(command):
    output = io.StringIO()
    with contextlib.redirect_stdout(output), pytest.raises(SystemExit):
        cli.main([*command, "--help"])
    assert avoided_in(output.getvalue()) == []


@pytest.mark.parametrize(
    "folder",
    [PACKAGE, *sorted(path for path in PACKAGE.rglob("*") if any(path.glob("*.py")))],
    ids=lambda folder: folder.relative_to(ROOT).as_posix(),
)
def test_messages(folder):
    assert avoided_in(messages(folder)) == []


@pytest.mark.parametrize("name", sorted(public_names()))
def test_docstrings(name):
    assert avoided_in(docstrings(public_names()[name])) == []


def test_uses_are_still_there():
    """An exception that no text needs is removed."""
    everything = "\n".join(
        [
            *map(text_of, PAGES),
            *map(messages, [PACKAGE, *PACKAGE.rglob("*")]),
            *map(docstrings, public_names().values()),
            *(source.read_text("utf-8") for source in WRITTEN),
        ]
    )
    assert [use for use in USES if not re.search(use, everything)] == []
