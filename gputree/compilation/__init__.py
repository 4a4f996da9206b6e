"""Compilation of kernels, and their cache on disk.

A kernel is Python that numba can compile: once for each kind of arguments, which takes seconds, and
cached for all later processes. Some steps are not left to numba:

    the choice to compile or not          `tiers`: small work is interpreted
    decorators, registered with numba     `declared`, `decorators`, `dispatchers`; some functions
                                          do not count references
    the source files of a kernel          `sources`: the digest of all of them is in its key
    the file of a cached kernel           `store`: one for each kernel and signature, in a folder
                                          next to the code, else of the user, else none; one
                                          process compiles for all
    private names of numba                `numba_internals`: shared functions compile once, machine
                                          code alone is cached; how to port it to a new numba
    messages about compilation, Ctrl-C    `waits`
    prefetch instructions                 `declared`
"""

from gputree.compilation.declared import PREFETCH_ROWS, prefetch
from gputree.compilation.decorators import (
    borrowing,
    inner,
    is_none,
    jitable,
    kernel,
    overload,
    overload_borrowing,
    overload_pasted,
    pasted,
    pick,
    where_given,
    written_out,
)

__all__ = [
    "PREFETCH_ROWS",
    "borrowing",
    "inner",
    "is_none",
    "jitable",
    "kernel",
    "overload",
    "overload_borrowing",
    "overload_pasted",
    "pasted",
    "pick",
    "prefetch",
    "where_given",
    "written_out",
]  # fmt: skip
