"""`gputree check`: is a device's tree the CPU's, to the bit?"""

from __future__ import annotations

import argparse

from gputree.cli.report import aligned, escape_unknown_characters, say

DIFFERENT = 1


def add_check(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree check`."""
    parser.set_defaults(run=_check)
    parser.add_argument(
        "--device",
        choices=["cuda", "cpu"],
        default="cuda",
        help="cuda (default): the CUDA device against the CPU; cpu: many threads against one",
    )


def _check(arguments: argparse.Namespace) -> int:
    from gputree.check import check_device

    escape_unknown_characters()
    if arguments.device == "cuda":
        _show_requirements()
    report = check_device(arguments.device, tell=lambda line: print(line, flush=True))
    print(f"\n{report.verdict}")
    if report.passed:
        return 0
    if arguments.device == "cuda":
        say("device='auto' leaves this device alone; device='cuda' obeys all the same")
    return DIFFERENT


def _show_requirements() -> None:
    """Print what a CUDA device needs; tell all that is missing, and raise the last of it."""
    from gputree.backends.cuda.machine import requirements

    needs = requirements()
    print(aligned({need.name: need.found or "missing" for need in needs}), end="\n\n", flush=True)
    problems = [need.problem for need in needs if need.problem is not None]
    for problem in problems[:-1]:
        say(f"error: {problem}")
    if problems:
        raise problems[-1]
