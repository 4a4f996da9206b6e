"""The asv suite (one file a noun) and `python -m benchmarks.compare` against other libraries."""

import os
import re
import sys


def is_run(words: list[str]) -> bool:
    """Whether a command line runs benchmarks, by ``-m`` or asv, and does not only import them."""
    modules = [word for mark, word in zip(words, words[1:], strict=False) if mark == "-m"]
    by_asv = any(re.search(r"(^|[\\/])asv(_runner)?([\\/]|$)", word) for word in words)
    return by_asv or any(re.match(r"(benchmarks|asv)\b", module) for module in modules)


# What is measured is compiled, from the first call on, but where a benchmark asks for more.
if is_run(sys.orig_argv):
    os.environ.setdefault("GPUTREE_JIT", "always")
