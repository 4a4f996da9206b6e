"""Numba reads the kernel of subsets, whose tuples have broken its reader."""

from numba.core.compiler import run_frontend

from gputree.backends.cpu import subsets


def test_the_search_of_subsets_is_read():
    function = getattr(subsets.scan_subsets, "py_func", subsets.scan_subsets)
    assert run_frontend(function).arg_count == 7
