"""Trees grown twice, on a device and on the CPU, or by many threads and by one, and compared.

Results are cached in the process, and in the user's cache folder.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gputree.backends import DEVICES
from gputree.backends.cuda import machine
from gputree.backends.cuda.machine import Identity
from gputree.base.files import replaced_file
from gputree.base.sklearn import DeviceName
from gputree.base.threads import most_threads
from gputree.check.cases import CASES, Case, CaseTable
from gputree.compilation.store import user_cache
from gputree.errors import InputError
from gputree.tree import Tree

FORMAT = 1

# Results in this process: differences on a device, empty if its check passed.
_known: dict[Identity, list[str]] = {}


def keep(identity: Identity, differences: Sequence[str], *, lasting: bool) -> None:
    """Record the result of a check; for this process only unless `lasting`, or without a folder."""
    remember(identity, differences)
    path = _path(identity)
    if path is None or not lasting:
        return
    content = {"format": FORMAT, **identity._asdict(), "differences": list(differences)}
    try:
        # kernels are cached here, too, and only where no other user may write
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replaced_file(path) as file:
            file.write(json.dumps(content, indent=1).encode())
    except OSError:  # a folder that is not writable, a full disk
        return


def remember(identity: Identity, differences: Sequence[str]) -> None:
    """Record the result of a check for this process only."""
    _known[identity] = list(differences)


def find(identity: Identity) -> list[str] | None:
    """Return the differences found by the check of a device; None if it has not been checked."""
    if identity not in _known:
        found = _read(identity)
        if found is None:
            return None
        remember(identity, found)
    return _known[identity]


def _read(identity: Identity) -> list[str] | None:
    """Read the differences from the file; None if it is missing or has other content."""
    path = _path(identity)
    try:
        content: Any = json.loads(path.read_bytes()) if path is not None else None
    except (OSError, ValueError):  # no JSON, or no text
        return None
    if not isinstance(content, dict):
        return None
    differences = content.pop("differences", None)
    if content != {"format": FORMAT, **identity._asdict()} or not isinstance(differences, list):
        return None
    return [str(line) for line in differences]


def _path(identity: Identity) -> Path | None:
    """Path of the file of a device in the user's cache folder; None without a home folder."""
    folder = user_cache()
    if folder is None:
        return None
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]
    return Path(folder) / f"check-{digest}.json"


# Minimum number of threads that are checked against a single one.
FEWEST_THREADS = 3


class Side(NamedTuple):
    """Device and number of threads that trees are grown with."""

    name: str  # as in "41 nodes on the CPU"
    column: str  # heading of its times
    device: str
    n_jobs: int | None = None


class Outcome(NamedTuple):
    """Result of one table.

    Attributes
    ----------
    name : str
        Of the table.
    nodes : int
        Of the tree on the reference side.
    seconds : pair of float
        On the reference side, and on the one that is checked.
    difference : str
        The first difference, or the error; empty where the trees are the same bit for bit.
    failed : bool
        True if there was an error: trees were not compared.
    """

    name: str
    nodes: int
    seconds: tuple[float, float]
    difference: str = ""
    failed: bool = False


@dataclass(frozen=True)
class CheckReport:
    """Result of a check; `str` formats it as a table.

    Attributes
    ----------
    device : "cuda" or "cpu"
    about : dict of str to str
        Subject of the check: device, driver, releases; or threads.
    sides : pair of Side
        The reference, and the one that is checked.
    outcomes : sequence of Outcome
    seconds : float
        Duration of the check, compilation included.
    """

    device: str
    about: dict[str, str]
    sides: tuple[Side, Side]
    outcomes: Sequence[Outcome]
    seconds: float

    @property
    def passed(self) -> bool:
        """True if all trees are equal bit for bit."""
        return not self.differences

    @property
    def differences(self) -> list[str]:
        """Differences, a line per table."""
        return [f"{one.name}: {one.difference}" for one in self.outcomes if one.difference]

    @property
    def completed(self) -> bool:
        """True if no table ended in an error."""
        return not any(one.failed for one in self.outcomes)

    def __str__(self) -> str:
        width = max(map(len, self.about)) + 2
        about = [f"{name:{width}}{text}" for name, text in self.about.items()]
        lines = [outcome_line(one) for one in self.outcomes]
        return "\n".join([*about, "", heading(self.sides), *lines, "", self.verdict])

    @property
    def verdict(self) -> str:
        """The last line."""
        count, wrong = len(self.outcomes), len(self.differences)
        took = f"in {self.seconds:.1f} s"
        if wrong:
            return f"FAILED: {wrong} of {count} tables differ or could not be grown, {took}"
        return f"passed: {count} tables, the same trees bit for bit, {took}"


def check_device(device: str = "cuda", *, tell: Callable[[str], None] | None = None) -> CheckReport:
    """Grow small trees twice, and compare them field by field, to the last bit.

    They use every kernel: missing values, weights, categories, regression, C4.5, ID3, exact
    and binned cuts, float32 and float64, many classes. The result for the current CUDA device is
    cached, for this release of gputree, its kernels, the device, the driver and the compiler, in
    the user's cache folder, and used by ``device="auto"``. A kernel that fails may leave CUDA
    unusable in this process; ``device="auto"`` therefore checks in a child process.

    Parameters
    ----------
    device : "cuda", one by its number, as "cuda:1", or "cpu", default="cuda"
        "cuda" is compared with the CPU; the CPU's threads against a single one.
    tell : callable, default=None
        Called with each line of the table.

    Returns
    -------
    CheckReport

    Raises
    ------
    ImportError
        For "cuda" where CuPy or NVRTC is not installed; names the extra that installs it.
    RuntimeError
        For "cuda" where there is no driver, no CUDA device, or too old a one.
    ValueError
        Another `device`.

    Examples
    --------
    >>> from gputree import check_device
    >>> check_device("cuda").passed  # doctest: +SKIP
    True
    """
    if device == "auto" or not DeviceName(set(DEVICES)).is_satisfied_by(device):
        raise InputError(
            "The 'device' to check must be 'cuda', one CUDA device, as 'cuda:0', or 'cpu', got "
            f"{device!r}."
        )
    if device == "cpu":
        most = max(most_threads(), FEWEST_THREADS)
        one, many = "1 thread", f"{most} threads"
        sides = Side(one, one, "cpu", 1), Side(many, many, "cpu", most)
        return _run(sides, {"device": "the CPU", "threads": str(most)}, CASES, tell)
    if (problem := machine.missing(device)) is not None:
        raise problem
    with machine.entered(device):
        identity, report = compare_device(tell)
    keep(identity, report.differences, lasting=report.completed)
    return report


def compare_device(tell: Callable[[str], None] | None) -> tuple[machine.Identity, CheckReport]:
    """Compare the current CUDA device with the CPU, in this process; the result is not recorded."""
    if (problem := machine.missing()) is not None:
        raise problem
    identity = machine.identity()
    sides = Side("the CPU", "CPU", "cpu"), Side("the device", "device", "cuda")
    return identity, _run(sides, identity._asdict(), CASES, tell)


def _run(
    sides: tuple[Side, Side],
    about: dict[str, str],
    cases: Sequence[Case],
    tell: Callable[[str], None] | None,
) -> CheckReport:
    tell = tell or (lambda line: None)
    begin = time.perf_counter()
    tell(heading(sides))
    outcomes = []
    for case in cases:
        outcomes.append(_compare(case, sides))
        tell(outcome_line(outcomes[-1]))
    return CheckReport(sides[1].device, about, sides, outcomes, time.perf_counter() - begin)


def _compare(case: Case, sides: tuple[Side, Side]) -> Outcome:
    table = case.table()
    trees: list[Tree] = []
    seconds = [0.0, 0.0]
    for j, side in enumerate(sides):
        begin = time.perf_counter()
        try:
            trees.append(grow_case(case, table, side))
        except Exception as error:  # of any kind: a device may return anything
            nodes = trees[0].n_nodes if trees else 0
            first = next(iter(str(error).splitlines()), "")
            problem = f"{type(error).__name__} on {side.name}: {first}"
            return Outcome(case.name, nodes, (seconds[0], seconds[1]), problem, failed=True)
        seconds[j] = time.perf_counter() - begin
    difference = first_difference(trees[0], trees[1], sides)
    return Outcome(case.name, trees[0].n_nodes, (seconds[0], seconds[1]), difference)


def grow_case(case: Case, table: CaseTable, side: Side) -> Tree:
    """Grow the tree of a case, without pruning."""
    X: Any = table.X
    if case.resident and side.device == "cuda":
        from gputree.backends.cuda.kernels import cupy

        X = cupy().asarray(X)
    model = case.estimator(device=side.device, n_jobs=side.n_jobs, **case.parameters)
    with warnings.catch_warnings():  # about the tables, which cause them on purpose
        warnings.simplefilter("ignore")
        tree: Tree = model.fit(X, table.y, table.weight).unpruned_tree_
    return tree


def first_difference(expected: Tree, found: Tree, sides: tuple[Side, Side]) -> str:
    """The first field in which two trees differ, with the first node; empty where none does."""
    if expected.n_nodes != found.n_nodes:
        here, there = (f"{tree.n_nodes} nodes" for tree in (expected, found))
        return f"{here} on {sides[0].name}, {there} on {sides[1].name}"
    for name, a, b in _pairs(expected, found):
        places = np.argwhere(_bits(a) != _bits(b))
        if places.size:
            index = tuple(places[0])
            here, there = f"{a[index]} on {sides[0].name}", f"{b[index]} on {sides[1].name}"
            return f"{name} of node {index[0]}: {here}, {there}"
    return "" if expected.equals(found) else "branches of categories, or the type of a field"


def _pairs(expected: Tree, found: Tree) -> Iterator[tuple[str, Any, Any]]:
    """Pairs of arrays, with an item per node, of both trees, in the order of the tree's fields."""
    for field in fields(Tree):
        a, b = getattr(expected, field.name), getattr(found, field.name)
        if not isinstance(a, np.ndarray) or a.shape[:1] != (expected.n_nodes,):
            continue
        if a.shape == b.shape and a.dtype == b.dtype:
            yield field.name, a, b


def _bits(values: NDArray[Any]) -> NDArray[np.integer]:
    """Reinterpret values as integers: NaN equals itself, and the zeros differ."""
    return values.view(f"u{values.itemsize}")


_NAME_WIDTH = max(len(case.name) for case in CASES)


def heading(sides: tuple[Side, Side]) -> str:
    """Names of the columns."""
    name, (here, there) = "table", (f"{side.column:>10}" for side in sides)
    return f"{name:{_NAME_WIDTH}}  {'nodes':>6}{here}{there}  trees"


def outcome_line(one: Outcome) -> str:
    """Format a table's line: nodes, the seconds on both sides, and the result of the comparison."""
    here, there = (f"{seconds:8.3f} s" for seconds in one.seconds)
    return f"{one.name:{_NAME_WIDTH}}  {one.nodes:6,}{here}{there}  {one.difference or 'the same'}"
