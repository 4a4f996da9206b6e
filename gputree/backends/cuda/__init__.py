from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.backends.cuda.kernels import cupy
    from gputree.backends.cuda.layout import to_device
    from gputree.backends.cuda.machine import device_of, entered

# Names that packages outside of `backends` use, for arrays on a device.
__all__ = ["cupy", "device_of", "entered", "to_device"]

if not TYPE_CHECKING:  # type checkers should know no other names
    __getattr__, __dir__ = attach(
        __name__,
        {
            "kernels": ("cupy",),
            "layout": ("to_device",),
            "machine": ("device_of", "entered"),
        },
    )
