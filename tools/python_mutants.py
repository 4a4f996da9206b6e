"""Seeded bugs in the Python and numba code: how many do the tests catch that enter it?

    PYTHONPATH=tools python -m pytest -p entered --entered MAP.json       # once
    python tools/python_mutants.py MAP.json [--seed S] [-n BUGS] [--part K/M] [--seconds T]

Statements are drawn uniformly over all statements in functions of gputree that are not for a
device, one of a file, and a bug of each uniformly over its kinds (`python_operators`). Each is
written into a copy of the tree, where the default tests that enter its function are run until one
fails: one case of each test first, those of the folder of its package first, short ones
first, up to T seconds of what they take without a bug. A failing test is run without the bug, too,
and does not count if it fails then.

Prints a row a bug: its place, what was changed, the outcome, tests run of tests that enter the
function, and the test that caught it. Those that hang or crash are caught. Whether a bug that
survives changes anything is left to readers. ``--table FILE`` seeds bugs of a table (JSON: name,
old, new, file) in place of drawn ones; ``--list`` prints that table and runs nothing.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from entered import FUNCTION, functions
from python_operators import Change, changes

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("gputree", "tests", "tools", "benchmarks", "docs", "pyproject.toml", "README.md")
# What only a device runs.
SKIPPED = re.compile(r"cuda|backends/devices\.py|/data/")
# What most tests import.
PRELOADED = (
    "numba",
    "pandas",
    "pyarrow.csv",
    "pyarrow.parquet",
    "scipy.sparse",
    "sklearn.ensemble",
    "sklearn.model_selection",
    "sklearn.utils.estimator_checks",
)
MOST_BYTES = 12 << 30  # of addresses: a bug may allocate any size
# A run with a bug takes as long as without it, and what pytest and imports take.
START_SECONDS = 120


class Mutant(NamedTuple):
    """A text that occurs once in a file, and its replacement."""

    name: str
    old: str
    new: str
    file: str


def part_of(text: str) -> slice:
    """Return the slice of every M-th from the K-th on, of ``K/M``."""
    place, count = map(int, text.split("/"))
    return slice(place % count, None, count)


class Site(NamedTuple):
    """A statement of a function."""

    file: str
    function: str
    node: ast.stmt


# ------------------------------------------------------------------------------ which bugs
def sites(root: Path) -> Iterator[Site]:
    for path in sorted((root / "gputree").rglob("*.py")):
        file = path.relative_to(root).as_posix()
        if SKIPPED.search(file):
            continue
        for name, function in functions(ast.parse(path.read_text("utf-8"))):
            for node in _statements(function):
                yield Site(file, name, node)


def _statements(node: Any) -> Iterator[ast.stmt]:
    """Yield the statements of a function, without those of functions and classes inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTION, ast.ClassDef, ast.expr)):
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from _statements(child)


def draw(root: Path, seed: int, count: int) -> list[Mutant]:
    rng = random.Random(seed)
    drawn = list(sites(root))
    rng.shuffle(drawn)
    files: set[str] = set()
    found: list[Mutant] = []
    for site in drawn:
        possible = [] if site.file in files else changes(site.node)
        by_kind = {kind: [c for c in possible if c.kind == kind] for kind, _, _ in possible}
        while by_kind:  # until one is other code
            kind = rng.choice(sorted(by_kind))
            change = rng.choice(by_kind[kind])
            mutant = _mutant(root, site, change)
            if mutant is not None:
                files.add(site.file)
                found.append(mutant)
                break
            by_kind[kind].remove(change)
            by_kind = {kind: left for kind, left in by_kind.items() if left}
        if len(found) == count:
            break
    return found


def _mutant(root: Path, site: Site, change: Change) -> Mutant | None:
    """A bug as lines that occur once in the file, and as those in their place."""
    source = (root / site.file).read_text("utf-8")
    lines = source.splitlines(keepends=True)
    first, last = change.node.lineno - 1, change.node.end_lineno
    head = lines[first].encode()[: change.node.col_offset].decode()
    tail = lines[last - 1].encode()[change.node.end_col_offset :].decode()
    text = ast.unparse(ast.fix_missing_locations(change.new))
    new = f"{head}{text}{tail}"
    try:
        changed = ast.parse("".join([*lines[:first], new, *lines[last:]]))
    except SyntaxError:
        return None
    if ast.dump(changed) == ast.dump(ast.parse(source)):
        return None
    begin = first
    while begin > 0 and source.count("".join(lines[begin:last])) > 1:
        begin -= 1
    was = " ".join((ast.get_source_segment(source, change.node) or "").split())
    name = f"{site.file}:{first + 1} {site.function}: {change.kind}: {was} -> {text}"
    above = "".join(lines[begin:first])
    return Mutant(name, above + "".join(lines[first:last]), above + new, site.file)


# ------------------------------------------------------------------------------ which tests
def likeliest_first(entered: dict[str, Any], mutant: Mutant) -> list[tuple[str, float]]:
    """Tests that enter the function of a bug, with their seconds.

    Those of the package's folder before the others, and of all cases of a test the shortest.
    """
    function = f"{mutant.file}::{mutant.name.split(' ', 1)[1].partition(':')[0]}"
    place = entered["functions"].index(function) if function in entered["functions"] else -1
    found = [(t, spent) for t, (spent, places) in entered["tests"].items() if place in places]
    folder = "tests/" + mutant.file.split("/")[1].removesuffix(".py")
    cases: Counter[str] = Counter()
    ranked = []
    for test, spent in sorted(found, key=lambda pair: pair[1]):
        name = test.partition("[")[0]
        ranked.append((cases[name], not test.startswith(folder), spent, test))
        cases[name] += 1
    return [(test, spent) for _, _, spent, test in sorted(ranked)]


def affordable(tests: list[tuple[str, float]], seconds: float) -> list[str]:
    chosen = []
    for test, spent in tests:
        seconds -= spent
        if seconds < 0 and chosen:
            break
        chosen.append(test)
    return chosen


# ------------------------------------------------------------------------------ running them
class Outcome(NamedTuple):
    end: str  # "caught", "hangs", "crashes", "-", or "not entered"
    by: str = ""


class Copy:
    """A copy of the tree in which bugs are seeded, one after the other."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        for name in filter(lambda name: (root / name).exists(), COPIED):
            copy = shutil.copytree if (root / name).is_dir() else shutil.copy
            copy(root / name, folder / name)

    def run(self, tests: list[str], seconds: float) -> tuple[Outcome, str | None]:
        """Outcome of tests until one fails, and this one."""
        chosen = self.folder / "chosen.txt"
        chosen.write_text("\n".join(tests))
        files = sorted({test.partition("::")[0] for test in tests})
        command = ["-p", "chosen", f"--chosen={chosen}", "-x", "-q"]
        command += ["-p", "no:cacheprovider", "--tb=line", "--no-header", *files]
        code, output = _pytest(command, self.folder, int(3 * seconds + START_SECONDS))
        failed = re.search(r"^(?:FAILED|ERROR) (\S+?::.*?)(?: - (.*))?$", output, re.MULTILINE)
        if code == 0:
            return Outcome("-"), None
        if code < 0:
            return Outcome("hangs" if -code in (24, 9) else "crashes"), None
        if failed is None and "\nERROR " not in output:
            raise RuntimeError(f"pytest ended with {code}: {output}")
        if failed is None:  # in collection
            return Outcome("caught", output.strip()[-100:]), None
        return Outcome("caught", failed[0].partition(" ")[2]), failed[1]

    def catch(self, mutant: Mutant, tests: list[str], seconds: float) -> Outcome:
        """Outcome of the tests that pass without the bug."""
        path = self.folder / mutant.file
        source = path.read_text("utf-8")
        while tests:
            path.write_text(seeded(source, mutant), "utf-8")
            try:
                outcome, failed = self.run(tests, seconds)
            finally:
                path.write_text(source, "utf-8")
            if failed is None or self.run([failed], seconds)[0].end == "-":
                return outcome
            tests = tests[tests.index(failed) + 1 :]  # it fails anyway
        return Outcome("-")


def seeded(source: str, mutant: Mutant) -> str:
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: the text to change must occur once in {mutant.file}")
    return source.replace(mutant.old, mutant.new)


def _preload(folder: Path) -> None:
    """Import once what every run imports, but for the package: runs are forks of this process."""
    os.environ["NUMBA_CACHE_DIR"] = str(folder)  # what is compiled with bugs is gone with it
    for name in PRELOADED:
        with suppress(ImportError):
            import_module(name)


def _pytest(arguments: list[str], folder: Path, seconds: int) -> tuple[int, str]:
    """Exit status, below 0 for a signal, and output of pytest in a folder, in a fork."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.chdir(folder)
            paths = [str(folder), str(folder / "tools")]
            os.environ["PYTHONPATH"] = os.pathsep.join(paths)
            # bytecode is known by size and second: that of another bug would be taken
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            sys.dont_write_bytecode = True
            sys.path[:1] = paths
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
            try:
                code = pytest.main(arguments)
                sys.stdout.flush()  # which the end of this process does not
                os._exit(code)
            except BaseException:
                traceback.print_exc()
            os._exit(pytest.ExitCode.INTERNAL_ERROR)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return code, output.read().decode(errors="replace")


def row(number: int, mutant: Mutant, outcome: Outcome, run: int, entering: int) -> str:
    place, _, fault = mutant.name.partition(": ")
    cells = (number, place, fault, outcome.end, f"{run}/{entering}", outcome.by)
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("map", type=Path, help="functions entered by tests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-n", type=int, default=20, dest="count", help="bugs; default 20")
    parser.add_argument("--part", type=part_of, default=slice(None), metavar="K/M")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests a bug; default 60")
    parser.add_argument("--table", type=Path, help="bugs in place of drawn ones")
    parser.add_argument("--list", action="store_true", help="print the table of bugs")
    options = parser.parse_args(arguments)
    if options.table:
        mutants = [Mutant(**entry) for entry in json.loads(options.table.read_text())]
    else:
        mutants = draw(ROOT, options.seed, options.count)
    if options.list:
        print(json.dumps([mutant._asdict() for mutant in mutants[options.part]], indent=1))
        return 0
    entered = json.loads(options.map.read_text())
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as kernels:
        tree = Copy(ROOT, Path(folder))
        _preload(Path(kernels))
        for number, mutant in list(enumerate(mutants))[options.part]:
            tests = likeliest_first(entered, mutant)
            chosen = affordable(tests, options.seconds)
            outcome = Outcome("not entered")
            if chosen:
                outcome = tree.catch(mutant, chosen, options.seconds)
            ends[outcome.end] += 1
            print(row(number, mutant, outcome, len(chosen), len(tests)), flush=True)
    caught = sum(ends[end] for end in ("caught", "hangs", "crashes"))
    print(f"caught {caught} of {ends.total()}, not entered {ends['not entered']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
