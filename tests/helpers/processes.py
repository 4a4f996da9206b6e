"""Python in a separate process."""

import os
import subprocess
import sys
from typing import Any


def run_python(*words: str, env: Any = os.environ, timeout: float = 600, **options: Any) -> str:
    """Run Python with these arguments to its end, without an error; returns its output."""
    options |= {"env": env, "timeout": timeout}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout
