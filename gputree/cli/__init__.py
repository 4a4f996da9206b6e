"""The `gputree` command: train, predict, show, check, warmup, info."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

from gputree.cli.check import add_check
from gputree.cli.predict import add_predict
from gputree.cli.report import say
from gputree.cli.show import add_info, add_show
from gputree.cli.train import add_train
from gputree.cli.warmup import add_warmup

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells report it

# What a user's files, options and machine can cause; anything else is a bug and
# keeps its traceback.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, RuntimeError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None
        Arguments without the program's name; None takes `sys.argv`.

    Returns
    -------
    int
        Exit status: 0, 1 where a check finds a difference, 2 after an error, 130 after an
        interrupt.
    """
    arguments = _parser().parse_args(argv)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            status: int | None = arguments.run(arguments)
            sys.stdout.flush()
    except BrokenPipeError:  # `gputree show ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed at exit
        return 0
    except KeyboardInterrupt:
        say("error: interrupted")
        return INTERRUPTED
    except _EXPECTED as error:
        say(f"error: {error}" if str(error) else f"error: {type(error).__name__}")
        return USAGE_ERROR
    return status or 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"warning: {message}")


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)  # an abbreviation may be another's name

    def error(self, message: str) -> NoReturn:
        say(f"error: {message} (see {self.prog} --help)")
        self.exit(USAGE_ERROR)


def _parser() -> argparse.ArgumentParser:
    from gputree import __version__

    parser = _Parser(prog="gputree", description="Decision trees from tables.")
    parser.add_argument("--version", action="version", version=f"gputree {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_train(commands.add_parser("train", help="grow a tree from a table"))
    add_predict(commands.add_parser("predict", help="apply a model to a table"))
    add_show(commands.add_parser("show", help="print a model as text"))
    add_check(commands.add_parser("check", help="hold a device's trees against the CPU's"))
    add_warmup(commands.add_parser("warmup", help="compile kernels ahead, for an image"))
    add_info(commands.add_parser("info", help="print versions, devices and threads"))
    return parser
