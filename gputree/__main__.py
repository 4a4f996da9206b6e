"""`python -m gputree` is the `gputree` command."""

import sys


def main() -> int:
    """Run the command line, and end in one line where it is interrupted, while it is loaded too."""
    try:
        from gputree.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("gputree: error: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
