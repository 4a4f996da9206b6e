"""Types, threads, files, memory and texts, which every package uses."""
