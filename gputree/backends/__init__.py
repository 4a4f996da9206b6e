"""Devices: one backend each, behind the seam of `gputree.backends.base`."""

from __future__ import annotations

from gputree.backends.base import Backend
from gputree.backends.cpu.backend import CpuBackend

DEVICES = ("auto", "cpu", "cuda")


def get_backend(device: str) -> type[Backend]:
    """The backend class for a device name.

    Parameters
    ----------
    device : "auto", "cpu" or "cuda"

    Raises
    ------
    NotImplementedError
        For "cuda", which this version does not offer yet.
    """
    if device == "cuda":
        raise NotImplementedError(
            "device='cuda' is not available in this version of gputree; use device='cpu' or 'auto'."
        )
    return CpuBackend
