"""Fixed-point numbers, hashes and bits, which are equal on every device."""
