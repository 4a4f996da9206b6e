"""`gputree info`: versions, devices, threads, folders."""

from __future__ import annotations

import argparse

from gputree._texts import aligned
from gputree.cli.report import with_examples


def add_info(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree info`."""
    with_examples(
        parser,
        "Print what a bug report should contain: versions, devices, threads, folders.",
        "gputree info",
    )
    parser.set_defaults(run=_info)


def _info(arguments: argparse.Namespace) -> None:
    import platform
    from importlib.metadata import version

    import numba
    import numpy as np

    from gputree import __version__
    from gputree.compilation.folders import in_use
    from gputree.threads import most_threads

    folder = in_use()
    print(
        aligned(
            {
                "gputree": __version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "numba": numba.__version__,
                "scikit-learn": version("scikit-learn"),
                "pyarrow": version("pyarrow"),
                **_cuda(),
                "threads": str(most_threads()),
                "cache": "nowhere: no folder is writable" if folder is None else folder.path,
            }
        )
    )


def _cuda() -> dict[str, str]:
    """The CuPy release and the devices it sees."""
    from gputree._optional import require

    try:
        cupy = require("cupy", "gputree info")
    except ImportError:
        return {"cupy": "not installed", "CUDA devices": "none"}
    runtime = cupy.cuda.runtime
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        return {"cupy": cupy.__version__, "CUDA devices": f"none ({error})"}
    names = [runtime.getDeviceProperties(j)["name"].decode() for j in range(count)]
    return {"cupy": cupy.__version__, "CUDA devices": ", ".join(names) or "none"}
