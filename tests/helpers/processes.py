"""Python in a process of its own."""

import os
import subprocess
import sys
from typing import Any


def run_python(*words: str, env: Any = os.environ, timeout: float = 600, **options: Any) -> str:
    """What Python prints that is run with these words, and ends well."""
    options |= {"env": env, "timeout": timeout}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout
