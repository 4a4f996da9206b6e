"""Pages say one thing: files that they name exist, figures are those of the results."""

import re
import subprocess
from pathlib import Path

import pytest

import gputree

PACKAGE = Path(gputree.__file__).parent
ROOT = PACKAGE.parent
RESULTS = ROOT / "benchmarks" / "results"
TEXTS = sorted(
    path
    for folder in ("gputree", "docs", "benchmarks", "tools", ".ci", ".github")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".cu", ".cuh", ".md", ".rst", ".yml")
    if not {"_build", "generated", "gallery", "steps", "__pycache__"} & {*path.parts}
)
TEXTS += sorted([*ROOT.glob("*.md"), ROOT / "pyproject.toml"])
PAGES = [path for path in TEXTS if path.suffix == ".md"]


def paths_of_the_tree() -> set[str]:
    folders = ("gputree", "docs", "tests", "tools", "benchmarks", ".ci", ".github")
    files = [path for name in folders for path in (ROOT / name).rglob("*")]
    return {path.relative_to(ROOT).as_posix() for path in [*files, *ROOT.glob("*")]}


# --------------------------------------------------------------------- files
ENDING = re.compile(r"(?<=\w)\.(?:py|cuh?|md|rst|toml|cff|yml)\b(?![\w/(*])")
NAME = re.compile(r"(?:[\w.-]+/)*[\w-]+$")  # no pattern: `*_x.py`
WRITTEN = {"summary.md"}  # by `.ci/gpu`


def ends(paths: set[str]) -> set[str]:
    """The paths, and what is left of each without its first folders."""
    return {"/".join(p.split("/")[start:]) for p in paths for start in range(p.count("/") + 1)}


def named_files(text: str) -> set[str]:
    """Paths of source files in a text, found from their ends: names are few."""
    words = (re.split(r"[^\w./*<>{}-]", text[max(m.start() - 80, 0) : m.start()])[-1] + m[0]
             for m in ENDING.finditer(text))  # fmt: skip
    names = (re.sub(r"^(\.\.?/)+", "", word) for word in words)
    return {name for name in names if NAME.fullmatch(name.rpartition(".")[0])}


def absent_files(text: str, known: set[str]) -> set[str]:
    """Names of source files in a text that are not among the ends of paths that are known."""
    return named_files(text) - WRITTEN - known


def test_files_that_are_named_exist():
    known = ends(paths_of_the_tree())
    found = {path: absent_files(path.read_text("utf-8"), known) for path in TEXTS}
    assert {
        path.relative_to(ROOT).as_posix(): names for path, names in found.items() if names
    } == {}


@pytest.mark.parametrize("script", ["run", "gpu"])
def test_files_that_scripts_run_exist(script):
    words = re.findall(
        r"(?<![\w/.$}])tests/[\w/.{},*-]*\w[\w/.{},*-]*", (ROOT / ".ci" / script).read_text()
    )
    expanded = subprocess.run(
        ["bash", "-c", "printf '%s\\n' " + " ".join(words)],
        capture_output=True, text=True, check=True, cwd=ROOT,
    ).stdout.split()  # fmt: skip
    assert expanded
    assert [path for path in expanded if not (ROOT / path).exists()] == []


def test_an_absent_file_is_seen():
    known = ends({"gputree/criteria/gini.py"})
    text = (
        "See criteria/gini.py, gini.py, ../criteria/gini.py, criteria/targets.py, *_x.py and a.pyx."
    )
    assert absent_files(text, known) == {"criteria/targets.py"}


# -------------------------------------------------------------------- places
WHERE = ROOT / "docs" / "what_ran_where.md"
NOT_RUN = re.compile(
    r"\b(?:not|never|only)\s+(?:yet\s+|been\s+)*(?:run|ran|measured|timed|tried)\s+(?:yet\s+)?(?:on|by)\s+"
    r"(?:a\s+|the\s+|an\s+)?(?:GPU|device|emulator|hardware|card)",
    re.IGNORECASE,
)


def test_one_page_says_what_has_not_run():
    """Other pages may repeat it where they link to that page in the same paragraph."""
    for page in TEXTS:
        text = page.read_text("utf-8")
        if page == WHERE or not NOT_RUN.search(text):
            continue
        for paragraph in re.split(r"\n\s*\n|\n(?=- )", text):
            assert not NOT_RUN.search(paragraph) or WHERE.name in paragraph, (page, paragraph)


@pytest.mark.parametrize(
    "text", ["has not yet run on a GPU", "have only run on the\nemulator", "never ran on a device"]
)
def test_a_claim_is_seen(text):
    assert NOT_RUN.search(text)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/gpu.md",
        "docs/limits.md",
        "docs/larger_than_memory.md",
        "docs/versions.md",
        "gputree/distributed/README.md",
    ],
)
def test_pages_link_to_it(page):
    assert f"{WHERE.name})" in (ROOT / page).read_text("utf-8")


def test_trees_of_j48_need_thresholds_that_are_values():
    for page in PAGES:
        for paragraph in re.split(r"\n\s*\n|\n(?=- )", page.read_text("utf-8")):
            if re.search(r"\b19\s+of\s+19\s+recorded", paragraph):
                assert "threshold_placement" in paragraph, page


# ------------------------------------------------------------------- figures
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")
COMMAND = re.compile(r"(?:python -m )?benchmarks\.(?!md\b)(\w+(?:\.\w+)?)((?: [\w-]+)*)")


def numbers(text: str) -> list[str]:
    return [found.replace(",", "") for found in NUMBER.findall(text)]


def is_rounded(figure: str, of: list[float]) -> bool:
    """Return whether a figure is one of the numbers, rounded to its decimals."""
    decimals = len(figure.partition(".")[2])
    step = 10**-decimals / 2 * (1 + 1e-9)
    return any(abs(float(figure) - number) <= step for number in of)


def results_of(commands: list[re.Match]) -> str:
    """The parts of the results that commands in README have written; recorded trees are tests."""
    parts = []
    for module, words in ((command[1], command[2].split()) for command in commands):
        name = "cpu" if module == "compare" else module.rpartition(".")[2]
        if name == "reference":
            continue
        lines = (RESULTS / f"{name}.md").read_text("utf-8").splitlines()
        case = f"| {words[0]} |" if module == "compare" else ""
        parts += [line for line in lines if line.startswith(case)]
    assert parts, commands
    return "\n".join(parts)


def figures_of(text: str) -> list[str]:
    """Measured numbers of a text: with a decimal point, with a unit, or alone in their cell."""
    found = re.findall(r"(?<![\w.,])(\d+\.\d+|\d+(?= m?s\b)|(?<=\| )\d+(?= \|))", text)
    return [figure for figure in found if figure != "4.5"]  # C4.5


def measured(page: Path) -> list[tuple[str, list[re.Match]]]:
    """Rows of tables, paragraphs and items of lists that have figures, and their commands.

    Commands of a row are in it, in the header of its table, or in the paragraph above.
    """
    commands: list[re.Match] = []
    found = []
    for block in re.split(r"\n(?=\n|- )", page.read_text("utf-8")):
        is_table = block.lstrip().startswith("|")
        for text in block.strip().splitlines() if is_table else [block]:
            within = list(COMMAND.finditer(text))
            if is_table or within:
                commands = within or commands
                found.append((COMMAND.sub(" ", text), commands))
    return [(text, commands) for text, commands in found if commands and figures_of(text)]


def in_seconds(text: str) -> list[float]:
    """Numbers of a text, those in milliseconds also as seconds, and the reverse."""
    plain = [float(number) for number in numbers(text)]
    scaled = [float(n) * 1000 for n in re.findall(r"(\d+\.\d+) s\b", text)]
    return plain + scaled


def test_figures_of_readme_are_in_the_results():
    checked = 0
    for text, commands in measured(ROOT / "README.md"):
        known = in_seconds(results_of(commands))
        assert [f for f in figures_of(text) if not is_rounded(f, known)] == [], text
        checked += len(figures_of(text))
    assert checked > 80


def test_figures_of_the_chinese_readme_are_those_of_readme():
    english = numbers((ROOT / "README.md").read_text("utf-8"))
    chinese = re.findall(r"(?<![\w.])(\d+\.\d+)", (ROOT / "README.zh.md").read_text("utf-8"))
    assert [figure for figure in chinese if figure not in english and figure != "4.5"] == []


def test_figures_of_gpus_are_in_the_results():
    text = (ROOT / "docs" / "gpu.md").read_text("utf-8")
    table = text.split("## What it costs")[1].split("\n\n")[2]
    known = in_seconds((RESULTS / "gpu.md").read_text("utf-8"))
    figures = [figure for line in table.splitlines()[2:] for figure in figures_of(line)]
    assert len(figures) > 15
    assert [figure for figure in figures if not is_rounded(figure, known)] == []


@pytest.mark.parametrize(
    ("folder", "files"), [("tools", "*.py"), ("benchmarks", "*.py"), ("tests", "*/test_*.py")]
)
def test_the_page_of_a_folder_has_a_line_for_each_file(folder, files):
    page = (ROOT / folder / "README.md").read_text("utf-8")
    names = {path.stem for path in (ROOT / folder).glob(files)} - {"__init__"}
    assert [name for name in sorted(names) if not re.search(rf"`{name}(\.py)?`", page)] == []


def test_modules_on_the_page_of_tests_exist():
    """Names with a blank, and those of the folder `project`, are no modules."""
    known, absent = {path.partition(".")[0] for path in paths_of_the_tree()}, []
    for section in (ROOT / "tests" / "README.md").read_text("utf-8").split("\n## ")[1:]:
        folder = section.split()[0]
        below = (f"gputree/{folder}/", f"gputree/backends/{folder}/", "gputree/", "")
        for names in re.findall(r"^\| `\w+\.py` \| (.+?) \|", section, re.MULTILINE):
            for name in names.split(", "):
                if not {place + name.replace(".", "/") for place in below} & known:
                    absent.append((folder, name))
    assert [a for a in absent if a[0] != "project" and " " not in a[1]] == []
