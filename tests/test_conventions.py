"""What holds in every file of the package: one place for sentinels, one meaning of a range."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from gputree import dtypes

PACKAGE = Path(dtypes.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
KERNELS = sorted(p for p in PACKAGE.rglob("*") if p.suffix in (".cu", ".cuh"))


def constants(source: Path):
    """Names of a module's constants and the expressions behind them."""
    for statement in ast.parse(source.read_text("utf-8")).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id.isupper():
                    yield target.id, statement.value


def is_sentinel(value: ast.expr) -> bool:
    """A negative number, or all ones: nothing that could be counted or indexed."""
    negative = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub)
    return negative or any(
        isinstance(part, ast.Constant) and part.value in (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
        for part in ast.walk(value)
    )


def test_sentinels_are_in_one_file():
    sentinels = {
        source.relative_to(PACKAGE).as_posix(): names
        for source in SOURCES
        if (names := {name for name, value in constants(source) if is_sentinel(value)})
    }
    assert {"NO_CHILD", "MISSING_STOPS", "MISSING_CODE", "NO_FRAME"} <= sentinels.pop("dtypes.py")
    assert sentinels == {}


@pytest.mark.parametrize("name", ["MISSING_CODE", "PUT_OFF", "WAITS"])
def test_kernels_have_the_same_sentinels(name):
    """What both sides of a launch compare has one value."""
    macros = "\n".join(source.read_text("utf-8") for source in KERNELS)
    defined = re.findall(rf"#define {name} \(?(-?[0-9a-fx]+?)u?\)?\s", macros)
    assert [int(value, 0) for value in defined] == [int(getattr(dtypes, name))]


def test_ranges_exclude_their_end():
    """``a .. b`` holds a and not b, as `gputree.dtypes` says."""
    inclusive = {
        source.relative_to(PACKAGE).as_posix(): found
        for source in [*SOURCES, *KERNELS]
        if (found := re.findall(r"\S+ \.\. [^`\n]*? - 1\b.*", source.read_text("utf-8")))
    }
    assert inclusive == {}


def test_values_of_a_bin_lie_between_its_least_and_its_greatest():
    from gputree.backends.base import Limits, Task
    from gputree.backends.cpu.backend import CpuBackend
    from gputree.backends.cpu.table import CpuTable
    from gputree.criteria import Gini

    values = np.array([[3.0], [1.0], [2.0], [1.0], [5.0], [9.0]])
    limits = Limits(9, 2, 1, 0, -np.inf, 1, False)
    task = Task(Gini(2, 1.0), limits, np.zeros(6, np.uint8), None, None, None, exact=False)
    backend = CpuBackend(CpuTable(values, np.zeros(1, np.bool_)), task, 1)
    backend.encode(max_bins=2)
    table = backend.table
    for b in range(2):
        inside = values[table.codes[:, 0] == b]
        assert (table.least[0, b], table.greatest[0, b]) == (inside.min(), inside.max())


def imported_rooms(source: Path) -> set[str]:
    """Rooms of devices, "cpu" or "cuda", that a file of the package takes code from."""
    text = source.read_text("utf-8")
    return set(re.findall(r"from gputree\.backends\.(cpu|cuda)\b", text)) | set(
        re.findall(r"from gputree\.backends import (cpu|cuda)\b", text)
    )


@pytest.mark.parametrize(("room", "other"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_no_device_takes_code_of_another(room, other):
    """What both need lies beside the rooms, in `gputree.backends`."""
    folder = PACKAGE / "backends"
    takers = {
        source.relative_to(folder).as_posix()
        for source in (folder / room).rglob("*.py")
        if other in imported_rooms(source)
    }
    assert takers == set()


def test_rooms_of_devices_are_entered_through_backends():
    """Above them, only lists are coded by kernels of the CPU, and devices asked for their kind."""
    takers = {
        source.relative_to(PACKAGE).as_posix(): rooms
        for source in SOURCES
        if source.relative_to(PACKAGE).parts[0] not in ("backends", "check", "cli")
        and (rooms := imported_rooms(source))
    }
    assert takers == {"encoding.py": {"cpu"}, "estimators/devices.py": {"cuda"}}
