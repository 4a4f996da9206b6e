"""What the asv files share: the backends, and when to skip one."""

from __future__ import annotations

from gputree.backends import has_device

BACKENDS = ["cpu", "cuda"]


def skip_without_device(backend: str) -> None:
    """Raise NotImplementedError, which asv takes as "skip", where there is no device."""
    if backend == "cuda" and not has_device():
        raise NotImplementedError("There is no CUDA device.")


def synchronize(backend: str) -> None:
    """Wait for the device: kernels are launched before they have run."""
    if backend == "cuda":
        import cupy

        cupy.cuda.get_current_stream().synchronize()
