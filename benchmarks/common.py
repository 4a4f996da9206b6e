"""What the asv files share: the backends, and when to skip one."""

from __future__ import annotations

import importlib.util

BACKENDS = ["cpu", "cuda"]


def skip_without_device(backend: str) -> None:
    """Raise NotImplementedError, which asv takes as "skip", where there is no device."""
    if backend == "cuda" and not _has_device():
        raise NotImplementedError("There is no CUDA device.")


def _has_device() -> bool:
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    try:
        return cupy.cuda.runtime.getDeviceCount() > 0
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def synchronize(backend: str) -> None:
    """Wait for the device: kernels are launched before they have run."""
    if backend == "cuda":
        import cupy

        cupy.cuda.get_current_stream().synchronize()
