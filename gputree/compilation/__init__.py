"""Compilation of kernels, and their cache on disk.

A kernel is Python that numba can compile: once for each kind of arguments, which takes seconds, and
cached for all later processes. Some steps are not left to numba:

    the choice to compile or not      `tiers`: small work is interpreted
    decorators, registered with numba     `declared`, `decorators`, `dispatchers`
    the source files of a kernel      `sources`: the digest of all of them is in its key
    the folder of cached kernels      `folders`: next to the code, else of the user, else none;
                                      one process compiles for all
    the file of a cached kernel       `store`: one for each kernel and signature
    private names of numba            `numba_internals`: shared functions compile once, machine
                                      code alone is cached; how to port it to a new numba
    no reference counting             `borrowing`
    Ctrl-C during compilation         `interrupts`
    messages about compilation        `waits`
    prefetch instructions             `prefetching`
    releases of numba                 `numba_release`
"""

from gputree.compilation.borrowing import borrowing, overload_borrowing, pasted
from gputree.compilation.decorators import inner, is_none, jitable, kernel, overload, written_out

__all__ = [
    "borrowing",
    "inner",
    "is_none",
    "jitable",
    "kernel",
    "overload",
    "overload_borrowing",
    "pasted",
    "written_out",
]  # fmt: skip
