"""`gputree check`: compare the trees of a device with the trees of the CPU, bit for bit."""

from __future__ import annotations

import argparse

from gputree.base.texts import aligned
from gputree.cli.report import DIFFERENT, escape_unknown_characters, say, with_examples
from gputree.errors import DeviceError


def add_check(parser: argparse.ArgumentParser) -> None:
    """Fill the parser of `gputree check`."""
    with_examples(
        parser,
        "Grow small trees that use every kernel on a device and on the CPU, and compare them bit "
        f"for bit. The exit status is {DIFFERENT} where a tree differs.",
        "gputree check",
        "gputree check --device cpu",
    )
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
        say("--device auto does not use this device; --device cuda uses it anyway")
    return DIFFERENT


def _show_requirements() -> None:
    """Print what a CUDA device needs; all that is missing is one error."""
    from gputree.backends.cuda import machine

    needs = machine.requirements()
    print(aligned({need.name: need.found or "missing" for need in needs}), end="\n\n", flush=True)
    problems = [str(need.problem) for need in needs if need.problem is not None]
    if not problems:
        return
    missing = [
        problem.removeprefix(machine.NEEDS).removesuffix(machine.INSTEAD).strip(" .")
        for problem in problems
    ]
    raise DeviceError(
        f"a CUDA device needs {'; and '.join(missing)}. Trees are grown on the CPU without one; "
        "gputree check --device cpu checks that."
    )
