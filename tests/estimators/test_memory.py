"""Tables larger than memory: an error with advice before the allocation, never where it fits."""

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from table_files import write_table

from gputree import C45Classifier, DecisionTreeClassifier
from gputree.backends import devices
from gputree.backends.cpu import table as coded_table
from gputree.base import memory
from gputree.base.memory import available_bytes, require_memory
from gputree.cli import main
from gputree.columns import specification
from gputree.datasets import read_table, sources

GIB = 1 << 30
USERS = (specification, devices, coded_table, sources)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return ``room(n)``, which makes n bytes available; small allocations are tested, too."""

    def leave(n: int | None) -> None:
        monkeypatch.setattr(memory, "NEGLIGIBLE", 0)
        for module in (memory, sources):
            monkeypatch.setattr(module, "available_bytes", lambda: n)

    return leave


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the bytes of all allocations that are tested."""
    sizes: list[float] = []
    for module in USERS:
        monkeypatch.setattr(module, "require_memory", lambda needed, *_: sizes.append(needed))
    return sizes


# ----------------------------------------------------------------------- what is available
def lay_out(monkeypatch: pytest.MonkeyPatch, root: Path, files: dict[str, str]) -> None:
    """A system of these files."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    monkeypatch.setattr(memory, "PROC", root / "proc")
    monkeypatch.setattr(memory, "CGROUPS", root / "cgroup")


MEMORY = {"proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\nSwapFree: 1048576 kB\n"}
VERSION_2 = {
    **MEMORY,
    "proc/self/cgroup": "0::/jobs/one\n",
    "cgroup/jobs/one/memory.max": "max\n",
    "cgroup/jobs/one/memory.current": f"{GIB}\n",
    "cgroup/jobs/memory.max": f"{2 * GIB}\n",
    "cgroup/jobs/memory.current": f"{3 * GIB // 2}\n",
    "cgroup/jobs/memory.stat": f"anon 5\nfile {GIB // 4}\n",
}
COLON = {
    name.replace("jobs", "docker:a"): text.replace("jobs", "docker:a")
    for name, text in VERSION_2.items()
}
VERSION_1 = {
    **MEMORY,
    "proc/self/cgroup": "5:cpu:/x\n4:cpuset,memory:/not/seen/here\n0::/\n",
    "cgroup/memory/memory.limit_in_bytes": f"{3 * GIB}\n",
    "cgroup/memory/memory.usage_in_bytes": f"{GIB}\n",
}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (MEMORY, 5 * GIB),
        (VERSION_2, 2 * GIB - 3 * GIB // 2 + GIB // 4 + GIB),
        (COLON, 2 * GIB - 3 * GIB // 2 + GIB // 4 + GIB),
        (VERSION_1, 3 * GIB),
        ({"proc/meminfo": "MemTotal: 8388608 kB\n"}, None),
        ({}, None),
    ],
)
def test_what_is_available(monkeypatch, tmp_path, files, expected):
    lay_out(monkeypatch, tmp_path, files)
    monkeypatch.setattr(memory, "_in_address_space", lambda: iter(()))
    assert available_bytes() == expected


def test_the_limit_of_address_space(monkeypatch, tmp_path):
    resource = pytest.importorskip("resource")
    lay_out(monkeypatch, tmp_path, {**MEMORY, "proc/self/statm": "1000 1 1 0 0 0 0\n"})
    monkeypatch.setattr(resource, "getrlimit", lambda _: (GIB, GIB))
    assert available_bytes() == GIB - 1000 * memory.os.sysconf("SC_PAGE_SIZE")


def test_of_this_machine():
    found = available_bytes()
    assert found is None or found > 1 << 20


# -------------------------------------------------------------------------------- refusing
def test_what_clearly_exceeds_is_refused(room):
    room(GIB)
    require_memory(1.2 * GIB, "This", "Do that.")
    with pytest.raises(MemoryError) as caught:
        require_memory(3 * GIB, "This", "Do that.")
    assert str(caught.value) == (
        "This takes at least 3 GiB of memory, and 1 GiB are available. Do that."
    )
    with pytest.raises(MemoryError, match=r"at least 23,456 GiB of memory"):
        require_memory(23_456 * GIB, "This", "Do that.")
    room(None)
    require_memory(1e30, "This", "Do that.")


X = np.random.default_rng(0).integers(0, 99, (3000, 8)).astype(float)
Y = X[:, 0] + X[:, 1] > 99
FITS = [
    (DecisionTreeClassifier(max_depth=3), X.astype(np.float32)),
    (DecisionTreeClassifier(max_depth=3), X.astype(np.int32)),
    (DecisionTreeClassifier(max_depth=3), X.astype(int).astype(str).astype(object)),
    (DecisionTreeClassifier(max_depth=3, categorical_features=[0]), X),
    (C45Classifier(max_depth=3), X),
    (C45Classifier(max_depth=3), pa.table({str(j): X[:, j] for j in range(8)})),
]


@pytest.mark.full
@pytest.mark.parametrize("case", range(len(FITS)))
def test_no_more_is_asked_for_than_is_taken(asked, case):
    """Then nothing is refused that would work."""
    model, table = FITS[case]
    model.set_params(device="cpu").fit(table, Y)  # compiled now
    asked.clear()
    tracemalloc.start()
    try:
        model.fit(table, Y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert asked
    assert max(asked) <= peak


@pytest.mark.parametrize("case", range(len(FITS)))
def test_a_fit_that_cannot_work(room, case):
    model, table = FITS[case]
    room(1000)
    with pytest.raises(
        MemoryError, match=r"3,000 rows .* [81] columns.* Use fewer rows or columns"
    ):
        model.set_params(device="cpu").fit(table, Y)


# ------------------------------------------------------------------------------------ files
@pytest.fixture
def table() -> pa.Table:
    n = 20_000
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "number": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "word": rng.choice(["a", "bb", "ccc"], n),
            "flag": rng.random(n) < 0.5,
            "none": pa.nulls(n, pa.float64()),
        }
    )


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_file_that_fits_is_read(tmp_path, table, asked, room, ending):
    path = write_table(table, tmp_path / f"table{ending}")
    room(1)  # whatever is required
    columns = read_table(path).columns
    assert len(asked) == 1
    assert 0.2 * columns.nbytes < asked[0] <= columns.nbytes


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet"])
def test_a_file_that_does_not_fit(tmp_path, table, room, ending):
    path = write_table(table, tmp_path / f"table{ending}")
    room(30_000)
    with pytest.raises(
        MemoryError, match=r"Reading .*table.* GiB of memory, .* Keep fewer"
    ) as found:
        read_table(path)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)  # from another process


def test_the_command(tmp_path, table, room, capsys):
    path = write_table(table, tmp_path / "table.parquet")
    room(30_000)
    assert main(["train", str(path), "--target", "word", "-o", str(tmp_path / "model")]) == 1
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("gputree: Reading ")
    assert first.endswith(" GiB are available. It is read in batches instead.")  # no other advice
    assert last.startswith("gputree: error: Holding 20,000 rows x 4 columns ")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n3\n", "\xff\n1\n"])
def test_a_sample_that_tells_nothing(tmp_path, room, text):
    """Leave it to readers to report what is wrong with a file."""
    path = tmp_path / "table.csv"
    path.write_text(text, "latin-1")
    room(1)
    sources.require_memory_for_csv(tmp_path / "table.csv", ",", None)
