"""How kernels are compiled, kept on disk and found again.

A kernel is Python that numba can compile: once for each kind of arguments, which takes seconds,
and kept for all later processes. Some things are not left to numba:

    whether to compile                `tiers`: small work is interpreted
    decorators, declared to numba     `declared`, `decorators`, `dispatchers`
    which source files a kernel has   `sources`: the digest of all of them is in its key
    the folder of kept kernels        `folders`: next to the code, else of the user, else
                                      a temporary one, else none
    the file of a kept kernel         `store`: one for each kernel and signature
    the content of the file           `machine_code`
    many processes compile once       `turns`
    shared functions compile once     `parts`
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
