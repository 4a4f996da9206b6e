"""Contents of cached kernels, and kernels that cannot be cached."""

import logging
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import pytest
from processes import run_python

from gputree.compilation import inner, kernel, numba_internals, sources, store, tiers

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="numba's compiler is switched off"
)

BITCODE = b"BC\xc0\xde"  # how LLVM's own code begins


class Pair(NamedTuple):
    half: float
    twice: float


@inner
def doubled(x):
    if x < 0.0:
        raise ValueError("no", x)
    return 2.0 * x


@inner
def halved(x):
    return 0.5 * x


def pair(x):
    return Pair(halved(x), doubled(x))


@inner
def apply(function, x):
    return function(x)


def applied(x):
    return apply(doubled, x)


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """``fresh(function)``: a kernel as in a new process, cached in a separate folder."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sources, "digest", lambda module: "0" * 64)
    store._kernels_in.cache_clear()
    with tiers.forced("always"):
        yield lambda function: kernel(function).dispatcher
    store._kernels_in.cache_clear()


def hits(compiled):
    """Number of forms of a kernel that were found, and number that were compiled."""
    return compiled.stats.cache_hits.total(), compiled.stats.cache_misses.total()


def kept_files():
    return list(Path(store.folders()[0]).glob("*.nbc"))


def test_machine_code_alone_is_kept(fresh):
    fresh(pair)(1.0)
    (file,) = kept_files()
    data = file.read_bytes()
    assert b"\x7fELF" in data or sys.platform != "linux"
    assert BITCODE not in data
    assert b"6halved" not in data  # nor names of what is inside


def test_what_python_makes_of_results_and_errors_is_kept(fresh):
    for found in ((0, 1), (1, 0)):
        compiled = fresh(pair)
        assert compiled(3.0) == Pair(1.5, 6.0)
        assert type(compiled(3.0)) is Pair
        with pytest.raises(ValueError, match=r"\('no', -1.0\)"):
            compiled(-1.0)
        assert hits(compiled) == found


def test_functions_of_numba_compile_kernels_that_were_found(fresh):
    fresh(pair)(1.0)
    compiled = fresh(pair)
    assert compiled(1.0).twice == 2.0
    assert hits(compiled) == (1, 0)
    assert numba.njit(lambda x: compiled(x).twice + 1.0)(2.0) == 5.0
    assert hits(compiled) == (1, 0)


def test_what_was_found_cannot_be_linked(fresh):
    fresh(pair)(1.0)
    compiled = fresh(pair)
    compiled(1.0)
    (found,) = compiled.overloads.values()
    with pytest.raises(RuntimeError, match="was kept as machine code, which cannot be linked"):
        found.library._get_module_for_linking()


def test_code_that_calls_what_is_not_there_is_compiled_again(fresh, monkeypatch):
    fresh(pair)(1.0)
    there = numba_internals._are_there
    monkeypatch.setattr(
        numba_internals, "_are_there", lambda names: there([*names, "no_such_name"])
    )
    compiled = fresh(pair)
    assert compiled(1.0).twice == 2.0
    assert hits(compiled) == (0, 1)


def test_a_kernel_with_an_address_is_not_kept_and_named(fresh, caplog):
    compiled = fresh(applied)
    with caplog.at_level(logging.INFO, "gputree"):
        assert compiled(1.0) == 2.0
    assert not kept_files()
    assert any(
        "test_kept_kernels.applied-" in message and "cannot be kept" in message
        for message in caplog.messages
    )


def test_whether_any_form_is_kept(fresh, monkeypatch):
    assert not store.any_kept(pair)
    store._kernels_in.cache_clear()
    fresh(pair)(1.0)
    assert store.any_kept(pair)
    assert not store.any_kept(applied)
    monkeypatch.setattr(sources, "digest", lambda module: "1" * 64)
    assert not store.any_kept(pair)
    monkeypatch.setattr(sources, "digest", lambda module: None)
    assert not store.any_kept(pair)


@pytest.mark.process
def test_whether_a_kernel_is_kept_is_known_without_numba():
    code = """
import sys
from gputree.compilation import store
from gputree.criteria.gini import node_ginis

store.any_kept(node_ginis.py_func)
print("numba" in sys.modules)
"""
    assert run_python("-c", code) == "False\n"
