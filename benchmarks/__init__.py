"""The asv suite (one file a noun) and `python -m benchmarks.compare` against other libraries."""

import os

# What is measured is compiled, from the first call on, but where a benchmark asks for more.
os.environ.setdefault("GPUTREE_JIT", "always")
