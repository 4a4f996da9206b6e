"""The only place that imports what may be absent, and only when it is asked for."""

from __future__ import annotations

import importlib
from types import ModuleType

EXTRAS = {
    "cupy": "cuda13",
    "matplotlib": "plot",
    "dask": "dask",
    "pandas": "pandas",
    "onnx": "export",
    "treelite": "export",
}


def require(name: str, purpose: str) -> ModuleType:
    """Import the optional module `name`, or say which extra brings its package.

    Raises
    ------
    ImportError
        Naming `purpose` and the extra to install.
    """
    package = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {package}, which is not installed. "
            f'Install it with: pip install "gputree-learn[{EXTRAS[package]}]"'
        ) from error
