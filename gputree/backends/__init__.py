"""Devices: one backend each, behind the seam of `gputree.backends.base`, imported at its use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gputree.backends.base import Backend, DeviceTable, Int64s, Task
    from gputree.backends.lists import ListBackend
    from gputree.backends.partitioned.table import PartitionedTable

__all__ = [
    "DEVICES",
    "get_backend",
    "get_list_backend",
    "get_partitioned_table",
    "get_table",
    "has_device",
    "new_backend",
]

# What users may ask for; "auto" is one of the others by the time a backend is chosen.
DEVICES = ("auto", "cpu", "cuda")


def has_device() -> bool:
    """Whether a CUDA device answers, and all is installed that it takes to grow trees there."""
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
    """What grows a task over some rows of a table, or all; see `gputree.backends.base.Backend`."""
    from gputree.backends.partitioned.table import PartitionedTable

    if isinstance(table, PartitionedTable):
        if _is_cuda(table.name):
            from gputree.backends.blocks import backend

            return backend.new_backend(table, task, n_threads, entries)
        from gputree.backends.partitioned.backend import PartitionedBackend

        return PartitionedBackend(table, task, n_threads, entries)
    return get_backend(table.name)(table, task, n_threads, entries)


def get_table(device: str) -> type[DeviceTable]:
    """What holds a table on "cpu" or "cuda"; see `get_backend`."""
    if not _is_cuda(device):
        from gputree.backends.cpu.table import CpuTable

        return CpuTable
    from gputree.backends.cuda.table import CudaTable

    return CudaTable


def get_partitioned_table(device: str) -> type[PartitionedTable]:
    """What holds a table on the host that "cpu" or "cuda" works on in parts; see `get_backend`."""
    if not _is_cuda(device):
        from gputree.backends.partitioned.table import PartitionedTable

        return PartitionedTable
    from gputree.backends.blocks.table import BlocksTable

    return BlocksTable


def get_list_backend(device: str) -> type[ListBackend]:
    """The backend of attribute lists for a device name; see `get_backend`."""
    if not _is_cuda(device):
        from gputree.backends.cpu.lists.backend import CpuLists

        return CpuLists
    from gputree.backends.cuda.lists.backend import CudaLists

    return CudaLists


def _is_cuda(device: str) -> bool:
    """Whether `device` is "cuda", of which nothing is missing, rather than "cpu"."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"A backend is that of 'cpu' or 'cuda', got {device!r}.")
    if device == "cpu":
        return False
    from gputree.backends.cuda import machine

    if (problem := machine.missing()) is not None:
        raise problem
    return True
