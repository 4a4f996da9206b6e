from typing import TYPE_CHECKING

from gputree._lazy import attach

if TYPE_CHECKING:
    from gputree.backends.cuda.device import device_of
    from gputree.backends.cuda.kernels import cupy
    from gputree.backends.cuda.layout import to_device

# What others than backends call, on arrays that lie on a device.
__all__ = ["cupy", "device_of", "to_device"]

if not TYPE_CHECKING:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(
        __name__,
        {"device": ("device_of",), "kernels": ("cupy",), "layout": ("to_device",)},
    )
