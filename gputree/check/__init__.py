"""Check of a device before it is trusted: small trees, grown there and on the CPU."""

from gputree.check.comparison import CheckReport, Outcome, check_device
from gputree.check.trust import what_differs

__all__ = ["CheckReport", "Outcome", "check_device", "what_differs"]
