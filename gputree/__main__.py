"""`python -m gputree` is the `gputree` command."""

import sys

from gputree.cli import main

if __name__ == "__main__":
    sys.exit(main())
