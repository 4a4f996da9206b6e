"""What the asv files share: the backends, when to skip one, and the clock."""

from __future__ import annotations

import time

from gputree.backends import has_device

BACKENDS = ["cpu", "cuda"]

# asv's attribute of modules and classes. Seconds of all threads hold while others use the
# processors, too: by the clock one commit took 1.3 s, and 2.4 s some minutes later. A device is
# waited for.
timer = time.perf_counter if has_device() else time.process_time


def skip_without_device(backend: str) -> None:
    """Raise NotImplementedError, which asv takes as "skip", where there is no device."""
    if backend == "cuda" and not has_device():
        raise NotImplementedError("There is no CUDA device.")


def synchronize(backend: str) -> None:
    """Wait for the device: kernels are launched before they have run."""
    if backend == "cuda":
        import cupy

        cupy.cuda.get_current_stream().synchronize()
