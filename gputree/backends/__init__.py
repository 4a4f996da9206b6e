"""Devices: one backend each, behind the seam of `gputree.backends.base`, imported at its use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gputree.backends.base import Backend, DeviceTable, Int64s, Task
    from gputree.backends.lists import ListBackend
    from gputree.backends.sharded.table import ShardedTable

__all__ = [
    "DEVICES",
    "get_backend",
    "get_list_backend",
    "get_sharded_table",
    "get_table",
    "has_device",
    "new_backend",
]

# Devices that users may request; "auto" is resolved to one of the others before a backend is
# chosen.
DEVICES = ("auto", "cpu", "cuda")


def has_device() -> bool:
    """Return True if a CUDA device, and all that is needed to grow trees on it, is usable."""
    from gputree.backends.cuda import machine

    return machine.missing() is None


def get_backend(device: str) -> type[Backend]:
    """The backend class for "cpu" or "cuda".

    Raises
    ------
    ImportError
        For "cuda" where CuPy or NVRTC is not installed; names the extra that installs it.
    RuntimeError
        For "cuda" where there is no driver, no CUDA device, or too old a one.
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


def get_table(device: str) -> type[DeviceTable]:
    """Return the table class of "cpu" or "cuda"; raises as `get_backend` does."""
    if not _is_cuda(device):
        from gputree.backends.cpu.table import CpuTable

        return CpuTable
    from gputree.backends.cuda.table import CudaTable

    return CudaTable


def get_sharded_table(device: str) -> Callable[..., ShardedTable]:
    """Return a constructor of sharded tables: rows on the host, counted in shards on `device`."""
    from gputree.backends.sharded.table import ShardedTable

    return partial(ShardedTable, "cuda" if _is_cuda(device) else "cpu")


def get_list_backend(device: str) -> type[ListBackend]:
    """Return the attribute-list backend class of "cpu" or "cuda"; raises as `get_backend` does."""
    if not _is_cuda(device):
        from gputree.backends.cpu.lists.backend import CpuLists

        return CpuLists
    from gputree.backends.cuda.lists.backend import CudaLists

    return CudaLists


def _is_cuda(device: str) -> bool:
    """Return True for "cuda", if usable, and False for "cpu"; else raise."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"A backend is that of 'cpu' or 'cuda', got {device!r}.")
    if device == "cpu":
        return False
    from gputree.backends.cuda import machine

    if (problem := machine.missing()) is not None:
        raise problem
    return True
