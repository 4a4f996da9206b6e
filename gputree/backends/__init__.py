"""Backends: the devices that count and split, behind the interfaces of `base` and `lists`.

The words of this package, of its names and comments:

    table            the columns of n rows on a device: values, and once coded one byte a value
    entry            a row in a node, with a weight; a node is a range of the entries
    unit             what fixed-point weights and targets count in, so that their sums are integers
    statistics       integers that are summed over rows: class weights, or weight, sum, square
    channel          one statistic of a histogram cell; weighted tables have the rows in one more
    bin              a range of a numeric column's values, or a category; at most 256 with the one
                     of missing values, which is last
    lossless         of a column: each bin has one distinct value
    boundary         the place between two bins; its cut needs no values, only the histogram
    cut              a boundary, a threshold inside a bin, or a set of categories; which of two is
                     chosen is decided in `cpu/cut.py` and `cuda/cut.cuh` only
    bound            no cut inside a bin scores higher; computed from the histogram
    candidate        a bin, or sub-bin, whose bound reaches the best score so far
    sub-bin          a range of a bin that is counted for itself, to prune again; in shards a cell
    fine code        bin and sub-bin of a value in 16 bits, stored column by column
    refine           search the candidates of a node for a cut better than any boundary
    category group   the rows of one category in a node; `run` in the code
    column of many   a categorical column with more categories than bins, which has one bin
    place            of a subset of categories: its number in the search that found it
    level            the nodes of one depth that are split together; `slot`: their histograms
    small node       a node whose subtree is built at once (`finish`), from a sorted copy, a `block`
    leading column   the column of a node with the highest bound: the CPU searches it first
    chunk, span      entries, or items of work, that one thread or block of threads processes
    ranked list      the rows of a node by one column, as ranks of their targets (`cpu/ranked`)
    attribute list   the entries of a level sorted by one column (multiway trees, `lists`)
    shard            rows whose histograms are counted where they are stored (`sharded`)
    coordinator      the process that sums the counts of shards, and chooses the splits
    interval         a range of keys inside a bin that is still searched in shards
    key              an integer that increases with a value; of a node: its seed of random draws
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from gputree.backends.base import Backend, DeviceTable, Limits, Sharding, Task
    from gputree.backends.cpu.ranked.grower import RankedGrower
    from gputree.backends.interactions import Interactions
    from gputree.backends.lists import ListBackend, NodeRows
    from gputree.base.dtypes import Bools, Int64s

__all__ = [
    "DEVICES",
    "get_backend",
    "get_list_backend",
    "has_device",
    "new_backend",
    "new_ranked_grower",
    "new_table",
]

# Devices that users may request, in addition to one by its number, as "cuda:1"; "auto" is resolved
# to one of the others before a backend is chosen.
DEVICES = ("auto", "cpu", "cuda")


def has_device() -> bool:
    """Return True if a CUDA device, and all that is needed to grow trees on it, is usable."""
    from gputree.backends.cuda import machine

    return machine.missing() is None


def get_backend(device: str) -> type[Backend]:
    """The backend class for "cpu" or "cuda", which may have a number: "cuda:1".

    ImportError without CuPy or NVRTC, which names the extra; RuntimeError without a driver, or a
    device that is new enough.
    """
    if not _is_cuda(device):
        from gputree.backends.cpu.backend import CpuBackend

        return CpuBackend
    from gputree.backends.cuda.backend import CudaBackend

    return CudaBackend


def new_backend(
    table: DeviceTable, task: Task, n_threads: int, entries: Int64s | None = None
) -> Backend:
    """Return the backend that grows `task` on `entries` of a table, None for all of its rows."""
    from gputree.backends.sharded.table import ShardedTable

    if isinstance(table, ShardedTable):
        from gputree.backends.sharded.backend import ShardedBackend

        if _is_cuda(table.name):
            from gputree.backends.sharded import device

            return device.new_backend(table, task, n_threads, entries)
        from gputree.backends.sharded.local import LocalShards

        return ShardedBackend(LocalShards(table, task, n_threads, entries))
    return get_backend(table.name)(table, task, n_threads, entries)


def new_stacked_backend(
    table: Any, task: Task, n_threads: int, entries: Int64s, trees: int
) -> Backend:
    """Return the backend that grows `trees` together on a table on a device: see `CudaBackend`."""
    from gputree.backends.cuda.backend import CudaBackend

    return CudaBackend(table, task, n_threads, entries, trees)


def new_table(
    device: str,
    values: Any,
    missing: Bools,
    categories: Int64s | None = None,
    sharding: Sharding | None = None,
) -> DeviceTable:
    """Return a table on "cpu" or "cuda", or one on the host that `device` counts in shards.

    Values on the host are for the current device where "cuda" has no number. Raises as
    `get_backend` does.
    """
    given = values, missing, categories
    is_cuda = _is_cuda(device)
    if not is_cuda and sharding is None:
        from gputree.backends.cpu.table import CpuTable

        return CpuTable(*given)
    from gputree.backends.cuda import entered

    with entered(device) if is_cuda else nullcontext():
        if sharding is None:
            from gputree.backends.cuda.table import CudaTable

            return CudaTable(*given)
        from gputree.backends.sharded.table import ShardedTable

        return ShardedTable("cuda" if is_cuda else "cpu", *given, sharding)


def get_list_backend(device: str) -> type[ListBackend]:
    """Return the attribute-list backend class of "cpu" or "cuda"; raises as `get_backend` does."""
    if not _is_cuda(device):
        from gputree.backends.cpu.lists.backend import CpuLists

        return CpuLists
    from gputree.backends.cuda.lists.backend import CudaLists

    return CudaLists


def new_ranked_grower(
    table: Any,
    criterion: Any,
    limits: Limits,
    rows: NodeRows,
    n_threads: int,
    interactions: Interactions | None = None,
    draws_cuts: bool = False,
) -> RankedGrower:
    """Return the growth over ranked lists of a table on the CPU, or of drawn cuts."""
    from gputree.backends.cpu.ranked.grower import RankedGrower

    given = criterion, limits, rows, n_threads, interactions, draws_cuts
    return RankedGrower(table.bare, *given)


def _is_cuda(device: str) -> bool:
    """Return True for "cuda", if usable, and False for "cpu"; else raise."""
    if device.partition(":")[0] not in ("cpu", "cuda"):
        raise ValueError(f"A backend is that of 'cpu' or 'cuda', got {device!r}.")
    if device == "cpu":
        return False
    from gputree.backends.cuda import machine

    if (problem := machine.missing(device)) is not None:
        raise problem
    return True
