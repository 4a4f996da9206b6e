"""The numba releases that gputree is tested with: `pyproject.toml` has the same bounds.

Kernels are kept, linked and interrupted through parts of numba that are not its public interface,
so that another minor release may need another gputree.
"""

from __future__ import annotations

import re
from functools import cache

from gputree import __version__
from gputree.base.warnings import warn

NEWEST = (0, 68)


@cache
def warn_of_newer() -> None:
    """Warn once if the numba installed is newer than the tests have seen."""
    import numba

    found = re.match(r"(\d+)\.(\d+)", numba.__version__)
    if found and (int(found[1]), int(found[2])) > NEWEST:
        major, minor = NEWEST
        warn(
            f"gputree {__version__} was tested with numba up to {major}.{minor}, found "
            f"{numba.__version__}: kernels may fail to compile. "
            f'Install one that was tested: pip install "numba<{major}.{minor + 1}"'
        )
