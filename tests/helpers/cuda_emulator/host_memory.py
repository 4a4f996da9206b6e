"""Page-locked host memory: the system reports which pages may be locked."""

from pathlib import Path

READ_ONLY = 8  # cudaHostRegisterReadOnly
NAMES: dict[object, str] = {
    1: "cudaErrorInvalidValue: invalid argument",
    2: "cudaErrorMemoryAllocation: out of memory",
    712: "cudaErrorHostMemoryAlreadyRegistered: part or all of the requested memory range is "
    "already mapped",
    801: "cudaErrorNotSupported: operation not supported",
}


class CUDARuntimeError(RuntimeError):
    """An error by its number, as CuPy raises it."""

    def __init__(self, status: object) -> None:
        super().__init__(NAMES.get(status, str(status)))


class Registry:
    """Page-locked ranges of host memory, with the flags that they were locked by."""

    def __init__(self) -> None:
        self.ranges: dict[int, tuple[int, int]] = {}

    def register(self, ptr: int, size: int, flags: int) -> None:
        spans = ((begin, begin + most) for begin, (most, _) in self.ranges.items())
        if any(ptr < end and begin < ptr + size for begin, end in spans):
            raise CUDARuntimeError(712)
        if not (flags & READ_ONLY or _is_writable(ptr, size)):
            raise CUDARuntimeError(1)
        self.ranges[ptr] = size, flags

    def unregister(self, ptr: int) -> None:
        del self.ranges[ptr]


def _is_writable(begin: int, size: int) -> bool:
    """Return True if all pages of a range are writable."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        pages, rights = line.split()[:2]
        first, last = (int(place, 16) for place in pages.split("-"))
        if first < begin + size and begin < last and "w" not in rights:
            return False
    return True


def pinned_memory(size: int, flags: int = 0) -> bytearray:
    return bytearray(size)


def pinned_pointer(memory: bytearray, offset: int) -> memoryview:
    return memoryview(memory)[offset:]
