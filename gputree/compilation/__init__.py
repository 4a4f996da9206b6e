"""How kernels are compiled, kept on disk and found again.

A kernel is Python that numba can compile: once for each kind of arguments, which takes seconds,
and kept for all later processes. Some things are not left to numba:

    whether it pays                   `tiers`: small work is interpreted
    what numba is told, and when      `decorators`, `dispatchers`
    what a kept kernel stands for     `sources`: a digest of every file that it was made of
    where kernels are kept            `folders`: beside the code, else for the user, else
                                      in a temporary folder, else not at all
    how they lie there                `store`: one file a kernel and signature
    what lies there                   `machine_code`
    who compiles, of many processes   `turns`
    what is compiled once, not twice  `parts`
    what counts no references         `lending`
    what Ctrl-C does meanwhile        `interrupts`
    what users are told meanwhile     `waits`
    memory asked for ahead of its use `prefetching`
"""

from gputree.compilation.decorators import (
    inner,
    is_none,
    jitable,
    kernel,
    overload,
    written_out,
)
from gputree.compilation.lending import lent, overload_lent, pasted

__all__ = [
    "inner", "is_none", "jitable", "kernel", "lent", "overload", "overload_lent", "pasted",
    "written_out",
]  # fmt: skip
