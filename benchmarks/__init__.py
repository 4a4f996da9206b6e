"""The asv suite (one file a noun) and `python -m benchmarks.compare` against other libraries."""
