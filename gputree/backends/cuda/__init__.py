"""The CUDA backend; names that packages outside of `backends` use, for arrays on a device."""

from typing import TYPE_CHECKING

from gputree.base.lazy import attach

if TYPE_CHECKING:
    from gputree.backends.cuda.kernels import cupy as cupy
    from gputree.backends.cuda.layout import to_device as to_device
    from gputree.backends.cuda.machine import device_of as device_of
    from gputree.backends.cuda.machine import entered as entered
else:  # checkers are to know of no other names
    __getattr__, __dir__ = attach(__name__)
