"""The `gputree` command, one module a subcommand.

A module is imported when its command is called, and imports what only the work itself takes within
functions: help and usage errors appear at once.

Data goes to standard output, messages to standard error. The exit status is one of

0    success
1    an error in a table, a model or the machine
2    an error in the command line
3    `gputree check` found a tree that differs
70   a bug in gputree: an error that is not of `gputree.errors`, printed with its traceback
130  interrupted
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from gputree.cli.report import DIFFERENT, UsageError, in_words_of_the_command, say, with_examples
from gputree.errors import GputreeError, MixedColumnWarning

FAULT = 1
USAGE_ERROR = 2
BUG = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells report it

# What a user's files and machine can cause, in addition to parameters; all others are bugs.
_EXPECTED = (GputreeError, OSError, MemoryError)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, of `sys.argv` if None; the exit status, see the top of this module."""
    arguments = argparse.Namespace(debug=False)
    try:
        words = sys.argv[1:] if argv is None else argv
        _, rest = _parser(words).parse_known_args(words, arguments)
        if _take_files(rest, arguments):
            from gputree.cli.report import unrecognized

            options = re.findall(r"--[a-z][a-z-]+", arguments.command.format_help())
            arguments.command.error(unrecognized(rest, list(words), options))
        from gputree.compilation.waits import nowhere, waiting
        from gputree.datasets.file_format import ReadingWarning

        with warnings.catch_warnings(), waiting(say if sys.stderr.isatty() else nowhere):
            warnings.showwarning = _showing_warnings()
            warnings.simplefilter("always", ReadingWarning)
            warnings.simplefilter("ignore", MixedColumnWarning)  # readers say it, and their options
            status: int | None = arguments.run(arguments)
            sys.stdout.flush()
    except BrokenPipeError:  # `gputree show ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushed at exit
        return 0
    except (Exception, KeyboardInterrupt) as error:
        return _report(error, arguments.debug)
    return status or 0


def _report(error: BaseException, debug: bool) -> int:
    """Print an error, with its traceback if it is a bug or with --debug; the exit status."""
    checks = sys.modules.get("gputree.base.sklearn")  # scikit-learn is not imported for this
    of_parameters = () if checks is None else (checks.InvalidParameterError,)
    is_usage = isinstance(error, (UsageError, *of_parameters))
    is_bug = not (is_usage or isinstance(error, (*_EXPECTED, KeyboardInterrupt)))
    if is_bug or debug:
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt):
        say("error: interrupted")
        return INTERRUPTED
    name = type(error).__name__
    if is_bug:
        say(
            f"error: {name}: this is a bug in gputree. Please report it, with the lines above, "
            "the command and the output of `gputree info`"
        )
        return BUG
    say(f"error: {in_words_of_the_command(_message(error)) or name}")
    return USAGE_ERROR if is_usage else FAULT


def _message(error: BaseException) -> str:
    """Text of an error, without the number of errors of the system."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _showing_warnings() -> Callable[..., None]:
    """Return a function that shows each warning once, in one line: drawing repeats some."""
    from gputree.datasets.file_format import ReadingWarning

    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        words = in_words_of_the_command(str(message))
        is_certain = False
        if isinstance(message, ReadingWarning):
            from gputree.cli.reading import as_options

            guess = message.guess
            words = f"{message.label}: {guess.sentence(as_options(guess.options))}"
            is_certain = guess.is_certain
        if words not in said:
            said.add(words)
            say(words if is_certain else f"warning: {words}")

    return show


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)  # an abbreviation may be another's name

    def error(self, message: str) -> NoReturn:
        say(f"error: {message} (see {self.prog} --help)")
        self.exit(USAGE_ERROR)


def _take_files(rest: list[str], arguments: argparse.Namespace) -> list[str]:
    """Move files that follow options from `rest` to the files of a command that takes several.

    argparse ends an argument that may be empty, or be many, at the first option behind it.
    """
    data = getattr(arguments, "data", None)
    if not isinstance(data, list) or any(word.startswith("-") for word in rest):
        return rest
    data.extend(rest)
    return []


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command line of these words: commands not among them have no options."""
    from gputree import __version__

    parser = _Parser(prog="gputree")
    with_examples(
        parser,
        "Decision trees from tables.",
        "gputree train adult.csv --target income --missing '?' -o adult.gputree",
        "gputree show adult.gputree --max-depth 3",
        "gputree predict adult.gputree new.csv -o predictions.csv",
        "",
        "COMMAND --help has more examples. A file named - is standard input or output.",
        "Exit status: 0 success; 1 error in a table, a model or the machine; 2 error",
        f"in the command line; {BUG} bug in gputree; {DIFFERENT} check found a difference;",
        f"{INTERRUPTED} interrupt.",
    )
    parser.add_argument("--version", action="version", version=f"gputree {__version__}")
    debug: dict[str, Any] = {"action": "store_true", "help": "print the traceback of every error"}
    parser.add_argument("--debug", **debug)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, text in _COMMANDS.items():
        command = commands.add_parser(name, help=text)
        if name in words:
            getattr(import_module(f"{__name__}.{name}"), f"add_{name}")(command)
            command.add_argument("--debug", **debug, default=argparse.SUPPRESS)
            command.set_defaults(command=command)
    return parser


_COMMANDS = {
    "train": "grow a tree or a forest on a table",
    "predict": "predict the rows of a table",
    "evaluate": "compare a model's predictions with the true values",
    "prune": "prune a model, without growing it again",
    "edit": "split, grow again or prune nodes of a tree, by its rows",
    "show": "print a model as text",
    "explain": "explain the predictions of rows",
    "export": "write a model as SQL, C, Python, HTML, ONNX, ...",
    "info": "print versions and devices; or the columns of a table, as they are read",
    "check": "compare the trees of a CUDA device with those of the CPU",
    "warmup": "compile kernels in advance, e.g. for a container image",
}
