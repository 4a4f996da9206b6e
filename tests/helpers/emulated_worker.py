"""Workers of Dask in separate processes, some of which have an emulated CUDA device."""

from typing import Any

from cuda_emulator import emulated_cuda, launches
from distributed import Worker, WorkerPlugin


class EmulatedDevice(WorkerPlugin):
    """Gives the workers of some names an emulated device."""

    def __init__(self, names: list[int]) -> None:
        self.names = names

    def setup(self, worker: Worker) -> None:
        self.device: Any = emulated_cuda() if worker.name in self.names else None
        if self.device:
            self.device.__enter__()

    def teardown(self, worker: Worker) -> None:
        if self.device:
            self.device.__exit__(None, None, None)


def launched() -> int:
    """Kernels that a worker's device has run."""
    return sum(launches.values())
