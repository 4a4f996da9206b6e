"""Workers of Dask in separate processes, some of which have emulated CUDA devices."""

import os
from typing import Any

from cuda_emulator import emulated_cuda, launch_devices, launches
from distributed import Worker, WorkerPlugin


class EmulatedDevice(WorkerPlugin):
    """Gives the workers of some names the devices that they see, at least one."""

    def __init__(self, names: list[int]) -> None:
        self.names = names

    def setup(self, worker: Worker) -> None:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")
        is_chosen = worker.name in self.names
        self.device: Any = emulated_cuda(devices=len(seen)) if is_chosen else None
        if self.device:
            self.device.__enter__()

    def teardown(self, worker: Worker) -> None:
        if self.device:
            self.device.__exit__(None, None, None)


def launched() -> int:
    """Kernels that a worker's devices have run."""
    return sum(launches.values())


def launched_on() -> tuple[str, ...]:
    """Cards that have run kernels of this process."""
    from gputree.backends.cuda.machine import device

    return tuple(device(number).pci_bus_id for number in sorted(launch_devices))
